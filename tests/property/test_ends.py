"""The clock of the metrics ends with the last pod: what happens later, whatever option brings it, changes no figure."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import polars as pl
import pytest

import fastsim as fs
from fastsim.policies import registry
from fastsim.scenario.carbon import Carbon
from fastsim.simulation.simulate import run
from fastsim.simulation.uses.cells import REFUSED, cells

pytestmark = pytest.mark.filterwarnings("ignore::fastsim.simulation.simulate.RunWarning")
END_S = 1.5
"""The end of the only pod; every option below brings events after it."""
LATER: dict[str, Any] = {
    "sample_s": 7.0, "until_s": 1e6, "deschedule": ("frag_one_pod:1@3", "frag_one_pod:1@2e5"), "inflation": 1.5,
    "retarget": "synth:openb?pods=9", "failures": "mtbf=1e6,mttr=3",
    "maintenance": [("node-0000", 2.0, 4.0), ("node-0001", 9.0, 1e7)], "telemetry": 7.0, "carbon": 300.0,
}  # fmt: skip
"""Values of the fields of a scenario that bring events after the end."""
WITHOUT_EVENTS = {
    "cluster", "workload", "policy", "seed", "typical", "queue", "gpu_pick", "record", "preempt", "on_node_loss",
    "checkpoint_every_s", "restart_s", "quotas", "weights", "compat", "round_s", "realloc_s", "begin_s", "window",
    "rates", "prices", "global_queue", "profiling", "references", "ideal", "interference", "name", "out", "log",
}  # fmt: skip
"""Fields that bring no event after the end, or whose events come with the pods."""
POLICIES = ("best_fit", "las", "max_min_fairness", "fcfs")
RUNNING_MEANS = ("makespan_s", "mean_gpu_alloc_pct", "mean_power_w", "mean_pods_pending", "energy_kwh", "gpu_hours")


def scenario(policy: str = "best_fit", **fields: Any) -> fs.Scenario:
    cluster = fs.Cluster.uniform(nodes=2, gpu="V100M32", gpus=4)
    pods = pl.DataFrame({"submit_s": [0.0], "num_gpu": [1], "duration_s": [END_S]})
    return fs.Scenario(cluster, fs.Workload.from_polars(pods), policy, seed=5, **fields)


def figures(result: fs.Result) -> dict[str, Any]:
    return {name: result.summary[name].item() for name in RUNNING_MEANS}


def test_every_field_of_a_scenario_brings_late_events_or_none() -> None:
    fields = {item.name for item in dataclasses.fields(fs.Scenario)}
    assert fields == LATER.keys() | WITHOUT_EVENTS


@pytest.mark.parametrize("queue", ["drop", "fifo", "drf"])
@pytest.mark.parametrize("field", LATER)
def test_an_event_after_the_last_end_changes_no_figure(field: str, queue: str) -> None:
    plain, late = run(scenario(queue=queue)), run(changed := scenario(queue=queue, **{field: LATER[field]}))
    assert figures(late) == figures(plain) and figures(plain)["makespan_s"] == END_S
    assert late.timeline["t_s"].max() == END_S
    assert [str(one) for one in late.audit(changed).differences] == []


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("field", LATER)
def test_no_engine_counts_time_after_the_last_end(field: str, policy: str) -> None:
    if cells("options")[field][registry.engine_of(registry.parse(policy))].use == REFUSED:
        with pytest.raises(fs.ScenarioError, match=field):
            run(scenario(policy, **{field: LATER[field]}))
        return
    plain, late = run(scenario(policy)), run(scenario(policy, **{field: LATER[field]}))
    assert figures(late) == figures(plain)


@pytest.mark.parametrize(
    "changes", [{"add_s": [None, 9.0]}, {"remove_s": [2.0, None]}, {"remove_s": [2.0, 3.0], "add_s": [None, 1.75]}]
)
def test_nodes_that_come_or_go_after_the_last_end_change_no_figure(changes: dict[str, Any]) -> None:
    nodes = pl.DataFrame(pl.from_arrow(fs.Cluster.uniform(nodes=2, gpu="V100M32", gpus=4).nodes))
    columns = (pl.Series(name, values, pl.Float64) for name, values in changes.items())
    moving = scenario().with_(cluster=fs.Cluster.from_arrow(nodes.with_columns(columns)))
    result = run(moving)
    assert result.summary["makespan_s"].item() == END_S and result.timeline["t_s"].max() == END_S
    assert [str(one) for one in result.audit(moving).differences] == []


@pytest.mark.parametrize(
    "emission", [Carbon(np.array([0.0, 5.0]), np.array([300.0, 900.0])), Carbon(np.array([0.0]), np.array([300.0]))]
)
def test_an_intensity_that_changes_after_the_last_end_weighs_nothing(emission: Carbon) -> None:
    result = run(scenario(carbon=emission))
    assert result.summary["co2_kg"].item() == pytest.approx(0.3 * result.summary["energy_kwh"].item(), rel=1e-12)


def test_a_repair_after_the_last_end_moves_no_clock() -> None:
    result = run(changed := scenario(failures="mtbf=2,mttr=300"))
    assert result.timeline.filter(pl.col("event") == "node")["t_s"].to_list() == [pytest.approx(0.849, abs=0.001)]
    assert result.summary["makespan_s"].item() == END_S
    assert [str(one) for one in result.audit(changed).differences] == []


def test_the_clock_goes_on_while_a_pod_runs() -> None:
    pods = pl.DataFrame({"submit_s": [0.0, 0.0], "num_gpu": [1, 1], "duration_s": [END_S, None]})
    endless = scenario(deschedule=("frag_one_pod:1@3",)).with_(workload=fs.Workload.from_polars(pods))
    assert run(endless).summary["makespan_s"].item() == 3.0

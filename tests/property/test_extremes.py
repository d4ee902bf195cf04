"""Legal extremes of times and demands, under every engine: the summary is made, and an audit finds no difference."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.simulation.simulate import run
from tests.engines import RUNS

pytestmark = pytest.mark.filterwarnings("ignore::fastsim.simulation.simulate.RunWarning")
LATE_S = 1e15
"""Later than any clock, still exact to an eighth of a second."""
EXTREMES: dict[str, dict[str, list[float]]] = {
    "no duration": {"submit_s": [0.0, 1.0, 2.0], "duration_s": [0.0, 0.0, 0.0]},
    "no duration beside a long one": {"submit_s": [0.0, 0.0, 2.0], "duration_s": [90.0, 0.0, 0.0]},
    "smallest normal durations": {"submit_s": [0.0, 0.0, 1.0], "duration_s": [1e-308, 90.0, 1e-308]},
    "smallest durations": {"submit_s": [0.0, 0.0, 1.0], "duration_s": [5e-324, 90.0, 5e-324]},
    "below a nanosecond": {"submit_s": [0.0, 0.0, 1.0], "duration_s": [9e-10, 90.0, 1e-9]},
    "late arrivals": {"submit_s": [0.0, LATE_S, LATE_S + 1], "duration_s": [90.0, 60.0, 30.0]},
    "long durations": {"submit_s": [0.0, 1.0, 2.0], "duration_s": [LATE_S, 60.0, LATE_S]},
    "last exact integers": {"submit_s": [0.0, 2.0**53 - 4, 2.0**53 - 2], "duration_s": [1.0, 2.0, 4.0]},
    "one instant": {"submit_s": [5.0] * 3, "duration_s": [60.0] * 3},
    "one instant, no duration": {"submit_s": [5.0] * 3, "duration_s": [0.0] * 3},
}
CLUSTERS = {
    "pods": fs.Cluster.uniform(nodes=1, gpu="V100M32", gpus=1), "shares": "gavel:0:0:1", "orders": "gavel:0:0:1",
    "monitored": "uniform?nodes=1&gpu=T4&gpus=1", "adaptive": "sia:0:0:1",
}  # fmt: skip
STEPPED = ("shares", "orders", "monitored", "adaptive")
"""Engines with work at every round or second between the first and the last end, whose runs of years are refused."""
YEARS = ("late arrivals", "long durations", "last exact integers")
ARRIVALS = ("no duration", "one instant")
"""Extremes that are some to adaptive jobs, whose durations are their applications'."""
CASES = [
    (one, name) for one in CLUSTERS for name in EXTREMES
    if (name in ARRIVALS or one != "adaptive") and (one not in STEPPED or name not in YEARS)
]  # fmt: skip


COLUMNS: dict[str, dict[str, list[Any]]] = {
    "pods": {"gpu_milli": [500] * 3}, "adaptive": {"workload": ["cifar10"] * 3, "batch_size": [256] * 3},
}  # fmt: skip
"""Further columns; how long an adaptive job takes is its application's matter."""


def scenario(engine: str, columns: dict[str, list[float]], **changes: Any) -> fs.Scenario:
    table = {"num_gpu": [1] * 3, **columns, **COLUMNS.get(engine, {})}
    if table["num_gpu"] == [0] * 3:
        table.pop("gpu_milli", None)
    workload = fs.Workload.from_polars(pl.DataFrame(table))
    fields = RUNS[engine] | {"cluster": CLUSTERS[engine], "workload": workload} | changes
    if engine == "adaptive":
        fields |= {"policy": "pollux(generations=2)", "until_s": 1200.0}
    return fs.Scenario(**{name: value for name, value in fields.items() if name != "deschedule"})


@pytest.mark.parametrize(("engine", "extreme"), CASES)
def test_extreme_times_have_figures_that_an_audit_finds_again(engine: str, extreme: str) -> None:
    one = scenario(engine, EXTREMES[extreme])
    audit = run(one).audit(one)
    assert [str(difference) for difference in audit.differences] == [] and audit.checked > 100


NO_GPUS = fs.Cluster.mix([(2, {"name": "node", "cpu_milli": 8000, "memory_mib": 8000, "num_gpu": 0})])


@pytest.mark.parametrize("gpus", [0, 1])
@pytest.mark.parametrize("engine", RUNS)
def test_a_cluster_without_gpus_runs_pods_and_is_refused_by_other_engines(engine: str, gpus: int) -> None:
    columns: dict[str, list[float]] = {
        "submit_s": [0.0, 1.0, 2.0],
        "duration_s": [90.0, 0.0, 60.0],
        "num_gpu": [gpus] * 3,
    }
    one = scenario(engine, columns, cluster=NO_GPUS)
    if engine != "pods":
        with pytest.raises(fs.ScenarioError, match=r"^cluster: found no GPUs, expected GPUs that "):
            run(one)
        return
    result = run(one)
    assert [str(difference) for difference in result.audit(one).differences] == []
    assert result.jobs["state"].to_list() == ["unplaced" if gpus else "finished"] * 3

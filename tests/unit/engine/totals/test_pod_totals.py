"""What pods add up to, worked by hand: restarts, pauses, slowdown, GPU hours and what of them was thrown away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import fastsim as fs
from fastsim.engine.online.closing_stages import Deschedule
from fastsim.engine.online.plan import OnlinePlan
from fastsim.engine.result import Result
from fastsim.engine.totals.job_totals import FIGURES, JOB_COLUMNS
from fastsim.errors import InputError
from fastsim.scenario.outages import Maintenance, Outages
from fastsim.scenario.prices import Prices
from fastsim.scenario.run_rules import Rules
from tests.unit.engine.online.test_closing_stages import WORST, EvictAll, node
from tests.unit.engine.online.test_online import FGD, one_gpu_nodes, played, pods

LINE = OnlinePlan(FGD.terms, gpu_pick="fgd", queue="priority")
AWAY = Outages(maintenance=(Maintenance("node-0000", 2.0, 5.0),))


def rows(result: Result, *names: str) -> list[tuple[Any, ...]]:
    return result.jobs.select(names or JOB_COLUMNS).rows()


def figures(result: Result) -> dict[str, Any]:
    return result.summary.select(FIGURES).row(0, named=True)


def test_a_pod_is_stopped_and_goes_on_after_a_gap() -> None:
    # 7 of 10 s are done when the important pod takes the GPU for 2 s. Checkpoints every 3 s keep 6, so 1 is lost; from
    # 9 to 14 s come 1 s of starting again and 4 s of work. The GPU is held for 14 s, 2 of them for nothing.
    load = pods({"duration_s": 10.0}, {"submit_s": 7.0, "duration_s": 2.0, "priority": 1})
    rules = Rules(preempt="priority", checkpoint_every_s=3.0, restart_s=1.0)
    result = played(one_gpu_nodes(1), load, LINE, rules=rules)
    assert rows(result) == [(1, 2.0, 12 / 3600, 10.0, 1.4), (0, 0.0, 2 / 3600, 2.0, 1.0)]
    found = figures(result)
    assert (found["restarts"], found["paused_mean_s"], found["gpu_hours"]) == (1, 1.0, 14 / 3600)
    assert (found["slowdown_mean"], found["slowdown_p50"], found["slowdown_p99"]) == pytest.approx((1.2, 1.2, 1.396))
    assert found["goodput_pct"] == 100 * 12 / 14 and found["cost"] is None and found["tenant_jain"] is None


def test_a_lost_node_ends_its_pods_or_lets_them_begin_again() -> None:
    load = pods({"duration_s": 4.0, "gpu_milli": 300}, {"duration_s": 2.0, "gpu_milli": 500, "submit_s": 1.0})
    gone = played(one_gpu_nodes(1), load, rules=Rules(outages=AWAY))
    assert rows(gone) == [(0, 0.0, 0.6 / 3600, 4.0, None), (0, 0.0, 0.5 / 3600, 2.0, None)]
    assert figures(gone)["goodput_pct"] == 0.0 and figures(gone)["paused_mean_s"] is None
    again = played(one_gpu_nodes(1), load, LINE, rules=Rules(on_node_loss="requeue", outages=AWAY))
    assert rows(again) == [(1, 3.0, 1.8 / 3600, 4.0, 2.25), (1, 3.0, 1.5 / 3600, 2.0, 3.0)]
    found = figures(again)
    assert (found["restarts"], found["paused_mean_s"], found["slowdown_mean"]) == (2, 3.0, 2.625)
    assert found["goodput_pct"] == pytest.approx(100 * (3.3 - 1.1) / 3.3)
    assert found["gpu_hours"] == pytest.approx(3.3 / 3600)


def test_a_plain_loop_loses_the_same_with_a_node() -> None:
    cluster = one_gpu_nodes(1, remove_s=3.0)
    result = played(cluster, pods({"duration_s": 4.0, "gpu_milli": 300}))
    assert rows(result, "gpu_hours", "lost_work_s") == [(0.9 / 3600, 3.0)]
    assert figures(result)["goodput_pct"] == 0.0


def test_a_pod_without_an_end_has_no_ideal_time() -> None:
    result = played(one_gpu_nodes(1), pods({}, {"submit_s": 1.0}, {"submit_s": 6.0, "num_gpu": 0, "gpu_milli": 0}))
    assert rows(result) == [(0, 0.0, 6 / 3600, None, None), (0, None, 0.0, None, None), (0, 0.0, 0.0, None, None)]
    found = figures(result)
    assert (found["restarts"], found["paused_mean_s"], found["slowdown_mean"]) == (0, None, None)
    assert (found["gpu_hours"], found["goodput_pct"]) == (6 / 3600, 100.0)


def test_a_pod_that_waits_again_is_paused_until_the_run_ends() -> None:
    load = pods({"duration_s": 10.0}, {"submit_s": 3.0, "priority": 1}, {"submit_s": 8.0})
    result = played(one_gpu_nodes(1), load, LINE, rules=Rules(preempt="priority"))
    assert rows(result, "state", "restarts", "paused_s", "lost_work_s") == [
        ("pending", 0, 5.0, 3.0), ("running", 0, 0.0, 0.0), ("pending", 0, None, 0.0),
    ]  # fmt: skip
    assert figures(result)["goodput_pct"] == 100 * 5 / 8


def test_a_pod_that_has_nothing_to_do_has_no_slowdown() -> None:
    result = played(one_gpu_nodes(1), pods({"duration_s": 0.0}, {"submit_s": 2.0, "duration_s": 1.0}))
    assert rows(result, "ideal_s", "slowdown") == [(0.0, None), (1.0, 1.0)]
    assert figures(result)["slowdown_mean"] == 1.0


def test_a_gang_that_could_not_start_was_never_there() -> None:
    # The first member of the second gang fits at 1 s, the second does not until 5 s.
    gang: dict[str, Any] = {"gang_size": 2, "job_id": 1}
    one: dict[str, Any] = {"gang_size": 1, "job_id": 0}
    load = pods({"duration_s": 5.0, **one}, *[{"submit_s": 1.0, "duration_s": 2.0, **gang}] * 2)
    result = played(one_gpu_nodes(2), load, LINE)
    assert rows(result) == [
        (0, 0.0, 5 / 3600, 5.0, 1.0), (0, 0.0, 2 / 3600, 2.0, 3.0), (0, 0.0, 2 / 3600, 2.0, 3.0),
    ]  # fmt: skip


def test_a_pod_that_is_moved_starts_again_and_one_that_cannot_be_has_worked_in_vain() -> None:
    # As in the tests of stages: the whole pod does not fit again at 4 s. It held its GPU for nothing since 0 s.
    load = pods({}, {"gpu_milli": 500}, {"gpu_milli": 500, "duration_s": 10.0})
    result = played(node(2), load, WORST, deschedule=(Deschedule(EvictAll(), 1.0, at_s=4.0),))
    assert rows(result, "state", "attempts", "lost_work_s", *JOB_COLUMNS[:3]) == [
        ("evicted", 1, 4.0, 0, 0.0, 4 / 3600), ("running", 2, 0.0, 1, 0.0, 5 / 3600),
        ("finished", 2, 0.0, 1, 0.0, 5 / 3600),
    ]  # fmt: skip
    assert figures(result)["goodput_pct"] == pytest.approx(100 * 10 / 14)


def with_tenants(load: fs.Workload, *names: str | None) -> fs.Workload:
    table = pl.DataFrame(load.table()).with_columns(tenant=pl.Series(names, dtype=pl.Categorical))
    return fs.Workload.from_arrow(table)


def test_tenants_have_what_their_pods_held() -> None:
    # anna holds 4 + 2 GPU s, bert 0.5 for 4 s = 2, carl waits until the end; the last pod is nobody's.
    # Jain: (6 + 2 + 0)^2 / (3 * (36 + 4)); Gini: (-2 * 0 + 0 * 2 + 2 * 6) / (3 * 8).
    load = pods({"duration_s": 4.0}, {"duration_s": 4.0, "gpu_milli": 500}, {"num_gpu": 2, "duration_s": 9.0},
                {"submit_s": 5.0, "duration_s": 2.0}, {"submit_s": 5.0, "duration_s": 3.0})  # fmt: skip
    told = with_tenants(load, "anna", "bert", "carl", "anna", None)
    for rules in (Rules(), Rules(preempt="priority")):  # the plain loop, and the one with rules
        found = figures(played(one_gpu_nodes(2), told, rules=rules))
        assert (found["tenant_jain"], found["tenant_gini"]) == pytest.approx((64 / 120, 0.5))
        assert found["gpu_hours"] == 11 / 3600


def test_only_tenants_who_came_count() -> None:
    load = with_tenants(pods({"duration_s": 4.0}, {"submit_s": 9.0}), "anna", "bert")
    found = figures(played(one_gpu_nodes(1), load, until_s=5.0))
    assert (found["tenant_jain"], found["tenant_gini"]) == (1.0, 0.0)


@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.DurationMissing")
def test_pods_pay_for_the_gpus_that_they_hold() -> None:
    # T4 cost 3600 $/h at first and 720 from 5 s on: 4 s of 0.3 GPU, 10 s (5 of them for less) of 0.5 of another.
    load = pods({"duration_s": 4.0, "gpu_milli": 300}, {"duration_s": 10.0, "gpu_milli": 500}, {"gpu_milli": 900})
    prices = Prices(("T4", "A10"), np.array([0.0, 5.0]), np.array([[3600.0, 1.0], [720.0, 1.0]]))
    result = fs.simulate(one_gpu_nodes(1), load, prices=prices)
    assert rows(result, "cost") == [(pytest.approx(1.2),), (pytest.approx(2.5 + 0.5),), (0.0,)]
    assert figures(result)["cost"] == pytest.approx(4.2)
    fixed = fs.simulate(one_gpu_nodes(1), load, prices="fixed?T4=3600")
    assert figures(fixed)["cost"] == pytest.approx(1.2 + 5.0)
    assert result.provenance["options"]["prices"] != fixed.provenance["options"]["prices"]


def test_what_is_stopped_has_cost_something() -> None:
    load = pods({"duration_s": 10.0}, {"submit_s": 7.0, "duration_s": 2.0, "priority": 1})
    rules: dict[str, Any] = {"preempt": "priority", "queue": "priority"}
    result = fs.simulate(one_gpu_nodes(1), load, prices="fixed?T4=3600", **rules)
    assert rows(result, "cost") == [(17.0,), (2.0,)] and figures(result)["cost"] == 19.0


def test_prices_are_of_all_gpus_that_are_there() -> None:
    with pytest.raises(
        InputError, match="prices: found none of T4, expected one of every GPU model of the cluster, as of v100"
    ):
        fs.simulate(one_gpu_nodes(1), pods({}), prices="fixed?v100=2.48")
    without = fs.Cluster.uniform(nodes=1, gpus=0, cpu_milli=8000, memory_mib=0)
    load = pods({"num_gpu": 0, "gpu_milli": 0, "duration_s": 3.0})
    assert figures(fs.simulate(without, load, prices="fixed?v100=2.48"))["cost"] == 0.0


@pytest.mark.parametrize("record", ["none", "summary", "timeline", "all"])
def test_what_is_listed_decides_no_figure(record: str) -> None:
    load = pods({"duration_s": 4.0, "gpu_milli": 300}, {"duration_s": 2.0, "submit_s": 1.0})
    every, some = (played(one_gpu_nodes(1), load, LINE, record=name) for name in ("all", record))
    if record == "none":  # no pod is looked at
        assert [name for name, value in figures(some).items() if value is not None] == ["gpu_hours"]
    else:
        assert figures(some) == figures(every)


def test_streamed_resumed_and_forked_runs_have_the_same_figures(tmp_path: Path) -> None:
    cluster = fs.Cluster.scaled(nodes=15)
    models = sorted(filter(None, set(cluster.nodes["gpu_model"].to_pylist())))
    load = fs.Workload.synth("openb", pods=400, seed=4, load=1.5, cluster=cluster).table()
    priority = pl.Series("priority", [k % 3 for k in range(400)], dtype=pl.Int32)
    tenant = pl.Series("tenant", [("a", "b", None, "c")[k * k % 7 % 4] for k in range(400)])
    fs.Workload.from_arrow(pl.DataFrame(load).with_columns(priority, tenant)).write(tmp_path / "pods.parquet")
    told: dict[str, Any] = {
        "cluster": "openb:15", "workload": str(tmp_path / "pods.parquet"), "policy": "fgd", "queue": "priority",
        "preempt": "priority", "on_node_loss": "requeue", "failures": "mtbf=20000,mttr=50", "restart_s": 5.0,
        "prices": "fixed?" + "&".join(f"{model}={k + 1}" for k, model in enumerate(models)),
    }  # fmt: skip
    held = fs.simulate(**told)
    fs.simulate(**told, out=tmp_path / "kept", checkpoint_pods=150, keep_checkpoint=True)
    forked = fs.fork(tmp_path / "kept", tmp_path / "forked")
    streamed = fs.simulate(**told, out=tmp_path / "streamed")
    assert held.summary["restarts"].item() > 0 and held.summary["goodput_pct"].item() < 100
    assert held.summary["cost"].item() > 0 and 0 < held.summary["tenant_gini"].item() < 1
    for other in (streamed, fs.Result.load(tmp_path / "kept"), forked):
        assert other.summary.equals(held.summary)
        assert other.jobs.sort("pod_id").equals(held.jobs.sort("pod_id"))

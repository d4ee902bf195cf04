"""The online engine on cases worked by hand: queues, node changes, sampling, horizons, users' scorers."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import fastsim as fs
from fastsim.cluster.cluster import Cluster
from fastsim.engine.online.options import OnlineOptions
from fastsim.engine.online.plan import OnlinePlan, ScoreTerm
from fastsim.engine.online.run import run_online
from fastsim.engine.result import Result
from fastsim.errors import InputError, PolicyError
from fastsim.workload import Workload
from fastsim.workload.schema import pod_schema
from fastsim.workload.typical_pods import TypicalPods

FGD = OnlinePlan((ScoreTerm("fgd"),), gpu_pick="fgd")


def pods(*rows: dict[str, Any]) -> Workload:
    """A workload of 1-GPU pods of 1000 milli-CPU, changed as each row says."""
    base = {"submit_s": 0.0, "duration_s": None, "cpu_milli": 1000, "memory_mib": 0, "num_gpu": 1, "gpu_milli": 1000,
            "priority": 0}  # fmt: skip
    table = pl.DataFrame([{"pod_id": k, **base, **row} for k, row in enumerate(rows)], infer_schema_length=None)
    kinds = {"submit_s": pl.Float64, "duration_s": pl.Float64, "num_gpu": pl.Int16, "gpu_milli": pl.Int16,
             "priority": pl.Int32}  # fmt: skip
    return Workload.from_arrow(table.cast(kinds))  # type: ignore[arg-type]


def played(cluster: Cluster, workload: Workload, plan: OnlinePlan = FGD, **options: Any) -> Result:
    return run_online(cluster, workload, plan, TypicalPods.of(workload), OnlineOptions(**options))


def one_gpu_nodes(count: int, **columns: Any) -> Cluster:
    return Cluster.uniform(nodes=count, gpu="T4", gpus=1, cpu_milli=8000, memory_mib=1024, **columns)


def starts(result: Result) -> list[float | None]:
    return result.jobs["start_s"].to_list()


def test_a_tie_goes_to_the_smallest_position() -> None:
    result = played(one_gpu_nodes(3), pods({}, {}, {}))
    assert result.placements["node_id"].to_list() == [0, 1, 2]


def test_a_departure_frees_before_an_arrival_of_the_same_instant() -> None:
    result = played(one_gpu_nodes(1), pods({"duration_s": 5.0}, {"submit_s": 5.0}))
    assert result.jobs["state"].to_list() == ["finished", "running"]
    assert starts(result) == [0.0, 5.0]


def test_a_dropped_pod_says_why() -> None:
    full = pods({}, {}, {"num_gpu": 0, "gpu_milli": 0, "cpu_milli": 7500}, {"num_gpu": 2}, {"memory_mib": 4096})
    result = played(one_gpu_nodes(1), full)
    assert result.jobs["reason"].to_list() == ["running", "no_gpu", "no_cpu", "too_large", "too_large"]
    assert result.summary["failed_gpu_milli"].item() == 1000 + 2000 + 1000


@pytest.mark.parametrize("queue", ["drop", "fifo", "easy"])
def test_a_pod_of_id_minus_one_is_a_pod_like_others(queue: str) -> None:
    plan = OnlinePlan(FGD.terms, queue=queue)
    both = [
        pods({"pod_id": first, "duration_s": 2.0}, {"pod_id": 7, "submit_s": 1.0, "duration_s": 5.0})
        for first in (-1, 0)
    ]
    named, usual = (played(one_gpu_nodes(2), load, plan) for load in both)
    assert named.jobs["pod_id"].to_list() == [-1, 7] and starts(named) == starts(usual) == [0.0, 1.0]
    assert named.timeline["pod_id"].replace(-1, 0).equals(usual.timeline["pod_id"])
    assert named.summary.equals(usual.summary)


@pytest.mark.parametrize("until_s", [0.0, 2.5, 100.0])
def test_a_workload_is_read_to_its_end_whenever_the_run_ends(until_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    load = pods(*({"pod_id": number, "submit_s": float(number), "duration_s": 1.5} for number in range(7)))
    whole = played(one_gpu_nodes(2), load, until_s=until_s)
    monkeypatch.setattr("fastsim.engine.online.run.BATCH_ROWS", 1)
    single = played(one_gpu_nodes(2), load, until_s=until_s)
    assert single.jobs.equals(whole.jobs)
    assert single.provenance["workload"] == whole.provenance["workload"] and single.summary.equals(whole.summary)


def test_fifo_waits_behind_the_head() -> None:
    big = {"num_gpu": 2, "submit_s": 1.0, "duration_s": 10.0}
    load = pods({"duration_s": 5.0}, big, {"submit_s": 2.0, "duration_s": 1.0})
    cluster = Cluster.uniform(nodes=1, gpu="T4", gpus=2, cpu_milli=8000, memory_mib=0)
    head = played(cluster, load, OnlinePlan(FGD.terms, queue="fifo"))
    skip = played(cluster, load, OnlinePlan(FGD.terms, queue="fifo_skip"))
    assert starts(head) == [0.0, 5.0, 15.0]
    assert starts(skip) == [0.0, 5.0, 2.0]
    assert head.summary["wait_max_s"].item() == 13.0


def test_priority_overtakes_and_ties_keep_their_order() -> None:
    load = pods({"duration_s": 5.0}, {"submit_s": 1.0, "duration_s": 5.0, "priority": 1},
                {"submit_s": 2.0, "duration_s": 5.0, "priority": 2},
                {"submit_s": 3.0, "duration_s": 5.0, "priority": 2})  # fmt: skip
    result = played(one_gpu_nodes(1), load, OnlinePlan(FGD.terms, queue="priority"))
    assert starts(result) == [0.0, 15.0, 5.0, 10.0]


def test_a_node_that_leaves_takes_its_pods_along_and_one_that_comes_serves_the_queue() -> None:
    rows = pl.DataFrame({
        "name": ["old", "new"], "cpu_milli": [8000, 8000], "memory_mib": [0, 0], "num_gpu": [1, 1],
        "gpu_model": ["T4", "T4"], "add_s": [None, 7.0], "remove_s": [4.0, None],
    })  # fmt: skip
    load = pods({"duration_s": 10.0}, {"submit_s": 1.0, "duration_s": 2.0})
    result = played(Cluster.from_arrow(rows), load, OnlinePlan(FGD.terms, queue="fifo"))
    assert result.jobs["state"].to_list() == ["node_lost", "finished"]
    assert result.jobs["end_s"].to_list() == [4.0, 9.0]
    assert result.timeline["event"].to_list() == ["arrival", "arrival", "node", "node", "retry", "departure", "end"]
    assert result.timeline["gpu_milli_capacity"].to_list() == [1000, 1000, 0, 1000, 1000, 1000, 1000]


@pytest.mark.parametrize("options", [
    {}, {"failures": "mtbf=8,mttr=2", "seed": 1, "until_s": 60.0}, {"maintenance": [("n", 50.0, 60.0)]},
    {"deschedule": ("frag_one_pod:0.5@50",)},
])  # fmt: skip
def test_no_sample_stands_beside_the_row_of_the_end(options: dict[str, Any]) -> None:
    pod = {"pod_id": 0, "submit_s": 9.0, "cpu_milli": 1, "memory_mib": 0, "num_gpu": 0, "gpu_milli": 0,
           "duration_s": 10.0}  # fmt: skip
    pods = fs.Workload.from_arrow(pa.Table.from_pylist([pod], pod_schema(pod)))
    nodes = fs.Cluster.from_arrow(pa.Table.from_pylist([{"name": "n", "cpu_milli": 9, "memory_mib": 9, "num_gpu": 0}]))
    rows = fs.simulate(nodes, pods, "best_fit", sample_s=1.0, **options).timeline.select("t_s", "event").rows()
    assert rows[-2:] == [(18.0, "sample"), (19.0, "end")]


def test_samples_stand_at_multiples_of_the_interval() -> None:
    load = pods({"submit_s": 3.0, "duration_s": 20.0}, {"submit_s": 10.0})
    timeline = played(one_gpu_nodes(2), load, sample_s=5.0).timeline
    assert timeline["t_s"].to_list() == [5.0, 10.0, 15.0, 20.0, 23.0]
    assert timeline["pods_running"].to_list() == [1, 1, 2, 2, 1]  # the sample at 10 s precedes the arrival


def test_nothing_happens_after_the_horizon() -> None:
    load = pods({"duration_s": 4.0}, {"submit_s": 1.0, "duration_s": 9.0}, {"submit_s": 6.0})
    result = played(one_gpu_nodes(1), load, OnlinePlan(FGD.terms, queue="fifo"), until_s=5.0)
    assert result.jobs["state"].to_list() == ["finished", "running"]
    assert result.summary["pods"].item() == 2


def test_means_over_time_are_the_integral_of_the_timeline() -> None:
    load = pods({"duration_s": 4.0}, {"submit_s": 2.0, "duration_s": 4.0})
    summary = played(one_gpu_nodes(2), load).summary
    assert summary["mean_gpu_alloc_pct"].item() == pytest.approx(100 * (1 * 2 + 2 * 2 + 1 * 2) / (2 * 6))
    assert summary["makespan_s"].item() == 6.0
    # One T4 draws 10 W at rest and 70 W in use, one socket 15 W at rest and 120 W in use.
    watts = 2 * (10 + 15) + (2 + 4 + 2) / 6 * (60 + 105)
    assert summary["mean_power_w"].item() == pytest.approx(watts)
    assert summary["energy_kwh"].item() == pytest.approx(watts * 6 / 3.6e6)


def test_an_empty_workload_is_a_result_too() -> None:
    nothing = pods({}).table().slice(0, 0)
    result = played(one_gpu_nodes(1), Workload.from_arrow(nothing))
    assert result.summary["pods"].item() == 0
    assert result.timeline["event"].to_list() == ["end"]


def test_batches_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    load = pods(*({"submit_s": float(k // 3), "duration_s": 1.0 + k % 4} for k in range(40)))
    whole = played(one_gpu_nodes(3), load, OnlinePlan(FGD.terms, queue="fifo_skip"))
    monkeypatch.setattr(load, "batches", lambda rows=65_536: Workload.batches(load, 7))
    pieces = played(one_gpu_nodes(3), load, OnlinePlan(FGD.terms, queue="fifo_skip"))
    assert whole.timeline.equals(pieces.timeline) and whole.jobs.equals(pieces.jobs)


def scored(scorer: Any) -> OnlinePlan:
    return OnlinePlan((ScoreTerm("python", scorer=scorer),))


def test_a_users_scorer_sees_the_nodes_and_decides() -> None:
    seen: list[Any] = []

    def last_first(nodes: Any, pod: Any) -> Any:
        seen.append((pod.num_gpu, nodes.gpu_free[:, 0].tolist(), nodes.feasible.tolist()))
        return np.arange(len(nodes.cpu_free))

    result = played(one_gpu_nodes(3), pods({}, {}, {}), scored(last_first))
    assert result.placements["node_id"].to_list() == [2, 1, 0]
    assert seen == [(1, [1000, 1000, 1000], [1, 1, 1]), (1, [1000, 1000, 0], [1, 1, 0])]


def test_a_users_scorer_may_not_write() -> None:
    def greedy(nodes: Any, pod: Any) -> Any:
        nodes.cpu_free[:] = 0

    with pytest.raises(PolicyError, match="read-only"):
        played(one_gpu_nodes(3), pods({}), scored(greedy))


@pytest.mark.parametrize("answer", [np.array(["a", "b", "c"]), np.zeros(2, int), "abc"])
def test_a_users_scorer_must_answer_one_number_a_node(answer: Any) -> None:
    with pytest.raises(PolicyError, match="3 numbers, one for every node"):
        played(one_gpu_nodes(3), pods({}), scored(lambda nodes, pod: answer))


def test_an_unknown_record_is_refused() -> None:
    with pytest.raises(InputError, match="one of none, summary"):
        played(one_gpu_nodes(1), pods({}), record="everything")


@pytest.mark.parametrize(("record", "rows", "placed"), [("none", 0, 0), ("summary", 0, 0), ("timeline", 3, 0),
                                                        ("placements", 0, 2), ("all", 3, 2)])  # fmt: skip
def test_only_what_is_recorded_is_kept(record: str, rows: int, placed: int) -> None:
    result = played(one_gpu_nodes(2), pods({}, {}), record=record)
    frames = [result.frames[name] for name in ("timeline", "placements", "jobs")]
    assert [len(frame) for frame in frames] == [rows, placed, placed]
    assert result.summary["pods"].item() == 2


def test_more_models_than_a_mask_holds_are_refused() -> None:
    rows = pa.table({
        "name": [f"n{k}" for k in range(64)], "cpu_milli": [1] * 64, "memory_mib": [1] * 64, "num_gpu": [1] * 64,
        "gpu_model": [f"m{k}" for k in range(64)], "gpu_idle_w": [1.0] * 64, "gpu_peak_w": [1.0] * 64,
    })  # fmt: skip
    with pytest.raises(InputError, match="found 64 distinct models, expected at most 63"):
        played(Cluster.from_arrow(rows), pods({}))


def test_mean_allocation_is_of_the_capacity_there_was() -> None:
    rows = pl.DataFrame({
        "name": ["stays", "leaves"], "cpu_milli": [8000, 8000], "memory_mib": [0, 0], "num_gpu": [1, 1],
        "gpu_model": ["T4", "T4"], "remove_s": [None, 4.0],
    })  # fmt: skip
    summary = played(Cluster.from_arrow(rows), pods({"duration_s": 10.0})).summary
    assert summary["mean_gpu_alloc_pct"].item() == pytest.approx(100 * 10 / (10 + 4))

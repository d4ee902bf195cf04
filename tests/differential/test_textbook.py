"""Gangs, preemption, failures, quotas, fair shares and backfilling, each with a case worked out by hand.

Every node of these cases has CPU only; amounts are thousandths of a CPU and times are seconds. Unless a case says
otherwise pods arrive one second apart, as they are listed.
"""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.engine.online.plan import OnlinePlan, ScoreTerm
from fastsim.scenario.outages import Maintenance, Outages
from fastsim.scenario.run_rules import NO_RULES, Rules
from fastsim.workload import Workload
from fastsim.workload.schema import pod_schema
from fastsim.workload.typical_pods import TypicalPods
from tests.differential.ext.online.test_online import agreed
from tests.reference.online.tables import ReferenceRun
from tests.strategies import Scenario

Rows = list[dict[str, Any]]


def cluster(*rows: dict[str, Any]) -> Cluster:
    base = {"cpu_milli": 4000, "memory_mib": 1000, "num_gpu": 0}
    return Cluster.mix([(1, {**base, **row, "name": f"n{i}"}) for i, row in enumerate(rows)])


def run(
    rows: list[dict[str, Any]], nodes: Cluster, queue: str = "drop", rules: Rules = NO_RULES, **options: Any
) -> ReferenceRun:
    """Both engines agree, and this is their answer."""
    base = {"cpu_milli": 4000, "memory_mib": 0, "num_gpu": 0, "gpu_milli": 0}
    pods = [{"pod_id": i, "submit_s": float(i), **base, **row} for i, row in enumerate(rows)]
    schema = pod_schema({name for row in pods for name in row})
    workload = Workload.from_arrow(pa.Table.from_pylist(pods, schema))
    plan = OnlinePlan((ScoreTerm("best_fit", normalise="min_max_0"),), queue=queue)
    given = {"seed": 0, "sample_s": None, "until_s": None, **options}
    return agreed(Scenario(nodes, workload, plan, TypicalPods.of(workload), rules=rules, **given))


def starts(result: ReferenceRun) -> list[float | None]:
    return result.jobs["start_s"].to_list()


def spans(result: ReferenceRun, pod: int) -> list[tuple[Any, ...]]:
    """(node, start, end, reason) of every interval of a pod."""
    rows = result.placements.filter(pl.col("pod_id") == pod)
    return list(rows.select("node_id", "start_s", "end_s", "reason").iter_rows())


ONE, TWO = cluster({}), cluster({}, {})
GANG: dict[str, Any] = {"job_id": 7, "gang_size": 2}


def test_conditions_keep_pods_from_nodes() -> None:
    zones = cluster({"labels": {"zone": "a"}}, {"labels": {"zone": "b"}, "extra_resources": {"nic": 2}})
    small = {"cpu_milli": 500}
    result = run([
        {**small, "constraints": [{"key": "zone", "op": "In", "values": ["b"]}]},
        {**small, "pinned_node": "n0-0000"},
        {**small, "extra_resources": [("nic", 2)]},
        {**small, "extra_resources": [("nic", 1)]},  # all of it is taken
        {"pinned_node": "n0-0000"},  # a whole node, but a part of n0 is taken
        {**small, "pinned_node": "n9"},  # no node has this name
    ], zones)  # fmt: skip
    assert result.jobs["reason"].to_list() == ["running", "running", "running", "no_extra", "no_cpu", "no_match"]
    assert result.placements["node_id"].to_list()[:3] == [1, 0, 1]


def test_conditions_limit_the_pods_of_a_group_on_a_node() -> None:
    one = {"cpu_milli": 100, "group": "g", "max_per_node": 1}
    result = run([one, one, one, {**one, "max_per_node": 2}, {**one, "group": "h"}, {**one, "max_per_node": None}], TWO)
    assert result.jobs["reason"].to_list() == ["running", "running", "pod_limit", "running", "running", "running"]


def test_conditions_device_memory_is_counted_by_device() -> None:
    card = cluster({"num_gpu": 2, "gpu_model": "T4", "gpu_memory_mib": 16})
    part = {"cpu_milli": 0, "num_gpu": 1, "gpu_milli": 100, "gpu_memory_mib": 10}
    # `best` would put all three on the first device; 10 + 10 MiB do not fit on one of 16.
    result = run([part, part, part, {**part, "gpu_memory_mib": 6}, {**part, "gpu_memory_mib": 17}], card)
    assert result.jobs["reason"].to_list() == ["running", "running", "no_gpu", "running", "no_gpu_memory"]
    assert result.placements["gpu_ids"].to_list() == [[0], [1], [], [0], []]


def test_gangs_start_together_or_not_at_all() -> None:
    member = {"cpu_milli": 3000, **GANG}
    assert starts(run([member, member], TWO)) == [1.0, 1.0]
    crowded = run([{"cpu_milli": 2000}, member, member], TWO)
    assert starts(crowded) == [0.0, None, None]
    assert crowded.jobs["reason"].to_list() == ["running", "gang", "no_cpu"]
    assert crowded.timeline["cpu_milli_alloc"].to_list() == [2000, 2000, 2000, 2000]


def test_a_gang_stands_where_the_most_urgent_of_its_pods_would() -> None:
    member = {"cpu_milli": 2000, "duration_s": 10.0, **GANG}
    rows: Rows = [{"duration_s": 10.0}, {"duration_s": 10.0, "deadline_s": 50.0}, {**member, "deadline_s": None},
                  {**member, "deadline_s": 40.0}, {"duration_s": 10.0, "deadline_s": 45.0}]  # fmt: skip
    assert starts(run(rows, ONE, "edf")) == [0.0, 30.0, 10.0, 10.0, 20.0]
    assert starts(run(rows, ONE, "-column(deadline_s)")) == [0.0, 10.0, 30.0, 30.0, 20.0]


@pytest.mark.parametrize("queue", ["drop", "fifo", "priority", "fifo_skip", "drf"])
def test_gangs_that_no_empty_cluster_could_start_block_nobody(queue: str) -> None:
    member = {"cpu_milli": 3000, **GANG}
    result = run([member, member, {"cpu_milli": 1000}], ONE, queue)
    assert result.jobs["reason"].to_list() == ["gang_too_large", "gang_too_large", "running"]
    # A node hosts two of 1500, so five pods are one too many on two nodes.
    fifth = {"cpu_milli": 1500, "job_id": 8, "gang_size": 5}
    result = run([fifth] * 5 + [{"cpu_milli": 4000}], TWO, queue)
    assert result.jobs["reason"].to_list() == ["gang_too_large"] * 5 + ["running"]
    assert starts(run([{**fifth, "gang_size": 4}] * 4, TWO, queue)) == [3.0] * 4


@pytest.mark.parametrize("queue", ["drop", "fifo", "priority", "fifo_skip", "drf"])
def test_quotas_that_are_smaller_than_a_pod_or_a_gang_block_nobody(queue: str) -> None:
    rules, anna = Rules(quotas={"anna": {"cpu_milli": 2000}}), {"tenant": "anna"}
    result = run([{"cpu_milli": 2001, **anna}, {"cpu_milli": 2000, **anna}], ONE, queue, rules)
    assert result.jobs["reason"].to_list() == ["over_quota", "running"]
    gang = {"cpu_milli": 1500, **anna, **GANG}
    result = run([gang, gang, {"cpu_milli": 2000, **anna}], ONE, queue, rules)
    assert result.jobs["reason"].to_list() == ["gang", "over_quota", "running"]


def test_conditions_that_shut_out_every_node_that_is_large_enough_are_the_reason() -> None:
    zones = cluster({"labels": {"zone": "a"}}, {"labels": {"zone": "b"}, "cpu_milli": 1000})
    there = {"constraints": [{"key": "zone", "op": "In", "values": ["b"]}]}
    result = run([{"cpu_milli": 2000, **there}, {"cpu_milli": 5000, **there}, {"cpu_milli": 4000}], zones, "fifo")
    assert result.jobs["reason"].to_list() == ["no_match", "too_large", "running"]


def test_gangs_wait_for_their_last_member_even_at_the_end() -> None:
    result = run([{**GANG, "gang_size": 3}] * 2, TWO)
    assert result.jobs["reason"].to_list() == ["pending", "pending"]
    assert result.timeline["pods_pending"].to_list() == [1, 2, 2]


def test_gangs_are_one_entry_of_the_line() -> None:
    # 3000 of 4000 until 5 s. The gang (2 x 2000) stands where its second member joined, before the pod of 1000, which
    # waits behind it in a strict line and takes the free 1000 at once in one that skips.
    rows: Rows = [{"cpu_milli": 3000, "duration_s": 5.0}, *[{"cpu_milli": 2000, "duration_s": 4.0, **GANG}] * 2,
            {"cpu_milli": 1000, "duration_s": 1.0}]  # fmt: skip
    assert starts(run(rows, ONE, "fifo")) == [0.0, 5.0, 5.0, 9.0]
    assert starts(run(rows, ONE, "fifo_skip")) == [0.0, 5.0, 5.0, 3.0]


def test_gangs_a_job_has_several_one_after_another() -> None:
    rows: Rows = [{"cpu_milli": 1000, **GANG}] * 5
    assert starts(run(rows, ONE)) == [1.0, 1.0, 3.0, 3.0, None]


def test_gangs_stop_together_when_a_member_loses_its_node() -> None:
    # Each member fills a node; n0 goes at 3 s and is back at 5 s. Both begin again, on both nodes.
    rules = Rules(on_node_loss="requeue", outages=Outages(maintenance=(Maintenance("n0-0000", 3.0, 5.0),)))
    result = run([{**GANG, "duration_s": 6.0}] * 2, TWO, "fifo", rules)
    assert [spans(result, pod) for pod in (0, 1)] == [
        [(0, 1.0, 3.0, "node_lost"), (0, 5.0, 11.0, "finished")],
        [(1, 1.0, 3.0, "node_lost"), (1, 5.0, 11.0, "finished")],
    ]
    assert result.jobs["lost_work_s"].to_list() == [2.0, 2.0]
    lost = run([{**GANG, "duration_s": 6.0}] * 2, TWO, rules=Rules(outages=rules.outages))
    assert lost.jobs["state"].to_list() == ["node_lost", "node_lost"]


def test_preemption_stops_the_least_important_pods_that_suffice() -> None:
    # n0: 1000 of priority 3 and 3000 of priority 1; n1: 4000 of priority 2. A pod of 3000 with priority 5 needs only
    # the pod of priority 1 on n0 (highest victim 1), on n1 it would need one of priority 2.
    rows: Rows = [{"cpu_milli": 1000, "priority": 3}, {"cpu_milli": 3000, "priority": 1}, {"priority": 2},
            {"cpu_milli": 3000, "priority": 5, "duration_s": 4.0}]  # fmt: skip
    result = run(rows, TWO, "fifo", Rules(preempt="priority"))
    assert [spans(result, pod)[0][:3] for pod in (0, 2, 3)] == [(0, 0.0, None), (1, 2.0, None), (0, 3.0, 7.0)]
    assert spans(result, 1) == [(0, 1.0, 3.0, "preempted"), (0, 7.0, None, "running")]
    assert result.jobs["preemptions"].to_list() == [0, 1, 0, 0] and result.jobs["attempts"].to_list() == [1, 2, 1, 1]
    assert starts(run(rows, TWO, "fifo")) == [0.0, 1.0, 2.0, None]


@pytest.mark.parametrize(
    ("first", "second", "node"),
    [
        ([(2000, 1, 0.0), (2000, 1, 1.0)], [(2000, 1, 0.0), (2000, 0, 1.0)], 1),  # sum of priorities: 2 and 1
        ([(2000, 1, 0.0), (2000, 0, 1.0)], [(4000, 1, 0.0)], 1),  # victims: 2 and 1
        ([(4000, 1, 0.0)], [(4000, 1, 1.0)], 1),  # the later start
        ([(4000, 1, 0.0)], [(4000, 1, 0.0)], 0),  # the smaller position
        ([(4000, 2, 1.0)], [(1000, 1, 0.0), (3000, 1, 0.0)], 1),  # the lower highest priority, whatever else
    ],
)
def test_preemption_chooses_its_node_by_cost(first: Any, second: Any, node: int) -> None:
    here = [(n, *pod) for n, pods in enumerate((first, second)) for pod in pods]
    rows: Rows = [{"cpu_milli": cpu, "priority": priority, "submit_s": t, "pinned_node": f"n{n}-0000"}
            for n, cpu, priority, t in sorted(here, key=lambda row: row[3])]  # fmt: skip
    result = run([*rows, {"priority": 9, "submit_s": 5.0}], TWO, rules=Rules(preempt="priority"))
    assert spans(result, len(rows))[0][:2] == (node, 5.0)
    gone = result.jobs.filter(pl.col("state") == "preempted")["pod_id"].to_list()
    assert gone == [i for i, row in enumerate(rows) if row["pinned_node"] == f"n{node}-0000"]


def test_preemption_spares_equals_and_those_who_may_not_be_stopped() -> None:
    rules = Rules(preempt="priority")
    spared: Rows = [{"priority": 1}, {"priority": 0, "preemptible": False}]
    for pod in spared:
        assert run([pod, {"priority": 1}], ONE, rules=rules).jobs["state"].to_list() == ["running", "unplaced"]
    assert run([{}, {"priority": 1}], ONE, rules=rules).jobs["state"].to_list() == ["preempted", "running"]


def test_preemption_work_since_the_last_checkpoint_is_lost() -> None:
    # 7 of 10 s are done when the important pod takes the node for 2 s. Checkpoints every 3 s keep 6, so 1 is lost;
    # the rest is 1 s of restart and 4 s of work, from 9 to 14 s. 7 + 5 = 10 + 1 lost + 1 restart.
    rows: Rows = [{"duration_s": 10.0}, {"submit_s": 7.0, "duration_s": 2.0, "priority": 1}]
    checkpoints = Rules(preempt="priority", checkpoint_every_s=3.0, restart_s=1.0)
    result = run(rows, ONE, "fifo", checkpoints)
    assert spans(result, 0) == [(0, 0.0, 7.0, "preempted"), (0, 9.0, 14.0, "finished")]
    assert result.jobs["lost_work_s"].to_list() == [1.0, 0.0]
    for every, end_s, lost_s in ((None, 19.0, 7.0), (0.0, 12.0, 0.0), (20.0, 19.0, 7.0)):
        result = run(rows, ONE, "fifo", Rules(preempt="priority", checkpoint_every_s=every))
        assert (result.jobs["end_s"][0], result.jobs["lost_work_s"][0]) == (end_s, lost_s)


def test_failures_lose_pods_or_make_them_wait_again() -> None:
    away = Outages(maintenance=(Maintenance("n0-0000", 2.0, 5.0),))
    rows: Rows = [{"duration_s": 4.0}]
    lost = run(rows, ONE, rules=Rules(outages=away))
    assert spans(lost, 0) == [(0, 0.0, 2.0, "node_lost")] and lost.jobs["lost_work_s"].to_list() == [2.0]
    again = run(rows, ONE, "fifo", Rules(outages=away, on_node_loss="requeue"))
    assert spans(again, 0) == [(0, 0.0, 2.0, "node_lost"), (0, 5.0, 9.0, "finished")]
    assert again.timeline["event"].to_list() == ["arrival", "node", "node", "retry", "departure", "end"]


def test_failures_a_node_is_there_when_nothing_keeps_it_away() -> None:
    windows = (Maintenance("n0-0000", 1.0, 4.0), Maintenance("n0-0000", 3.0, 6.0), Maintenance("n0-0000", 6.0, 7.0))
    nodes = cluster({"add_s": 2.0, "remove_s": 9.0})
    result = run([{"submit_s": 0.0}], nodes, "fifo", Rules(outages=Outages(maintenance=windows)))
    assert spans(result, 0) == [(0, 7.0, 9.0, "node_lost")]
    states = result.timeline.select("t_s", "cpu_milli_capacity").unique(keep="last", maintain_order=True)
    assert states.rows() == [(t_s, 0) for t_s in (0.0, 1.0, 2.0, 3.0, 4.0, 6.0)] + [(7.0, 4000), (9.0, 0)]


def test_failures_end_with_the_work() -> None:
    rows: Rows = [{"duration_s": 3.0}, {"submit_s": 50.0, "duration_s": 3.0}]
    rules = Rules(on_node_loss="requeue", checkpoint_every_s=0.0, outages=Outages(mtbf_s=2.0, mttr_s=1.0))
    result = run(rows, ONE, "fifo", rules, seed=4)
    assert result.jobs["state"].to_list() == ["finished", "finished"]
    busy_s = result.placements.select((pl.col("end_s") - pl.col("start_s")).sum()).item()
    assert busy_s == pytest.approx(6.0) and result.jobs["attempts"].sum() > 2  # rounding of a dozen differences
    assert result.timeline["event"][-2] == "departure"
    stuck = run([{"cpu_milli": 3000}, {"cpu_milli": 3000}], ONE, "fifo", rules, seed=4, until_s=1e6)
    # Nothing can wake a run whose pods never end: it goes on as it is.
    assert stuck.timeline["t_s"][-2] < 1e3 and stuck.timeline.select("t_s", "event").row(-1) == (1e6, "end")


def test_quotas_hold_back_one_tenant_only() -> None:
    # Anna may use 2000. Her second pod waits for her first, although the line is strict; Bert's goes on.
    rows: Rows = [{"cpu_milli": 2000, "tenant": "anna", "duration_s": 5.0}, {"cpu_milli": 1000, "tenant": "anna"},
            {"cpu_milli": 1000, "tenant": "bert"}, {"cpu_milli": 3000, "tenant": "bert"}]  # fmt: skip
    rules = Rules(quotas={"anna": {"cpu_milli": 2000}})
    assert starts(run(rows, ONE, "fifo", rules)) == [0.0, 5.0, 2.0, None]
    dropped = run(rows, ONE, "drop", rules)
    assert dropped.jobs["reason"].to_list() == ["finished", "over_quota", "running", "no_cpu"]


def test_quotas_everybody_else_has_the_starred_one_each() -> None:
    rules = Rules(quotas={"*": {"memory_mib": 10}, "anna": {}})
    rows: Rows = [
        {"cpu_milli": 100, "memory_mib": 10, "tenant": tenant} for tenant in ("anna", "bert", None) for _ in "12"
    ]
    assert run(rows, ONE, rules=rules).jobs["state"].to_list() == [
        "running", "running", "running", "unplaced", "running", "unplaced",
    ]  # fmt: skip


def test_drf_the_published_example() -> None:
    # Ghodsi et al., NSDI 2011: 9 CPU and 18 GB; A asks for (1, 4), B for (3, 1). Shares after each start:
    # A 4/18, B 3/9, A 8/18, B 6/9, A 12/18, and all CPUs are taken: three pods of A, two of B.
    nodes = cluster({"cpu_milli": 9000, "memory_mib": 18})
    rows: Rows = [{"cpu_milli": 9000, "memory_mib": 18, "duration_s": 100.0, "tenant": "C"}]
    rows += [{"cpu_milli": 1000, "memory_mib": 4, "tenant": "A"}] * 4
    rows += [{"cpu_milli": 3000, "memory_mib": 1, "tenant": "B"}] * 4
    result = run(rows, nodes, "drf")
    assert starts(result)[1:] == [100.0, 100.0, 100.0, None, 100.0, 100.0, None, None]
    # A weighs 4: after A 1/18 and B 6/18 all that A has comes first, up to 4/18, and B's second pod lacks a CPU then.
    heavier = run(rows, nodes, "drf", Rules(weights={"A": 4.0}))
    assert starts(heavier)[1:] == [100.0, 100.0, 100.0, 100.0, 100.0, None, None, None]


def test_drf_keeps_the_order_inside_a_tenant() -> None:
    rows: Rows = [{"cpu_milli": 3000, "tenant": "A"}, {"cpu_milli": 2000, "tenant": "A"},
            {"cpu_milli": 500, "tenant": "A"}, {"cpu_milli": 1000, "tenant": "B"}]  # fmt: skip
    assert starts(run(rows, ONE, "drf")) == [0.0, None, None, 3.0]


TEN = cluster({"cpu_milli": 10_000})


def job(cpus: int, seconds: float | None, told: float | None = None) -> dict[str, Any]:
    return {"cpu_milli": 1000 * cpus, "duration_s": seconds, "est_duration_s": told}


def test_easy_backfills_what_does_not_delay_the_head() -> None:
    # The second job (8 CPUs) is promised 10 s, when the first (6) ends. The third ends at 7 s: it may run. The fourth
    # runs on, but 2 + 8 <= 10 CPUs at 10 s: it may run, too. The fifth (1, for 100 s) would leave 7 of 8: it may not.
    rows: Rows = [job(6, 10.0), job(8, 5.0), job(2, 5.0), job(2, 100.0), {**job(1, 100.0), "submit_s": 8.0}]
    assert starts(run(rows, TEN, "easy")) == [0.0, 10.0, 2.0, 3.0, 15.0]
    assert starts(run(rows, TEN, "fifo")) == [0.0, 10.0, 10.0, 15.0, 15.0]


def test_easy_chooses_another_node_than_the_heads() -> None:
    # n0 frees its 4000 at 10 s for the head. A pod of 1000 for ever fits best there (n0 has 1000 left, n1 has 2000),
    # and would delay the head, so it goes to n1.
    rows: Rows = [{"cpu_milli": 3000, "duration_s": 10.0, "pinned_node": "n0-0000"},
            {"cpu_milli": 2000, "duration_s": 20.0, "pinned_node": "n1-0000"}, {}, {"cpu_milli": 1000}]  # fmt: skip
    assert [spans(run(rows, TWO, "easy"), pod)[0][:2] for pod in (2, 3)] == [(0, 10.0), (1, 3.0)]


def test_easy_believes_what_it_is_told() -> None:
    # Told 4 s, the first job runs 10: the head's promise has passed at 4 s and is renewed with every look. The third
    # job is told to end at 7 s, after the promise of 4 s, and would take the head's CPUs: it waits.
    rows: Rows = [job(6, 10.0, 4.0), job(9, 5.0), job(2, 5.0)]
    assert starts(run(rows, TEN, "easy")) == [0.0, 10.0, 15.0]
    assert starts(run([job(6, 10.0), *rows[1:]], TEN, "easy")) == [0.0, 10.0, 2.0]


def test_conservative_delays_nobody_who_waits() -> None:
    # Promises: the second job at 10 s, the third (9 CPUs) at 20 s until 30. The fourth (2 CPUs for 30 s) delays only
    # the third: EASY starts it at 3 s, so that the third waits until 33; a conservative scheduler starts it at 30.
    rows: Rows = [job(6, 10.0), job(8, 10.0), job(9, 10.0), job(2, 30.0)]
    assert starts(run(rows, TEN, "easy")) == [0.0, 10.0, 33.0, 3.0]
    assert starts(run(rows, TEN, "conservative")) == [0.0, 10.0, 20.0, 30.0]
    rows[3] = job(2, 7.0)
    assert starts(run(rows, TEN, "conservative")) == [0.0, 10.0, 20.0, 3.0]


def test_promises_of_small_pods_on_a_node_where_large_ones_never_fit() -> None:
    # Four GPUs are free at 40 s. The third pod (2 GPUs) is promised the node of two GPUs at 21 s, and the fourth
    # (1 GPU) the same node at 26 s, however often both ask.
    nodes = cluster({"num_gpu": 4, "gpu_model": "T4"}, {"num_gpu": 2, "gpu_model": "T4"})
    requests = [(4, 40.0), (2, 20.0), (2, 5.0), (1, 10.0)]
    rows: Rows = [{"cpu_milli": 0, "num_gpu": gpus, "gpu_milli": 1000, "duration_s": s} for gpus, s in requests]
    assert starts(run(rows, nodes, "conservative")) == [0.0, 1.0, 21.0, 26.0]


def test_nobody_backfills_past_a_job_that_never_ends() -> None:
    rows: Rows = [job(6, None), job(8, 5.0), job(4, None)]
    for queue in ("easy", "conservative"):
        assert starts(run(rows, TEN, queue)) == [0.0, None, 2.0]  # no promise can be kept, so none can be broken

"""The engine with a listener: who is told what, and that the run itself stays the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fastsim as fs
from fastsim.cluster.cluster import Cluster
from fastsim.decisions.explain import explained
from fastsim.decisions.replay import Replay, SelectedPod
from fastsim.engine.online.options import OnlineOptions
from fastsim.engine.online.plan import QUEUES, OnlinePlan, ScoreTerm
from fastsim.engine.online.run import run_online
from fastsim.engine.tables import REASONS
from fastsim.scenario.scenario import Scenario as Spec
from fastsim.simulation.engines.pods import Prepared
from fastsim.workload import Workload
from fastsim.workload.schema import pod_schema
from fastsim_ext.online.decision_trace import (
    ABSENT,
    LACKS_CPU,
    LACKS_GPU,
    LACKS_MEMORY,
    LACKS_POD_SLOT,
    DecisionTrace,
    filtered,
    lacking,
    picked,
    scored,
)
from fastsim_ext.online.loop import OnlineLoop
from tests.strategies import Scenario, ruled, scenarios_per_run
from tests.unit.ext.select.test_scan import BEST_FIT, LOOP, Decision, mixed
from tests.unit.ext.state.test_node_table import t4

FOREVER = None
NODE = {"cpu_milli": 4000, "memory_mib": 1000, "num_gpu": 0}


class Listener:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def before(self, seq: int, cls: int, t_s: float) -> None:
        """A decision is about to be taken."""
        self.told.append(("before", seq, cls, t_s))

    def after(self, seq: int, node: int, gpus: int, how: str) -> None:
        """It has been taken; no rule affects it."""
        assert not how
        self.told.append(("after", seq, node, gpus))

    def never(self, seq: int, cls: int, t_s: float, reason: int) -> None:
        """There is nothing to decide."""
        self.told.append((REASONS[reason], seq, cls, t_s))


def watched(decision: Decision, *seqs: int, **options: Any) -> Listener:
    """A listener to the decisions about these arrivals."""
    listener, marks = Listener(), np.zeros(max(seqs) + 1, np.uint8)
    marks[list(seqs)] = 1
    given = {**LOOP, **options}
    decision.online = DecisionTrace(decision.table.nodes, decision.work, decision.select, given, marks, listener)
    return listener


def table(decision: Decision, cls: int) -> list[tuple[int, int, int]]:
    """(reason, found, needed) of every node."""
    n = decision.table.nodes.count
    reason, found, needed = np.zeros(n, np.int32), np.full(n, 77, np.int64), np.full(n, 77, np.int64)
    filtered(decision.select, cls, reason, found, needed)
    return list(zip(reason.tolist(), found.tolist(), needed.tolist(), strict=True))


def test_only_the_marked_pods_are_told_of() -> None:
    decision = Decision(t4(1))
    listener = watched(decision, 1, 3)
    half, huge = decision.pod(1, 500), decision.pod(3)
    decision.feed((half, 1.0, 5.0), (half, 2.0, 5.0), (half, 3.0, 5.0), (huge, 4.0, 5.0), (half, 5.0, 5.0))
    decision.online.advance(100)
    assert listener.told == [("before", 1, half, 2.0), ("after", 1, 0, 0b1), ("too_large", 3, huge, 4.0)]


def test_every_attempt_of_a_waiting_pod_is_told() -> None:
    decision = Decision(t4(1, gpus=1))
    listener = watched(decision, 1, 2, queue=QUEUES.index("fifo"))
    cls = decision.pod()
    decision.feed((cls, 0.0, 4.0), (cls, 1.0, 4.0), (cls, 2.0, FOREVER))
    decision.online.advance(100)
    assert listener.told == [
        ("before", 1, cls, 1.0), ("after", 1, -1, 0),
        ("before", 1, cls, 4.0), ("after", 1, 0, 0b1), ("before", 2, cls, 4.0), ("after", 2, -1, 0),
        ("before", 2, cls, 8.0), ("after", 2, 0, 0b1),
    ]  # fmt: skip


def test_a_pod_that_is_moved_is_told_of() -> None:
    decision = Decision(t4(2, gpus=1))
    listener = watched(decision, 0)
    cls = decision.pod()
    decision.feed((cls, 0.0, FOREVER), (cls, 1.0, FOREVER))
    decision.online.advance(100)
    for slot in (0, 1):
        decision.online.evict(slot)
    assert decision.online.move(1) and decision.online.move(0)
    assert listener.told[2:] == [("before", 0, cls, 1.0), ("after", 0, 1, 0b1)]
    decision.online.evict(0)
    decision.table.nodes.load(1, 8000, 64, [0], {1: 1})
    assert decision.online.move(0) is False
    assert listener.told[-1] == ("after", 0, -1, 0)
    with pytest.raises(IndexError, match="no evicted pod"):
        decision.online.move(7)


def test_what_the_listener_raises_ends_the_run() -> None:
    class Done(Exception):
        pass

    def enough(*_: object) -> None:
        raise Done

    decision = Decision(t4(1))
    listener = watched(decision, 1)
    listener.after = enough  # type: ignore[method-assign, assignment]
    cls = decision.pod()
    decision.feed((cls, 0.0, 1.0), (cls, 1.0, 1.0), (cls, 2.0, 1.0))
    with pytest.raises(Done):
        decision.online.advance(100)
    assert decision.online.arrived == 2


def test_a_run_with_a_witness_is_the_same_run() -> None:
    plan = OnlinePlan((ScoreTerm("random"),), gpu_pick="random")
    runs = []
    for kind in (OnlineLoop, DecisionTrace):
        decision = Decision(t4(4), plan, seed=3)
        if kind is DecisionTrace:
            watched(decision, *range(40))
        cls = decision.pod(1, 300)
        decision.feed(*((cls, float(i), 9.0) for i in range(40)))
        decision.online.advance(1000)
        assert type(decision.online) is kind
        runs.append(decision.work.drain())
    assert runs[0] == runs[1]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ((1, 400, 0, 0, "A10"), [("no_gpu_model", 0, 0b10), (None, 0, 0), ("no_gpu_model", -1, 0b10)]),
        ((2, 1000), [("no_gpu", 1, 2), (None, 0, 0), ("no_gpu", 0, 2)]),
        ((0, 0, 3000), [("no_cpu", 2500, 3000), (None, 0, 0), ("no_pod_slot", 0, 1)]),
        ((0, 0, 0, 21), [("no_memory", 10, 21), ("no_memory", 20, 21), ("no_pod_slot", 0, 1)]),
    ],
)
def test_what_a_node_has_and_needs(pod: Any, expected: list[tuple[str | None, int, int]]) -> None:
    decision = Decision(mixed())
    assert decision.placed(decision.pod(0, 0, 9000)) == 2  # its only slot
    decision.table.nodes.load(0, 2500, 10, [1000, 300], {0: 1})
    names = [(REASONS[reason] if reason else None, *rest) for reason, *rest in table(decision, decision.pod(*pod))]
    assert names == expected


def test_a_node_that_is_not_there() -> None:
    late = t4(2).nodes.to_pylist()
    late[0]["add_s"] = 9.0
    decision = Decision(Cluster.from_arrow(pa.Table.from_pylist(late, schema=t4().nodes.schema)))
    assert table(decision, decision.pod()) == [(ABSENT, 0, 0), (0, 0, 0)]


def test_points_as_the_formula_gives_them_and_stretched() -> None:
    terms = (ScoreTerm("gpu_packing", 3, "min_max_0"), ScoreTerm("simon"), ScoreTerm("random"))
    decision = Decision(t4(3), OnlinePlan(terms), seed=1)
    decision.table.nodes.load(0, 8000, 64, [0, 0], {1: 2})
    decision.table.nodes.load(1, 8000, 64, [500, 1000], {0: 1})
    cls = decision.pod(1, 500)
    found = []
    for term in range(3):
        raw, points = np.full(3, -5, np.int64), np.full(3, -5, np.int64)
        scored(decision.select, cls, term, raw, points)
        found.append((raw.tolist(), points.tolist()))
    assert found[0] == ([-5, 95, 31], [-5, 100, 0])  # a used device before an empty node; the full node is left out
    assert found[1] == ([-5, 0, 0], [-5, 0, 0])
    assert sorted(found[2][0]) == [-5, 0, 100] and found[2][0][0] == -5
    gpus = np.zeros(3, np.uint64)
    picked(decision.select, cls, gpus)
    assert gpus.tolist() == [0, 0b01, 0b01]
    assert decision.select.attempts == 0


def test_nothing_is_scored_where_nothing_fits() -> None:
    decision = Decision(t4(1), BEST_FIT)
    raw, points = np.full(1, 7, np.int64), np.full(1, 7, np.int64)
    scored(decision.select, decision.pod(3), 0, raw, points)
    assert (raw.tolist(), points.tolist()) == ([7], [7])
    with pytest.raises(IndexError, match="no pod class"):
        picked(decision.select, 9, np.zeros(1, np.uint64))


@pytest.mark.spread(6)
@pytest.mark.parametrize("queue", QUEUES)
@settings(max_examples=scenarios_per_run(20), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_every_decision_is_heard_and_none_is_changed(queue: str, data: st.DataObject) -> None:
    s: Scenario = data.draw(ruled(queues=(queue,), crowded=queue != "drop" and data.draw(st.booleans())))
    options = OnlineOptions(seed=s.seed, until_s=s.until_s, rules=s.rules, record="placements")
    table = s.workload.table()
    selected = {seq: SelectedPod(seq, pod_id, None) for seq, pod_id in enumerate(table["pod_id"].to_pylist())}
    policy: Any = None
    replay = Replay(Prepared(s.cluster, s.workload, policy, s.plan, s.typical, options), selected, "all")
    if replay.rule_columns is None:
        return  # a plain run has its own witness
    replay.play()
    replay.release_memo()
    result = run_online(s.cluster, s.workload, s.plan, s.typical, options)
    stays = result.placements.filter(pl.col("node_id").is_not_null())
    expected = sorted(stays.select("pod_id", "start_s", "node_id", "gpu_ids").rows())
    heard = [d for d in replay.decision_recorder.decisions() if d.node >= 0]
    found = [(d.pod.pod_id, d.t_s, d.node, [g for g in range(64) if d.gpus >> g & 1]) for d in heard]
    assert sorted(found) == expected
    for decision in heard:
        if decision.how == "":
            totals = np.where(decision.reason__n == 0, replay.decision_recorder.weights @ decision.points__tn, -(2**62))
            assert decision.node == totals.argmax() and decision.gpus == decision.gpus__n[decision.node]
        elif decision.how == "preemption":
            assert (decision.reason__n != 0).all()


def told(
    rows: list[dict[str, Any]], pod: int, nodes: list[dict[str, Any]], attempt: str = "placed", **options: Any
) -> tuple[str, list[Any], list[Any]]:
    """(reason, failed checks, why) of the last decision about a pod; pods come a second apart."""
    usual = {"cpu_milli": 4000, "memory_mib": 0, "num_gpu": 0, "gpu_milli": 0}
    pods = [{"pod_id": i, "submit_s": float(i), **usual, **row} for i, row in enumerate(rows)]
    workload = Workload.from_arrow(pa.Table.from_pylist(pods, pod_schema({name for row in pods for name in row})))
    cluster = fs.Cluster.mix([(1, {**NODE, **row, "name": f"n{i}"}) for i, row in enumerate(nodes)])
    found = explained(Spec(cluster, workload, "best_fit", **options), pod, attempt=attempt)
    frame = found.nodes(found.decisions[-1])
    return found.reason(found.decisions[-1]), frame["failed"].to_list(), frame["why"].to_list()


def test_what_nodes_lack_beyond_cpu_and_memory() -> None:
    nodes = [
        {"num_gpu": 1, "gpu_model": "T4", "gpu_memory_mib": 8, "extra_resources": {"nic": 1}},
        {"num_gpu": 1, "gpu_model": "T4", "labels": {"zone": "x"}},
        {"num_gpu": 1, "gpu_model": "T4", "labels": {"zone": "x"}, "extra_resources": {"nic": 2}},
    ]
    gpu = {"cpu_milli": 0, "num_gpu": 1, "gpu_milli": 100}
    _, failed, why = told([{**gpu, "gpu_memory_mib": 16}], 0, nodes)
    assert failed == ["no_gpu_memory", None, None] and why[0] == "0 GPUs have room and memory, needs 1"
    _, failed, why = told([{**gpu, "extra_resources": [("nic", 2)]}], 0, nodes)
    assert failed == ["no_extra", "no_extra", None] and why[:2] == [
        "1 nic free, needs 2", "0 nic free, needs 2"
    ]  # fmt: skip
    zone = [{"key": "zone", "op": "In", "values": ["x"]}]
    _, failed, why = told([{**gpu, "constraints": zone}], 0, nodes)
    assert failed == ["no_match", None, None] and why[0] == "no label zone, needs zone In [x]"
    alone = {**gpu, "group": "g", "max_per_node": 1}
    _, failed, why = told([alone, alone, alone, alone], 3, nodes)
    assert failed == ["pod_limit"] * 3 and why[0] == "1 pods of its group are there, at most 1"
    reason, failed, _ = told([gpu], 0, nodes, maintenance=[("n0-0000", -1.0, 9.0), ("n2-0000", -1.0, 9.0)])
    assert failed == ["absent", None, "absent"] and reason == "only feasible node"


def test_quotas_gangs_and_preemption() -> None:
    quota = {"tenant": "a", "cpu_milli": 1000}
    reason, failed, _ = told([quota, quota], 1, [{}], quotas="a:cpu_milli=1500")
    assert reason == "its tenant would be over the quota" and failed == ["over_quota"]
    gang = {"job_id": 1, "gang_size": 2, "duration_s": 5.0}
    rows = [{"cpu_milli": 1000, "duration_s": 3.0, "gang_size": 1, "job_id": 0}, gang, gang]
    nodes: list[dict[str, Any]] = [{}, {}]
    reason, failed, _ = told(rows, 1, nodes, "first", queue="fifo")
    assert reason == "another pod of its gang fits nowhere" and failed == ["no_cpu", "gang"]
    assert told(rows, 1, nodes, queue="fifo")[0] == "placed with its gang, one member after another"
    reason, failed, why = told([{"priority": 0}, {"priority": 1}], 1, [{}], preempt="priority")
    assert reason == why[0] == "room was made by stopping less important pods" and failed == ["no_cpu"]


@pytest.mark.parametrize("queue", ["easy", "conservative"])
def test_backfilled_and_held_back_by_a_reservation(queue: str) -> None:
    jobs = [{"cpu_milli": cpu, "duration_s": lasts} for cpu, lasts in ((3000, 10.0), (4000, 10.0), (1000, 5.0))]
    assert told(jobs, 2, [{}], queue=queue)[0] == "backfilled past pods ahead in the line, only feasible node"
    jobs[2]["duration_s"] = 50.0
    reason, failed, _ = told(jobs, 2, [{}], "first", queue=queue)
    assert reason == "in the way of a pod ahead in the line" and failed == ["reserved"]


def bits_by_hand(decision: Decision, num_gpu: int, milli: int, cpu: int, mem: int) -> list[int]:
    """Bits of the amounts that each node has too little of, by its columns."""
    columns = decision.table.columns
    short = {
        LACKS_GPU: (columns["gpu_left"].reshape(len(columns["pods"]), -1) >= milli).sum(axis=1) < num_gpu,
        LACKS_CPU: columns["cpu_left"] < cpu, LACKS_MEMORY: columns["mem_left"] < mem,
        LACKS_POD_SLOT: columns["max_pods"] - columns["pods"] < 1,
    }  # fmt: skip
    return [sum(bit for bit, lacks in short.items() if lacks[n]) for n in range(len(columns["pods"]))]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_amount_that_a_node_lacks_is_among_its_bits(data: st.DataObject) -> None:
    decision = Decision(mixed())
    left = st.integers(0, 5)
    for n, (cpu, mem, gpus) in enumerate(((4000, 10, 2), (8000, 20, 4), (16_000, 30, 0))):
        free = data.draw(st.tuples(left, left, st.lists(left, min_size=gpus, max_size=gpus)))
        held = {0: 1} if n == 2 and data.draw(st.booleans()) else {}
        decision.table.nodes.load(n, cpu * free[0] // 5, mem * free[1] // 5, [200 * part for part in free[2]], held)
    asks = data.draw(st.sampled_from([(0, 0), (1, 200), (1, 1000), (2, 1000), (3, 600)]))
    amounts = (*asks, data.draw(st.integers(0, 9000)), data.draw(st.integers(0, 25)))
    bits = np.full(3, 77, np.int32)
    lacking(decision.select, decision.pod(*amounts), bits)
    assert bits.tolist() == bits_by_hand(decision, *amounts)

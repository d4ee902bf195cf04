"""The engine with a listener: who is told what, and that the run itself stays the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.engine.online.plan import QUEUES, OnlinePlan, ScoreTerm
from fastsim.engine.tables import REASONS
from fastsim_ext.online.decision_trace import ABSENT, DecisionTrace, filtered, picked, scored
from fastsim_ext.online.loop import OnlineLoop
from tests.unit.ext.select.test_scan import BEST_FIT, LOOP, Decision, mixed
from tests.unit.ext.state.test_node_table import t4

FOREVER = None


class Listener:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def before(self, seq: int, cls: int, t_s: float) -> None:
        """A decision is about to be taken."""
        self.told.append(("before", seq, cls, t_s))

    def after(self, seq: int, node: int, gpus: int) -> None:
        """It has been taken."""
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

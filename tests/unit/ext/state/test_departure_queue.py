"""The queue of departures and the total order of events, seen through the loop that owns them."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastsim.engine.tables import EVENTS, ROW
from fastsim_ext.state.departure_queue import DepartureQueue
from tests.needs import in_checkout
from tests.unit.ext.select.test_scan import Decision
from tests.unit.ext.state.test_node_table import t4


def crowd() -> tuple[Decision, int]:
    """A node with room for all pods, checked after every event."""
    decision = Decision(t4(1, gpus=1), checked=1)
    return decision, decision.pod(0)


SPANS: dict[str, Callable[[Random], float]] = {
    "even": lambda dice: dice.uniform(0.0, 1000.0),
    "long tail": lambda dice: dice.lognormvariate(3.0, 3.0),
    "one far": lambda dice: 1e12 if dice.random() < 0.001 else dice.random(),
    "whole seconds": lambda dice: float(dice.randrange(5)),
    "equal": lambda _: 7.0,
    "too far to add up": lambda dice: dice.choice((1e308, 1.7e308, 1.0)),
    "hardly any": lambda dice: dice.choice((0.0, 5e-324)),
}
"""How long pods stay, in seconds."""


def test_an_empty_queue_is_in_order() -> None:
    queue = DepartureQueue()
    assert queue.size == 0 and queue.verify() == 0
    with pytest.raises(IndexError, match="nothing departs"):
        queue.take()


@pytest.mark.parametrize("spans", SPANS)
@given(st.integers(0, 2**32), st.integers(1, 3000), st.integers(1, 3000))
@settings(max_examples=8)
def test_many_departures_come_as_a_sorted_list_says(spans: str, seed: int, crowd: int, later: int) -> None:
    queue, dice = DepartureQueue(), Random(seed)
    listed: list[tuple[float, int]] = []
    now, slot, most = 0.0, 0, 0
    for wanted in (crowd, 0, later, later // 2):  # pods at a time; once none, then time may begin anew
        for _ in range(abs(wanted - len(listed)) + 500):
            if len(listed) < wanted:
                ends = now + SPANS[spans](dice)
                heapq.heappush(listed, (ends, slot))
                queue.put(ends, slot)
                slot += 1
            elif listed:
                now = listed[0][0]
                assert queue.take() == heapq.heappop(listed)
        most = max(most, queue.n_buckets)
        assert queue.size == len(listed) and queue.verify() == 0
        now = now if listed else 0.0
    assert most > 0 or max(crowd, later) <= 512 or spans not in ("even", "long tail")


def test_the_last_departure_is_far_behind_all_others() -> None:
    # The soonest are seconds apart and determine the width of the buckets, of which the first one has all but the last.
    queue, slots = DepartureQueue(), range(600)
    for slot in slots:
        queue.put(min(slot, 20.0) + slot / 1000.0, slot)
    queue.put(1e12, len(slots))
    assert queue.n_buckets > 0 and queue.n_beyond == 1
    assert [queue.take()[1] for _ in slots] == list(slots)
    assert queue.verify() == 0 and queue.take() == (1e12, len(slots))


def test_what_a_queue_tells_of_itself_makes_another_one() -> None:
    queue, other, dice = DepartureQueue(), DepartureQueue(), Random(1)
    for slot in range(3000):
        queue.put(dice.expovariate(0.01), slot)
    for _ in range(700):
        queue.take()
    other.restore(*queue.snapshot())
    assert queue.n_buckets > 0 and queue.n_beyond > 0
    assert [other.take() for _ in range(2300)] == [queue.take() for _ in range(2300)]
    with pytest.raises(ValueError, match="no snapshot"):
        other.restore(b"123", 0)


@pytest.mark.parametrize("count", [1, 2, 3, 64, 65, 200])
def test_departures_come_by_time_and_then_in_the_order_of_their_starts(count: int) -> None:
    decision, cls = crowd()
    dice = Random(count)
    spans = [float(dice.randrange(1, 9)) for _ in range(count)]
    decision.feed(*((cls, 0.0, span) for span in spans))
    decision.online.advance(count)
    assert decision.online.departures.size == count
    decision.online.advance(count)
    assert [row[0] for row in decision.outcomes()] == sorted(range(count), key=lambda k: (spans[k], k))
    assert decision.online.departures.size == 0


def test_a_pod_that_stays_for_ever_is_never_scheduled() -> None:
    decision, cls = crowd()
    decision.feed((cls, 0.0, None), (cls, 0.0, 1.0))
    decision.online.advance(2)
    assert decision.online.departures.size == 1


def test_a_departure_of_a_pod_that_left_earlier_is_void_though_its_slot_is_taken_again() -> None:
    # The first pod is lost with its node at 2 s; its slot goes to the second pod, which must not depart at 5 s.
    change: dict[str, Any] = {"change_t": np.array([2.0, 3.0]), "change_node": np.zeros(2, np.int32),
              "change_adds": np.array([0, 1], np.int32)}  # fmt: skip
    decision = Decision(t4(1, gpus=1), checked=1, **change)
    cls = decision.pod()
    decision.feed((cls, 0.0, 5.0), (cls, 4.0, 100.0))
    decision.online.advance(4)
    assert [row[:2] for row in decision.work.running()] == [(0, 1)]  # slot 0, pod 1
    decision.online.advance(99)
    assert decision.outcomes() == [(0, 0, "node_lost", 2.0), (1, 0, "finished", 104.0)]


def test_at_one_instant_nodes_come_before_departures_retries_samples_deschedules_and_arrivals() -> None:
    change: dict[str, Any] = {
        "change_t": np.array([5.0]),
        "change_node": np.array([1], np.int32),
        "change_adds": np.ones(1, np.int32),
    }
    decision = Decision(t4(2, gpus=1), queue=1, record=1, deschedule_t=np.array([5.0]), sample_s=5.0, **change)
    decision.table.columns["present"][1] = 1
    cls = decision.pod()
    decision.feed((cls, 1.0, 4.0), (cls, 1.0, None), (cls, 1.0, None), (cls, 5.0, None))
    kinds = []
    while (status := decision.online.advance(1)) in (2, 3):
        if status == 3:
            kinds.append("deschedule")
            decision.online.note_deschedule()
        rows = np.frombuffer(decision.online.drain_rows(), ROW)
        kinds += [EVENTS[row["kind"]] for row in rows if EVENTS[row["kind"]] != "deschedule"]
    assert kinds[:3] == ["arrival"] * 3
    assert kinds[3:] == ["node", "departure", "retry", "deschedule", "arrival"]  # samples write no row here
    assert decision.online.events == 9


def test_names_of_events_stand_in_their_order() -> None:
    declared = Path(__file__).resolve().parents[4] / "fastsim_ext" / "state" / "departure_queue.pxd"
    text = in_checkout(declared).read_text(encoding="utf-8")
    found = re.search(r"cdef enum:  # EventKind:.*\n\s+(.+)\n", text)
    assert found and tuple(found[1].lower().split(", ")) == EVENTS

"""The compiled loop: why it comes back, what it writes, and states that a verify() must not let pass."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from fastsim.engine.tables import EVENTS, ROW
from fastsim_ext.online.loop import AREAS
from fastsim_ext.state.pod_table import WorkTable
from tests.unit.ext.select.test_scan import Decision
from tests.unit.ext.state.test_node_table import t4

DONE, WANT_ARRIVALS, PAUSE, DESCHEDULE_DUE = range(4)


def loop(gpus: int = 2, **options: Any) -> tuple[Decision, int]:
    """One node, and a class of pods for one whole device and a CPU."""
    decision = Decision(t4(1, gpus=gpus), **{"checked": 1, **options})
    return decision, decision.pod(1, 1000, 1000, 1)


STATE = ("cpu_left", "mem_left", "pods", "gpu_left", "tags", "present")
"""Columns that say what is free on a node; everything else of a table follows from them."""


def rows(decision: Decision) -> Any:
    return np.frombuffer(decision.online.drain_rows(), ROW)


def test_it_comes_back_when_it_is_tired_wants_arrivals_or_is_done() -> None:
    decision, cls = loop()
    online = decision.online
    assert online.advance(9) == WANT_ARRIVALS  # nothing was fed
    decision.feed((cls, 0.0, 5.0), (cls, 1.0, 5.0), last=False)
    assert (online.advance(1), online.arrived, online.now) == (PAUSE, 1, 0.0)
    assert (online.advance(9), online.arrived) == (WANT_ARRIVALS, 2)
    assert online.events == 2  # no departure yet: a pod of the next batch may come before it
    decision.feed((cls, 5.0, None))
    assert (online.advance(9), online.events, online.now) == (DONE, 5, 6.0)
    assert [row[1] for row in decision.work.running()] == [2]


def test_a_budget_of_nothing_does_nothing() -> None:
    decision, cls = loop()
    decision.feed((cls, 0.0, None))
    assert (decision.online.advance(0), decision.online.events) == (PAUSE, 0)


def test_deschedule_times_stop_the_loop_once_each() -> None:
    decision, cls = loop(deschedule_t=np.array([2.0, 3.0]))
    decision.feed((cls, 0.0, None), (cls, 3.0, None))
    statuses = [decision.online.advance(9) for _ in range(3)]
    assert statuses == [DESCHEDULE_DUE, DESCHEDULE_DUE, DONE] and decision.online.now == 3.0


def test_the_horizon_itself_still_happens() -> None:
    decision, cls = loop(until_s=2.0)
    decision.feed((cls, 0.0, 2.0), (cls, np.nextafter(2.0, 3.0), None))
    assert (decision.online.advance(9), decision.online.events) == (DONE, 2)
    decision.online.finish()
    assert decision.outcomes() == [(0, 0, "finished", 2.0)]


def test_what_a_closed_run_leaves_is_handed_on_in_pieces() -> None:
    decision = Decision(t4(1, gpus=1))
    cls, pieces = decision.pod(0, 0, 0, 0), []
    decision.feed(*((cls, float(k), None) for k in range(2500)))
    decision.online.advance(9999)
    decision.online.finish(lambda: pieces.append(decision.outcomes()))
    pieces.append(decision.outcomes())
    assert [len(piece) for piece in pieces] == [1024, 1024, 452]
    assert [row[0] for piece in pieces for row in piece] == list(range(2500))


def test_fragmentation_is_checked_like_the_rest_once_a_run_is_closed() -> None:
    decision, cls = loop()
    decision.feed((cls, 0.0, None))
    decision.online.advance(9)
    decision.online.finish()
    assert decision.table.nodes.verify() == 0
    decision.table.columns["frag_classes"][0, 0] += 1
    with pytest.raises(AssertionError, match="node 0: fragmentation class 0"):
        decision.table.nodes.verify()


@pytest.mark.parametrize(("record", "kinds"), [(0, []), (1, ["arrival", "departure", "end"]), (2, ["sample", "end"])])
def test_rows_are_of_events_or_of_samples(record: int, kinds: list[str]) -> None:
    decision, cls = loop(record=record, sample_s=2.0 if record == 2 else 0.0)
    decision.feed((cls, 1.0, 2.0))
    decision.online.advance(9)
    decision.online.finish()
    written = rows(decision)
    assert [EVENTS[row["kind"]] for row in written] == kinds
    assert decision.online.n_rows == 0 and decision.online.drain_rows() == b""
    if record == 2:
        assert written["t"].tolist() == [2.0, 3.0]


@pytest.mark.parametrize(("first", "times"), [(-3.0, [-2.0, 0.0]), (-2.0, [-2.0, 0.0]), (0.5, [2.0]), (2.0, [2.0])])
def test_samples_stand_at_multiples_from_the_first_arrival_on(first: float, times: list[float]) -> None:
    decision, cls = loop(record=2, sample_s=2.0)
    decision.feed((cls, first, None), (cls, 2.0 if first > 0 else 0.5, None))
    decision.online.advance(99)
    assert rows(decision)["t"].tolist() == times


def test_more_rows_than_were_made_room_for() -> None:
    decision = Decision(t4(1, gpus=1), record=1)
    cls = decision.pod(0)
    decision.feed(*((cls, float(k), None) for k in range(3000)))
    decision.online.advance(3000)
    written = rows(decision)
    assert written["pod"].tolist() == written["t"].tolist() == list(range(3000))
    assert written["running"].tolist() == written["seq"].tolist() == list(range(1, 3001))


def test_state_is_now_and_at_capacity_is_the_last_arrival_within_it() -> None:
    decision, cls = loop(gpus=2)
    decision.feed((cls, 0.0, None), (cls, 1.0, None), (cls, 2.0, None))
    decision.online.advance(99)
    now, before, areas = decision.online.state()
    final, capacity = np.frombuffer(now, ROW)[0], np.frombuffer(before, ROW)[0]
    assert (final["t"], final["arrived_gpu"], final["unplaced"], final["unplaced_gpu"]) == (2.0, 3000, 1, 1000)
    assert (capacity["t"], capacity["arrived_gpu"], capacity["pod"]) == (1.0, 2000, 1)
    # 1,000 milli-GPU for a second, then 2,000 for another; power: T4 10 or 70 W, CPU 120 W.
    assert tuple(areas) == (*AREAS, "seconds")
    assert areas["gpu_milli_alloc"] == 3000.0 and areas["gpu_milli_capacity"] == 2 * 2000.0
    assert areas["cpu_milli_alloc"] == 3000.0 and areas["memory_mib_alloc"] == 3.0
    assert areas["power_mw"] == (200 + 260) * 1000.0 and areas["pods_pending"] == 0.0
    assert areas["frag"] == 0.0 and areas["seconds"] == 2.0


def test_running_and_waiting_pods_close_as_they_are() -> None:
    decision, cls = loop(gpus=1, queue=1)
    decision.feed((cls, 0.0, None), (cls, 1.0, None))
    decision.online.advance(9)
    decision.online.finish()
    assert [row[:3] for row in decision.outcomes()] == [(0, 0, "running"), (1, 0, "pending")]


def test_a_trial_leaves_no_trace() -> None:
    decision, cls = loop(gpus=1)
    state = {name: column.copy() for name, column in decision.table.columns.items()}
    before = decision.online.state()
    slot = decision.online.trial(cls)
    assert slot >= 0 and decision.table.columns["pods"].tolist() == [1]
    assert decision.online.trial(cls) == -1
    decision.online.discard(slot)
    assert decision.online.state() == before and decision.outcomes() == []
    for name, column in decision.table.columns.items():  # what nobody has asked for yet is NaN
        assert np.array_equal(state[name], column, equal_nan=column.dtype.kind == "f"), name
    assert decision.online.verify() == 0


def test_an_evicted_pod_comes_back_as_its_next_attempt_and_keeps_its_departure() -> None:
    decision, cls = loop()
    decision.feed((cls, 0.0, 9.0), (cls, 4.0, None))
    decision.online.advance(2)
    decision.online.evict(0)
    assert [row[0] for row in decision.work.running()] == [1] and decision.online.verify() == 0
    with pytest.raises(IndexError, match="no pod runs in slot 0"):
        decision.online.evict(0)
    assert decision.online.move(0) is True
    decision.online.advance(9)
    assert decision.outcomes() == [(0, 0, "evicted", 4.0), (0, 1, "finished", 9.0)]


def test_an_evicted_pod_that_fits_nowhere_is_lost_and_does_not_depart() -> None:
    decision, cls = loop(gpus=1)
    decision.feed((cls, 0.0, 9.0))
    decision.online.advance(1)
    decision.online.evict(0)
    blocker = decision.online.trial(cls)
    assert decision.online.move(0) is False
    decision.online.discard(blocker)
    assert (decision.online.advance(9), decision.outcomes()) == (DONE, [(0, 0, "evicted", 0.0)])
    assert np.frombuffer(decision.online.state()[0], ROW)[0]["lost"] == 1 and decision.online.verify() == 0


def test_fragmentation_without_some_pods_changes_nothing() -> None:
    decision = Decision(t4(1, gpus=2), checked=1)
    decision.feed(*((decision.pod(1, milli), 0.0, None) for milli in (300, 900)))
    decision.online.advance(9)
    online, totals = decision.online, decision.table.nodes.totals()
    without = [online.work.frag_without(online.nodes, 0, slots) for slots in ([], [0], [1], [0, 1])]
    assert without == [800.0, 100.0, 700.0, 0.0]
    assert decision.table.nodes.totals() == totals and online.verify() == 0


def test_a_pod_that_holds_more_than_its_node_gave_is_found() -> None:
    decision, cls = loop()
    decision.feed((cls, 0.0, None))
    decision.online.advance(9)
    decision.table.nodes.load(0, 8000, 64, [1000, 1000], {})
    with pytest.raises(AssertionError, match=r"pods hold \(1000, 1, 1000\), nodes gave"):
        decision.online.verify()


@pytest.mark.parametrize("checked", [0, 1])
def test_the_checked_loop_stops_at_the_event_after_the_damage(checked: int) -> None:
    decision, cls = loop(checked=checked)
    decision.feed((cls, 0.0, None), (cls, 1.0, None))
    decision.online.advance(1)
    decision.table.columns["mem_left"][0] += 1
    if not checked:
        assert decision.online.advance(9) == DONE
        return
    with pytest.raises(AssertionError, match="pods hold"):
        decision.online.advance(9)


def test_slots_and_classes_that_do_not_exist_are_refused() -> None:
    decision, cls = loop(gpus=1)
    decision.feed((cls, 0.0, None))
    decision.online.advance(9)
    online = decision.online
    for call in (online.evict, online.discard, online.move):
        with pytest.raises(IndexError, match="slot 5"):
            call(5)
    with pytest.raises(IndexError, match="no evicted pod is in slot 0"):
        online.move(0)
    with pytest.raises(IndexError, match="no pod class 7"):
        online.trial(7)
    with pytest.raises(IndexError, match="position -1"):
        online.work.frag_without(online.nodes, -1, [])
    with pytest.raises(ValueError, match="different lengths"):
        priority, tenant = np.zeros((2, 2), np.int32)
        online.feed(np.arange(2), np.zeros(1, np.int32), np.zeros(2), np.zeros(2), priority, tenant, None, None, True)


@pytest.mark.parametrize("events", range(12))
@pytest.mark.parametrize("queue", [0, 1, 4])
def test_a_run_goes_on_from_a_snapshot_as_if_nothing_had_happened(queue: int, events: int) -> None:
    options: dict[str, Any] = {"queue": queue, "record": 1, "checked": 1, "sample_s": 2.0, "until_s": 30.0}
    whole, cls = loop(**options)
    stopped, _ = loop(**options)
    arrivals = [(cls, float(k // 2), 3.0 + k % 3) for k in range(8)]
    for decision in (whole, stopped):
        decision.feed(*arrivals)
    stopped.online.advance(events)
    arrived = stopped.online.arrived
    taken, _ = loop(**options)
    for name in STATE:
        taken.table.columns[name][...] = stopped.table.columns[name]
    early = (stopped.outcomes(), stopped.online.drain_rows())
    taken.count_anew(**options)
    taken.work.restore(*stopped.work.snapshot())
    taken.online.departures.restore(*stopped.online.departures.snapshot())
    taken.online.restore(json.loads(json.dumps(stopped.online.snapshot())))
    taken.feed(*arrivals[arrived:])
    for decision in (whole, taken):
        assert decision.online.advance(99) == DONE
        decision.online.finish()
    assert repr(early[0] + taken.outcomes()) == repr(whole.outcomes())  # NaN is not itself
    assert early[1] + taken.online.drain_rows() == whole.online.drain_rows()
    assert taken.online.state() == whole.online.state()
    assert taken.select.attempts == whole.select.attempts


def test_what_is_no_snapshot_is_refused() -> None:
    decision, cls = loop()
    decision.feed((cls, 0.0, 9.0), (cls, 1.0, 1.0))
    decision.online.advance(3)
    with pytest.raises(ValueError, match="1 outcome rows are not drained yet"):
        decision.work.snapshot()
    decision.outcomes()
    other, _ = loop()
    for table, parts in ((other.work, decision.work.snapshot()),
                         (other.online.departures, decision.online.departures.snapshot())):  # fmt: skip
        restore: Any = table.restore
        with pytest.raises(ValueError, match="are no snapshot"):
            restore(parts[0][:-1], parts[1])
        restore(*parts)
        with pytest.raises(ValueError, match="is not empty"):
            restore(*parts)
    assert decision.work.present() == other.work.present() == [0]
    with pytest.raises(IndexError, match="no pod class 0"):
        WorkTable().restore(*decision.work.snapshot())
    with pytest.raises(ValueError, match="no row of this version"):
        other.online.restore(decision.online.snapshot() | {"at_capacity": "00"})

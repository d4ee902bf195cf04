"""The compiled table of pods: reused slots, the order of the waiting line, outcomes reported once."""

from __future__ import annotations

import numpy as np
import pytest

from fastsim.engine.tables import OUTCOME
from fastsim_ext.state.pod_table import WorkTable
from tests.unit.ext.select.test_scan import Decision
from tests.unit.ext.state.test_node_table import t4


def queued(rule: int) -> Decision:
    """One node of one device, and a waiting line (1 fifo, 2 fifo_skip, 3 priority, 4 priority_skip)."""
    return Decision(t4(1, gpus=1), queue=rule, checked=1)


def test_classes_are_numbered_past_every_growth() -> None:
    work = WorkTable()
    assert [work.add_class(k, 0, 0, 0, 0) for k in range(500)] == list(range(500))
    assert work.n_classes == 500 and work.verify() == 0


def test_the_largest_mask_is_a_mask() -> None:
    work = WorkTable()
    assert work.add_class(0, 0, 1, 1, 2**64 - 1) == 0
    with pytest.raises(OverflowError):
        work.add_class(0, 0, 1, 1, 2**64)


def test_an_empty_table_has_nothing_to_tell() -> None:
    work = WorkTable()
    assert (work.running(), work.drain(), work.waiting, work.n_outcomes) == ([], b"", 0, 0)


def test_outcomes_are_told_once() -> None:
    decision = Decision(t4(1, gpus=1))
    cls = decision.pod()
    decision.feed((cls, 0.0, 2.0), (cls, 1.0, None))
    decision.online.advance(99)
    assert decision.work.n_outcomes == 2
    assert [row[:3] for row in decision.outcomes()] == [(1, 0, "no_gpu"), (0, 0, "finished")]
    assert decision.work.n_outcomes == 0 and decision.work.drain() == b""


def test_outcome_rows_are_what_numpy_reads() -> None:
    decision = Decision(t4(1, gpus=2))
    cls = decision.pod(2)
    decision.feed((cls, 1.0, 2.5))
    decision.online.advance(99)
    (row,) = np.frombuffer(decision.work.drain(), OUTCOME)
    assert row.item()[:-1] == (0, 0, 0, 0, 0, 3, 0b11, 1.0, 1.0, 1.0, 3.5, 0, 0.0, 2.5, 0.0, 5.0, 0.0)
    assert np.isnan(row["cost"])


def test_spans_are_those_of_the_outcomes_and_are_told_once() -> None:
    decision = Decision(t4(1, gpus=1))
    cls = decision.pod()
    decision.feed((cls, 0.0, 2.0), (cls, 1.0, None), (cls, 3.0, None))
    decision.online.advance(99)
    decision.online.finish()
    room = np.zeros((6, 3))
    assert decision.work.spans(room) == ([2, 1, 0, 1, 0, 0], 0, 0)  # one of the three fitted nowhere, one finished
    assert room[0, :2].tolist() == [0.0, 0.0] and (room[1, 0], room[3, 0]) == (2.0, 1.0)
    assert decision.work.spans(room) == ([0] * 6, 0, 0) and decision.work.n_outcomes == 0


def test_spans_need_room() -> None:
    decision = Decision(t4(1, gpus=1))
    decision.feed((decision.pod(), 0.0, 1.0))
    decision.online.advance(99)
    for room in (np.zeros((5, 1)), np.zeros((6, 0))):
        with pytest.raises(ValueError, match=f"room of {len(room)} rows of {room.shape[1]}, expected 6 of 1"):
            decision.work.spans(room)
    assert decision.work.n_outcomes == 1


def test_running_pods_stand_in_order_of_arrival_whatever_slot_they_hold() -> None:
    decision = Decision(t4(1, gpus=3))
    one, two = decision.pod(1, 1000), decision.pod(1, 600)
    decision.feed((one, 0.0, 2.0), (one, 0.0, None), (one, 1.0, 2.0), (two, 4.0, None), (two, 4.0, None))
    decision.online.advance(99)
    # The slots of pods 0 and 2 are free again and the last one freed is taken first.
    assert decision.work.running() == [
        (1, 1, one, 0, 0b010, 0.0),
        (2, 3, two, 0, 0b001, 4.0),
        (0, 4, two, 0, 0b100, 4.0),
    ]


def test_many_pods_and_outcomes_survive_every_growth() -> None:
    decision = Decision(t4(1, gpus=1, max_pods=2000))
    cls = decision.pod(0)
    decision.feed(*((cls, 0.0, 1.0 + k) for k in range(1500)))
    decision.online.advance(1500)
    assert [row[1] for row in decision.work.running()] == list(range(1500))
    decision.online.advance(1500)
    rows = decision.outcomes()
    assert [row[0] for row in rows] == list(range(1500)) and {row[2] for row in rows} == {"finished"}
    assert decision.online.verify() == 0


@pytest.mark.parametrize(
    ("rule", "starts"),
    [
        (1, [1, 2, 3, 4]),
        (3, [3, 1, 4, 2]),  # 1 stands behind 3 and before 4, which has its priority but came later
    ],
)
def test_a_line_is_by_arrival_or_by_priority_and_then_arrival(rule: int, starts: list[int]) -> None:
    decision = queued(rule)
    cls = decision.pod()
    decision.feed((cls, 0.0, 10.0), last=False)
    decision.online.advance(1)
    for k, priority in enumerate((1, 0, 2, 1)):
        decision.feed((cls, 1.0 + k, 10.0), last=False, priority=priority)
        decision.online.advance(1)
    assert decision.work.waiting == 4
    decision.feed()
    decision.online.advance(99)
    assert [row[0] for row in decision.outcomes()] == [0, *starts] and decision.work.waiting == 0


def test_leaving_from_the_middle_of_the_line_keeps_it_whole() -> None:
    decision = queued(2)  # any pod that fits may overtake
    whole, half = decision.pod(), decision.pod(1, 500)
    decision.feed((half, 0.0, 5.0), (half, 0.0, 20.0), (whole, 1.0, 1.0), (half, 2.0, 1.0), (whole, 3.0, 1.0))
    decision.online.advance(5)
    assert decision.work.waiting == 3
    decision.online.advance(2)  # the departure at 5 s, and its retry
    assert decision.work.waiting == 2 and decision.work.verify() == 0
    decision.online.advance(99)
    assert [row[0] for row in decision.outcomes()] == [0, 3, 1, 2, 4]

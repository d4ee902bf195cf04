"""Values taken from outcome rows, however the rows are split."""

from __future__ import annotations

import numpy as np
import pytest

from fastsim_ext.state.pod_outcomes import spans_of
from tests.unit.ext.select.test_scan import Decision
from tests.unit.ext.state.test_node_table import t4


def test_spans_of_drained_rows_are_the_same() -> None:
    told, drained = np.zeros((6, 3)), np.zeros((6, 3))
    decisions = [Decision(t4(1, gpus=1)) for _ in range(2)]
    for decision in decisions:
        cls = decision.pod()
        decision.feed((cls, 0.0, 2.0), (cls, 1.0, None), (cls, 3.0, 4.0))
        decision.online.advance(99)
        decision.online.finish()
    rows = np.frombuffer(decisions[1].work.drain(), np.uint8)
    assert decisions[0].work.spans(told) == spans_of(rows, drained) == ([2, 2, 0, 2, 0, 0], 0, 0)
    assert told.tolist() == drained.tolist()
    assert spans_of(rows[:0], drained) == ([0] * 6, 0, 0)
    with pytest.raises(ValueError, match="7 bytes are no outcome rows"):
        spans_of(rows[:7], drained)
    with pytest.raises(ValueError, match="room of 6 rows of 2, expected 6 of 3"):
        spans_of(rows, drained[:, :2].copy())

"""The driver of rounds: a complaint where nothing can run."""

from __future__ import annotations

import numpy as np

from fastsim.engine.rounds.job_driver import nothing_runs
from fastsim.engine.rounds.outcome import GANG
from tests.unit.engine.shares.test_plan import rows


def test_a_complaint_names_those_who_wait() -> None:
    assert "nothing runs at 7 s" in str(nothing_runs(rows(), 7.0))
    assert "waiting: jobs 4, 5, 9, expected" in str(nothing_runs(rows(), 7.0))
    assert "0, 0, 0, 0, 0, ...," in str(nothing_runs(np.zeros(7, GANG), 7.0))

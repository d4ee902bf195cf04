"""What all loops of rounds have in common: why they return, and jobs to come."""

from __future__ import annotations

import numpy as np
import pytest

from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.engine.rounds.options import Job
from fastsim_ext.rounds.share_loop import ShareLoop


def share_loop() -> ShareLoop:
    """A loop with two GPUs for jobs of one kind."""
    return ShareLoop(
        (2,), np.ones((1, 1)), np.zeros((1, 1, 1)), [0], [0] * 625, round_s=1.0, realloc_s=0.0, restart_s=0.0,
        until_s=9.0, first=0, last=-1, recorded=False, endless=False, quirks=[False] * 9, pairs=False, shuffled=False,
        strict=False, one_line=False,
    )  # fmt: skip


def test_jobs_are_not_fed_before_those_that_are_still_to_come() -> None:
    loop = share_loop()
    loop.feed(*JobBatch.of([Job(100.0, 0, 1, 1000.0)]), False)
    with pytest.raises(ValueError, match="have not arrived yet"):
        loop.feed(*JobBatch.of([Job(200.0, 0, 1, 1000.0)]), False)

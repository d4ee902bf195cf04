"""Recorded runs stopped in the middle and taken up again, with policies that remember: as if they had never stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastsim.engine.checkpoints.clock import CheckpointSchedule
from fastsim.engine.checkpoints.state import RunState
from fastsim.engine.rounds.checkpoint import arrived_jobs
from fastsim.engine.rounds.outcome import RoundOutcome
from tests.golden.gavel import gavel
from tests.golden.gavel.gavel_runs import Recorded, runs

pytestmark = pytest.mark.skipif(not gavel.GAVEL.exists(), reason="reference data not found (set FASTSIM_SHARED)")

REMEMBERS = ("fifo", "gandiva", "allox", "finish_time_fairness")


def chosen() -> list[Recorded]:
    """The run of each policy that has the fewest rounds, of those in which jobs arrive until a given number has."""
    whole = [run for run in runs() if run.policy in REMEMBERS and run.row["num_total_jobs"] and run.row["lam"] > 0]
    return [
        min((run for run in whole if run.policy == policy), key=lambda run: (run.row["n_rounds"], run.id))
        for policy in sorted({run.policy for run in whole})
    ]


def played(run: Recorded, **more: Any) -> RoundOutcome:
    return run.played(run.plan(), record_tasks=True, **more)


@pytest.mark.long
@pytest.mark.parametrize("part", [0.3, 0.8])
@pytest.mark.parametrize("run", chosen(), ids=lambda run: run.id)
def test_taken_up_it_ends_the_same(run: Recorded, part: float, tmp_path: Path) -> None:
    keeping = CheckpointSchedule(tmp_path / "state.npz", at_job=int(part * run.row["num_total_jobs"]))
    whole = played(run, checkpoint=keeping)
    state = RunState.read(keeping.path)
    assert keeping.at_job in arrived_jobs(state)["id"]
    assert state.meta["loop"]["rounds"] < whole.rounds
    again = played(run, resume=state)
    for name in whole.jobs.dtype.names or ():
        if name not in ("place", "task"):
            assert np.array_equal(again.jobs[name], whole.jobs[name], equal_nan=True), name
    assert again.tasks.tolist() == whole.tasks.tolist()
    assert (again.busy_s == whole.busy_s).all()
    assert (again.extensions, again.opportunities, again.calls) == (whole.extensions, whole.opportunities, whole.calls)

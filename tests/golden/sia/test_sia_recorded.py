"""Sia by the recordings' own solver: the same pick in every snapshot, the same runs job by job, all by ourselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fastsim.policies.adaptive.sia import Sia
from tests.golden.sia.sia import SIA, lines
from tests.golden.sia.sia_runs import RecordedRun
from tests.golden.sia.test_sia_closed import BARS, off, played
from tests.golden.sia.test_sia_program import adaptive, recorded_choice, rigid
from tests.needs import needs

pytestmark = [
    pytest.mark.skipif(not SIA.exists(), reason="reference data not found (set FASTSIM_SHARED)"),
    needs("cylp"),
]
RUNS = sorted((SIA / "runs").glob("*_sia"))


def test_every_pick_is_the_recorded_one_in_any_order() -> None:
    from fastsim.policies.deciders.sia_recorded import recorded_choices
    from fastsim.policies.solvers.cbc import CbcSolver

    solver, calls = CbcSolver(), list(lines(SIA / "functions/sia_ilp_snapshots.jsonl"))
    for call in calls + calls[::-1]:  # the solver remembers nothing that matters
        kinds = (rigid(call), "rigid_jobs", "chosen_type"), (adaptive(call), "jobs", "chosen_config")
        some = [kind for kind in kinds if call[kind[1]]]
        room = np.array(call["total_gpus"], np.int64)
        found = recorded_choices([wish for wish, _, _ in some], room, call["lambda_no_alloc"], solver)
        for (_, jobs, answer), chosen in zip(some, found.chosen, strict=True):
            assert chosen.tolist() == recorded_choice(call, jobs, answer).tolist(), call["id"]
    assert calls


@pytest.mark.parametrize("folder", RUNS, ids=lambda folder: folder.name)
def test_runs_are_the_recorded_ones(folder: Path) -> None:
    run = RecordedRun(folder)
    found = played(run, Sia(solver="cbc"))
    assert {name: at for name, at in off(run, found).items() if abs(at) > BARS[name]} == {}
    assert found.jobs["finish_s"].tolist() == run.told["completion_time"].to_list()
    assert found.trained["restarts"].tolist() == run.told["num_restarts"].to_list()


def test_there_are_recorded_runs() -> None:
    assert RUNS

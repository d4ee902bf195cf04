"""Recorded runs of Sia, played again by hand: what jobs do, and what the scheduler thinks of their choices."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from tests.conftest import SHARED
from tests.golden.sia.sia import SIA, lines
from tests.golden.sia.sia_replay import Replay, ReplayedJob, adaptive_runs, is_close, placed_at, recorded_state

UNTIL_S = 3 * 3600.0
"""How much of each run is played."""
RUNS = adaptive_runs() if SHARED.exists() else []


def snapshots(run: str) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    """Recorded decisions of a run by the jobs they were about."""
    found = defaultdict(list)
    for call in lines(SIA / "functions/sia_ilp_snapshots.jsonl"):
        if call["id"].rpartition("-")[0] == run:
            found[tuple(job["name"] for job in call["jobs"])].append(call)
    return found


def decision(now_s: float, active: list[ReplayedJob], known: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The recorded decision of this moment, known by what restarts would cost."""
    kept = [job.kept(now_s) for job in active]
    for call in known:
        if np.allclose(kept, [job["realloc_factor"] for job in call["jobs"]], rtol=1e-9, atol=0):
            return call
    return None


@pytest.mark.parametrize("run", RUNS)
def test_jobs_run_and_are_seen_as_recorded(run: str) -> None:
    replay, known, differences = Replay(run), snapshots(run), []
    for now_s, active, rows in replay.rounds(UNTIL_S):
        assert {job.name for job in active} == set(rows)
        call = decision(now_s, active, known.get(tuple(job.name for job in active), []))
        for position, job in enumerate(active):
            if call is not None:
                expected = np.array(call["G"][position], np.float32)
                differences.append(float(np.max(np.abs(job.row(replay.sizes) / expected - 1))))
            job.put(*placed_at(rows[job.name]))
            assert job.state == recorded_state(rows[job.name]), (now_s, job.name)
            assert is_close(job.progress, rows[job.name]["progress"]), (now_s, job.name)
    if differences:
        assert max(differences) <= 1e-6, max(differences)  # single precision


def test_runs_were_found() -> None:
    if SHARED.exists():
        assert len(RUNS) > 0

"""A run in rounds that stops somewhere and goes on from its file ends as if it had never stopped."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fastsim.engine.checkpoints.clock import CheckpointSchedule
from fastsim.engine.checkpoints.state import RunState
from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.engine.rounds.options import Setting
from fastsim.engine.rounds.outcome import GANG, RoundOutcome
from fastsim.engine.shares.run import run_rounds
from fastsim.engine.tables import TOTALS
from fastsim.errors import PolicyError
from fastsim_ext.rounds.cluster_metrics import ClusterMetrics
from tests.differential.ext.rounds.test_rounds import Case, cases
from tests.strategies import scenarios_per_run

LAST = [name for name in GANG.names or () if name not in ("place", "task", "taken")]
"""Fields of a job that mean something after the run."""


def cluster_metrics(setting: Setting) -> ClusterMetrics:
    """Measures what a toy says: GPU n is the only one of node n, and quantity k of a node is k with it, else 0; CPUs
    and memory are those of jobs."""
    gpus = int(setting.gpus__g.sum())
    totals = np.zeros((1, 2, 18), np.int64)
    totals[0, 1] = np.arange(18)
    totals[0, 1, [TOTALS.index("cpu_alloc"), TOTALS.index("mem_alloc")]] = 0
    return ClusterMetrics(np.arange(gpus, dtype=np.int32), np.zeros(gpus, np.int32), totals, 0.0, True)


def played(case: Case, cut: int = 3, **more: Any) -> RoundOutcome:
    batches = [JobBatch.of(part) for part in (case.jobs[:cut], case.jobs[cut:]) if part]
    return run_rounds(
        case.setting, case.again(), batches, case.options, record_tasks=True, metrics=cluster_metrics(case.setting),
        **more,
    )  # fmt: skip


def assert_same(found: RoundOutcome, expected: RoundOutcome) -> None:
    for name in LAST:
        assert np.array_equal(found.jobs[name], expected.jobs[name], equal_nan=True), name
    for name in ("tasks", "held", "rows", "busy_s"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist(), name
    for name in ("rounds", "calls", "makespan_s", "max_active", "job_rounds", "extensions", "opportunities",
                 "wasted_gpu_s"):  # fmt: skip
        assert getattr(found, name) == getattr(expected, name), name
    assert found.metrics is not None
    assert expected.metrics is not None
    assert found.metrics.state() == expected.metrics.state()


@settings(max_examples=scenarios_per_run(200))
@given(cases(), st.integers(1, 60), st.integers(0, 14))
def test_a_resumed_run_is_the_whole_run(case: Case, rounds: int, cut: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.npz"
        try:
            expected = played(case, checkpoint=CheckpointSchedule(path, every_rounds=rounds))
        except PolicyError:
            assume(False)
        assert_same(expected, played(case))  # keeping changes nothing
        assume(path.exists())
        state = RunState.read(path)
        assert 0 < state.meta["loop"]["rounds"] <= expected.rounds
        assert_same(played(case, cut, resume=state), expected)  # however the jobs are read this time


@settings(max_examples=scenarios_per_run(50))
@given(cases(), st.integers(1, 20))
def test_stopping_again_and_again_changes_nothing(case: Case, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.npz"
        try:
            expected = played(case)
        except PolicyError:
            assume(False)
        end_s = 0.0
        for _ in range(8):
            end_s += expected.makespan_s / 8
            part = dataclasses.replace(case, options=dataclasses.replace(case.options, until_s=end_s))
            state = RunState.read(path) if path.exists() else None
            played(part, checkpoint=CheckpointSchedule(path, every_rounds=rounds), resume=state)
        assert_same(played(case, resume=RunState.read(path) if path.exists() else None), expected)

"""A run in ordered rounds that stops somewhere and goes on from its file ends as if it had never stopped."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fastsim.engine.checkpoints.clock import CheckpointSchedule
from fastsim.engine.checkpoints.state import RunState
from fastsim.engine.orders.run import OrderedOutcome, run_ordered
from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.errors import PolicyError, ScenarioError
from tests.differential.ext.rounds.test_snapshot import LAST, cluster_metrics
from tests.strategies import scenarios_per_run
from tests.turns import Case, cases


def played(case: Case, cut: int = 3, **more: Any) -> OrderedOutcome:
    batches = [JobBatch.of(part) for part in (case.jobs[:cut], case.jobs[cut:]) if part]
    return run_ordered(
        case.setting, case.plan, case.needs, batches, case.options, values=case.values(), record_tasks=True,
        metrics=cluster_metrics(case.setting), **more,
    )  # fmt: skip


def assert_same(found: OrderedOutcome, expected: OrderedOutcome) -> None:
    for name in LAST:
        assert np.array_equal(found.jobs[name], expected.jobs[name], equal_nan=True), name
    for name in ("tasks", "held", "rows", "round_records", "busy_s"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist(), name
    for name in ("rounds", "makespan_s", "max_active", "job_rounds", "extensions", "opportunities", "reclaims"):
        assert getattr(found, name) == getattr(expected, name), name
    assert found.metrics is not None
    assert expected.metrics is not None
    assert found.metrics.state() == expected.metrics.state()


@settings(max_examples=scenarios_per_run(150))
@given(cases(), st.integers(1, 60), st.integers(0, 14))
def test_a_resumed_run_is_the_whole_run(case: Case, rounds: int, cut: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.npz"
        expected = played(case, checkpoint=CheckpointSchedule(path, every_rounds=rounds))
        assert_same(expected, played(case))  # keeping changes nothing
        assume(path.exists())
        state = RunState.read(path)
        assert 0 < state.meta["loop"]["rounds"] <= expected.rounds
        assert_same(played(case, cut, resume=state), expected)  # however the jobs are read this time


@settings(max_examples=scenarios_per_run(150))
@given(cases(), st.integers(0, 14))
def test_jobs_that_are_held_back_are_counted_whatever_batch_they_come_in(case: Case, cut: int) -> None:
    held_back = dataclasses.replace(case, plan=dataclasses.replace(case.plan, admit=1.0))
    assert_same(played(held_back, cut), played(held_back, len(case.jobs)))


@settings(max_examples=scenarios_per_run(20))
@given(cases("fair"), st.integers(1, 20))
def test_another_order_goes_on_only_without_the_memory(case: Case, rounds: int) -> None:
    other = dataclasses.replace(case, plan=dataclasses.replace(case.plan, order=("arrival", "arrival", "arrival")))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.npz"
        played(case, checkpoint=CheckpointSchedule(path, every_rounds=rounds))
        assume(path.exists())
        state = RunState.read(path)
        assume(case.plan != other.plan)
        with pytest.raises(PolicyError, match="checkpoint"):
            played(other, resume=state)
        assert played(other, resume=state.without_memory()).rounds >= state.meta["loop"]["rounds"]
        slower = dataclasses.replace(case.needs, speedup__k=case.needs.speedup__k * 2)
        with pytest.raises(ScenarioError, match="checkpoint: rates"):
            played(dataclasses.replace(case, needs=slower), resume=state)


def test_a_policy_of_shares_cannot_go_on(tmp_path: Path) -> None:
    import fastsim as fs

    base = ("synergy:1", "synth:synergy?jobs=12&rate_per_hour=20")
    fs.simulate(*base, "las + tune", rates="synergy", out=tmp_path / "a", checkpoint_pods=5, keep_checkpoint=True)
    again = fs.fork(tmp_path / "a", tmp_path / "b", policy="srtf + fair")
    assert again.jobs["state"].unique().to_list() == ["finished"]
    with pytest.raises(
        PolicyError, match="fork: policy: found max_min_fairness, expected a policy for jobs in an order, as before"
    ):
        fs.fork(tmp_path / "a", tmp_path / "c", policy="max_min_fairness")
    assert not (tmp_path / "c").exists()

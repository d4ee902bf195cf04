"""A run of adaptive jobs that stops somewhere and goes on from its file ends as if it had never stopped."""

from __future__ import annotations

import dataclasses
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fastsim as fs
from fastsim.adaptive_plan import AdaptiveJob, AdaptivePlan
from fastsim.adaptive_run import AdaptiveRun, run_adaptive
from fastsim.errors import FastsimError, PolicyError, ResultError, ScenarioError
from fastsim.policies.rounds.optimus import Optimus
from fastsim.policies.rounds.planned import Planned
from fastsim.policies.rounds.pollux import Pollux
from fastsim.policies.rounds.rotation import PROGRAMS, Rotation
from fastsim.policies.rounds.served import ORDERS, Served
from fastsim.policies.rounds.sia import Sia
from fastsim.round_checkpoint import RoundCheckpoint, RoundKeeping
from fastsim_ext.gauge import Gauge
from tests.adaptive import Whims, adaptive_setting, random_jobs, told_of
from tests.strategies import scenarios_per_run

POLICIES = (
    Sia(), Pollux(generations=4), Pollux(generations=4, tuned=False), *map(Rotation, PROGRAMS), *map(Served, ORDERS),
    Planned(), Optimus(), Sia(rigid=True, changed=0.01), Sia(aware=False),
)  # fmt: skip
SETTING = adaptive_setting()


def gauge() -> Gauge:
    """Measures what a toy says: quantity k of a node is k for each of its GPUs that is in use."""
    sizes = [gpus for group in SETTING.groups for gpus in group.gpus__n]
    totals = np.arange(9)[None, :, None] * np.arange(18)[None, None, :]
    return Gauge(
        np.repeat(np.arange(len(sizes), dtype=np.int32), sizes), np.zeros(len(sizes), np.int32),
        totals.astype(np.int64), 500.0, True,
    )  # fmt: skip


def played(policy: Any, jobs: list[AdaptiveJob], until_s: float = 6_000.0, **more: Any) -> AdaptiveRun:
    given: dict[str, Any] = {"record_tasks": True, "gauge": gauge()} | more
    return run_adaptive(told_of(SETTING), SETTING, policy.begin(SETTING), jobs, until_s=until_s, **given)


def assert_same(found: AdaptiveRun, expected: AdaptiveRun) -> None:
    for name in ("jobs", "trained", "tasks", "held", "rows", "busy_s"):
        assert getattr(found, name).tobytes() == getattr(expected, name).tobytes(), name
    for name in ("rounds", "calls", "makespan_s", "max_active", "job_rounds"):
        assert getattr(found, name) == getattr(expected, name), name
    assert found.gauge is not None
    assert expected.gauge is not None
    assert found.gauge.state() == expected.gauge.state()


@settings(max_examples=scenarios_per_run(12), deadline=None)
@example(Rotation("finish_time_fairness"), 2, 4_294_967_294, 10)  # a job with nothing left
@given(st.sampled_from(POLICIES), st.integers(1, 5), st.integers(0, 2**32), st.integers(10, 90))
def test_a_resumed_run_is_the_whole_run(policy: Any, count: int, seed: int, rounds: int) -> None:
    jobs = random_jobs(random.Random(seed), count)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.npz"
        expected = played(policy, jobs, checkpoint=RoundKeeping(path, every_rounds=rounds))
        assert_same(expected, played(policy, jobs))  # keeping changes nothing
        if not path.exists():
            return
        state = RoundCheckpoint.read(path)
        assert 0 < state.rounds <= expected.rounds
        assert_same(played(policy, jobs, resume=state), expected)


@settings(max_examples=scenarios_per_run(4), deadline=None)
@given(st.sampled_from(POLICIES), st.integers(0, 2**32))
def test_stopping_again_and_again_changes_nothing(policy: Any, seed: int) -> None:
    jobs = random_jobs(random.Random(seed), 4)
    expected = played(policy, jobs)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.npz"
        for part in range(1, 6):
            state = RoundCheckpoint.read(path) if path.exists() else None
            end_s = expected.makespan_s * part / 6
            played(policy, jobs, end_s, checkpoint=RoundKeeping(path, at_end=True), resume=state)
        assert_same(played(policy, jobs, resume=RoundCheckpoint.read(path)), expected)


def state(tmp_path: Path, **more: Any) -> RoundCheckpoint:
    path = tmp_path / "state.npz"
    played(Sia(), random_jobs(random.Random(1), 3), 4000.0, checkpoint=RoundKeeping(path, at_end=True), **more)
    return RoundCheckpoint.read(path)


def test_another_run_is_refused(tmp_path: Path) -> None:
    kept, jobs = state(tmp_path), random_jobs(random.Random(1), 3)
    with pytest.raises(PolicyError, match=r"checkpoint: found \['PolluxDecider'"):
        played(Pollux(), jobs, resume=kept)
    with pytest.raises(ScenarioError, match="checkpoint: recorded"):
        played(Sia(), jobs, resume=kept, record_tasks=False)
    with pytest.raises(FastsimError, match="job 0: batch_size"):
        played(Sia(), [jobs[0]._replace(batch_size=jobs[0].batch_size + 1), *jobs[1:]], resume=kept)
    with pytest.raises(FastsimError, match="no job 0"):
        played(Sia(), [], resume=kept)
    broken = dataclasses.replace(kept, arrays=kept.arrays | {"busy_s": kept.arrays["busy_s"][:8]})
    with pytest.raises(ResultError, match="expected the state of a run of adaptive jobs"):
        played(Sia(), jobs, resume=broken)


def test_a_decider_without_a_memory_is_refused(tmp_path: Path) -> None:
    plan = AdaptivePlan(Whims(SETTING, random.Random(1)))
    with pytest.raises(PolicyError, match="Whims, whose memory nobody can write down"):
        run_adaptive(told_of(SETTING), SETTING, plan, [], checkpoint=RoundKeeping(tmp_path / "state.npz"))


@pytest.mark.parametrize("policy", ["sia", "pollux(generations=5)", "rotation"])
def test_a_run_in_a_folder_goes_on(policy: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {"cluster": "sia:6:2:3", "workload": "synth:sia?jobs=4&seed=1", "policy": policy}
    given |= {"record": "all", "round_s": 20.0}
    expected = fs.simulate(**given)

    def stopped(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fs.simulate(**given, out=tmp_path / "run", checkpoint_s=0.0, progress=stopped)
    found = fs.resume(tmp_path / "run")
    for name in ("jobs", "timeline", "placements", "summary"):
        assert getattr(found, name).equals(getattr(expected, name)), name
    assert not list(tmp_path.glob(".*"))


def test_forks_are_refused(tmp_path: Path) -> None:
    fs.simulate(
        cluster="sia:2:1:1", workload="synth:sia?jobs=2&seed=1", policy="sia", out=tmp_path / "run",
        checkpoint_s=0.0, keep_checkpoint=True,
    )  # fmt: skip
    with pytest.raises(ScenarioError, match="fork: found a run of adaptive jobs"):
        fs.fork(tmp_path / "run", tmp_path / "other", policy="rotation")

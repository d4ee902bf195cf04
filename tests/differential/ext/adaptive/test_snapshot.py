"""A run of adaptive jobs that stops somewhere and goes on from its file ends as if it had never stopped."""

from __future__ import annotations

import dataclasses
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fastsim as fs
from fastsim.engine.adaptive.plan import AdaptiveJob, AdaptivePlan, AdaptiveView, Place
from fastsim.engine.adaptive.restored_state import TRAINED
from fastsim.engine.adaptive.run import AdaptiveOutcome, adaptive_driver, run_adaptive
from fastsim.engine.checkpoints.clock import CheckpointSchedule
from fastsim.engine.checkpoints.state import RunState
from fastsim.errors import FastsimError, PolicyError, ResultError, ScenarioError
from fastsim.policies.adaptive.optimus import Optimus
from fastsim.policies.adaptive.planned import Planned
from fastsim.policies.adaptive.pollux import Pollux
from fastsim.policies.adaptive.rotation import PROGRAMS, Rotation
from fastsim.policies.adaptive.served import ORDERS, Served
from fastsim.policies.adaptive.sia import Sia
from fastsim_ext.rounds.cluster_metrics import ClusterMetrics
from tests.adaptive import Whims, adaptive_setting, random_jobs, told_of
from tests.strategies import scenarios_per_run

POLICIES = (
    Sia(), Pollux(generations=4), Pollux(generations=4, tuned=False), *map(Rotation, PROGRAMS), *map(Served, ORDERS),
    Planned(), Optimus(), Pollux(generations=4, apart=False), Sia(rigid=True, changed=0.01), Sia(aware=False),
)  # fmt: skip
SETTING = dataclasses.replace(adaptive_setting(3), interference=0.5)


def cluster_metrics() -> ClusterMetrics:
    """Measures what a toy says: quantity k of a node is k for each of its GPUs that is in use."""
    sizes = [gpus for group in SETTING.groups for gpus in group.gpus__n]
    totals = np.arange(9)[None, :, None] * np.arange(18)[None, None, :]
    return ClusterMetrics(
        np.repeat(np.arange(len(sizes), dtype=np.int32), sizes), np.zeros(len(sizes), np.int32),
        totals.astype(np.int64), 500.0, True,
    )  # fmt: skip


def played(policy: Any, jobs: list[AdaptiveJob], until_s: float = 6_000.0, **more: Any) -> AdaptiveOutcome:
    given: dict[str, Any] = {"record_tasks": True, "metrics": cluster_metrics()} | more
    return run_adaptive(told_of(SETTING), SETTING, policy.begin(SETTING), jobs, until_s=until_s, **given)


def assert_same(found: AdaptiveOutcome, expected: AdaptiveOutcome) -> None:
    for name in ("jobs", "trained", "tasks", "held", "rows", "busy_s"):
        assert getattr(found, name).tobytes() == getattr(expected, name).tobytes(), name
    for name in ("rounds", "calls", "makespan_s", "max_active", "job_rounds"):
        assert getattr(found, name) == getattr(expected, name), name
    assert found.metrics is not None
    assert expected.metrics is not None
    assert found.metrics.state() == expected.metrics.state()


@settings(max_examples=scenarios_per_run(12), deadline=None)
@example(Rotation("finish_time_fairness"), 2, 4_294_967_294, 10)  # a job with nothing left
@given(st.sampled_from(POLICIES), st.integers(1, 5), st.integers(0, 2**32), st.integers(10, 90))
def test_a_resumed_run_is_the_whole_run(policy: Any, count: int, seed: int, rounds: int) -> None:
    jobs = random_jobs(random.Random(seed), count)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.npz"
        expected = played(policy, jobs, checkpoint=CheckpointSchedule(path, every_rounds=rounds))
        assert_same(expected, played(policy, jobs))  # keeping changes nothing
        if not path.exists():
            return
        state = RunState.read(path)
        assert 0 < state.meta["loop"]["rounds"] <= expected.rounds
        assert_same(played(policy, jobs, resume=state), expected)


@settings(max_examples=scenarios_per_run(4), deadline=None)
@given(st.sampled_from(POLICIES), st.integers(0, 2**32))
def test_stopping_again_and_again_changes_nothing(policy: Any, seed: int) -> None:
    jobs = random_jobs(random.Random(seed), 4)
    expected = played(policy, jobs)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.npz"
        for part in range(1, 6):
            state = RunState.read(path) if path.exists() else None
            end_s = expected.makespan_s * part / 6
            played(policy, jobs, end_s, checkpoint=CheckpointSchedule(path, at_end=True), resume=state)
        assert_same(played(policy, jobs, resume=RunState.read(path)), expected)


def test_a_resumed_run_has_more_measurements_than_an_empty_history_has_room_for(tmp_path: Path) -> None:
    jobs, path = random_jobs(random.Random(7), 40, 600.0), tmp_path / "state.npz"
    policy = Pollux(generations=4)
    played(policy, jobs, 3000.0, checkpoint=CheckpointSchedule(path, at_end=True))
    kept = RunState.read(path)
    assert kept.meta["loop"]["active"] and kept.meta["loop"]["measurements"] > 128
    assert_same(played(policy, jobs, resume=kept), played(policy, jobs))


class Beside:
    """Puts every job on the first GPUs of the same two nodes."""

    solver_s = 0.0

    def decide(self, view: AdaptiveView) -> dict[int, Place]:
        """The same place for all."""
        return {job.id: Place(0, (0, 1)) for job in view.jobs}

    def state(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing to restore."""


def test_a_resumed_run_knows_which_jobs_disturb_each_other(tmp_path: Path) -> None:
    def end_s(until_s: float = 90_000.0, **more: Any) -> Any:
        jobs = [AdaptiveJob(0.0, "cifar10", 2, 1024, "rigid")] * 2
        run = run_adaptive(told_of(SETTING), SETTING, AdaptivePlan(Beside()), jobs, until_s=until_s, **more)
        return run.jobs["finish_s"].tolist()

    end_s(300.0, checkpoint=CheckpointSchedule(tmp_path / "state.npz", at_end=True))
    state = RunState.read(tmp_path / "state.npz")
    assert end_s(resume=state) == end_s()


def state(tmp_path: Path, **more: Any) -> RunState:
    path = tmp_path / "state.npz"
    played(Sia(), random_jobs(random.Random(1), 3), 4000.0, checkpoint=CheckpointSchedule(path, at_end=True), **more)
    return RunState.read(path)


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


@pytest.mark.parametrize("name", ["stays", "preemptions"])
def test_more_stays_than_a_record_can_tell_are_refused(name: str, tmp_path: Path) -> None:
    kept = state(tmp_path)
    rows = np.frombuffer(kept.arrays["jobs"], TRAINED).copy()
    rows[name][-1] = 2**31
    broken = dataclasses.replace(kept, arrays=kept.arrays | {"jobs": rows.view(kept.arrays["jobs"].dtype)})
    with pytest.raises(ResultError, match=rf"jobs\.{name}"):
        played(Sia(), random_jobs(random.Random(1), 3), resume=broken)


def test_a_decider_without_a_memory_is_refused(tmp_path: Path) -> None:
    plan = AdaptivePlan(Whims(SETTING, random.Random(1)))
    with pytest.raises(PolicyError, match="Whims, whose state cannot be stored"):
        run_adaptive(told_of(SETTING), SETTING, plan, [], checkpoint=CheckpointSchedule(tmp_path / "state.npz"))


@pytest.mark.spread(1)
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


@settings(max_examples=scenarios_per_run(8), deadline=None)
@given(st.sampled_from(POLICIES), st.sampled_from(POLICIES), st.integers(0, 2**32), st.integers(5, 60))
def test_another_policy_goes_on_with_what_jobs_have_learned(before: Any, after: Any, seed: int, rounds: int) -> None:
    jobs = random_jobs(random.Random(seed), 4)
    with tempfile.TemporaryDirectory() as folder:
        path, later = Path(folder) / "past.npz", Path(folder) / "later.npz"
        past = played(before, jobs, 60.0 * rounds, checkpoint=CheckpointSchedule(path, at_end=True))
        shared = RunState.read(path).without_memory()
        fork = played(after, jobs, resume=shared, checkpoint=CheckpointSchedule(later, every_rounds=20))
        assert_same(fork, played(after, jobs, resume=shared))
        if later.exists():
            assert_same(played(after, jobs, resume=RunState.read(later)), fork)
    ended = past.jobs["ended"].astype(np.bool_)
    for name in past.jobs.dtype.names or ():
        assert fork.jobs[name][: len(past.jobs)][ended].tobytes() == past.jobs[name][ended].tobytes(), name
    assert (fork.jobs["run"][: len(past.jobs)] >= past.jobs["run"]).all()
    before_end = past.rows[:-1]  # the end closes the last one
    assert fork.rows[: len(before_end)].tobytes() == before_end.tobytes()


@pytest.mark.parametrize(("before", "after"), [(Sia(), Pollux()), (Pollux(), Sia())])
def test_beliefs_of_several_models_become_one_and_back(before: Any, after: Any, tmp_path: Path) -> None:
    jobs = random_jobs(random.Random(4), 12, 1000.0)
    path = tmp_path / "state.npz"
    played(before, jobs, 2400.0, checkpoint=CheckpointSchedule(path, at_end=True))
    old, new = (
        adaptive_driver(SETTING, policy.begin(SETTING), jobs, record_tasks=True, metrics=cluster_metrics())
        for policy in (before, after)
    )
    kept = RunState.read(path)
    old.take_over(kept)
    new.take_over(kept.without_memory())
    mixed = known = 0
    for was, now in zip(old.loop.active, new.loop.active, strict=True):
        seen = [old.performance.measurements(history) for history in was.history__g]
        learned = [new.performance.measurements(history) for history in now.history__g]
        if after == Sia():
            assert learned == [seen[0]] * len(seen)
        else:
            assert learned[1:] == [[]] * (len(seen) - 1)
            every = [at for part in seen for at in part]
            assert {at[:3] for at in learned[0]} == {at[:3] for at in every} and set(learned[0]) <= set(every)
            firsts = [next(at for at in every if at[:3] == key[:3]) for key in learned[0]]
            assert firsts == learned[0]
        known += len(learned[0])
        mixed += sum(map(bool, seen)) > 1
        assert old.job_view(was).restarts == new.job_view(now).restarts
    assert known > 0 and (mixed > 0) == (before == Sia())  # otherwise nothing was mixed here


def test_jobs_that_came_with_measurements_cannot_forget_them(tmp_path: Path) -> None:
    kept, jobs = state(tmp_path).without_memory(), random_jobs(random.Random(1), 3)
    with pytest.raises(PolicyError, match=r"jobs that arrive with measurements on \[2, 8\], expected on \[0, 0\]"):
        played(Sia(measured_nodes=2, measured_gpus=8), jobs, resume=kept)
    with pytest.raises(ResultError, match="no rules of fits"):
        meta = {name: part for name, part in kept.meta.items() if name != "fit_settings"}
        played(Sia(), jobs, resume=dataclasses.replace(kept, meta=meta))


RUN: dict[str, Any] = {"cluster": "sia:4:2:2", "workload": "synth:sia?jobs=4&seed=1", "record": "all"}
TABLES = ("jobs", "timeline", "placements", "summary")


@pytest.mark.spread(1)
@pytest.mark.parametrize("at_s", [600.0, 3000.0, None])
def test_a_fork_of_the_same_policy_is_the_run(at_s: float | None, tmp_path: Path) -> None:
    run = fs.simulate(**RUN, policy="sia", out=tmp_path / "run", checkpoint_s=0.0, keep_checkpoint=True)
    same = fs.fork(tmp_path / "run", tmp_path / "same", at_s=at_s)
    for name in TABLES:
        assert getattr(same, name).equals(getattr(run, name)), name


@pytest.mark.spread(2)
@pytest.mark.parametrize("policy", ["rotation", "pollux(generations=5)", "sia(aware=False)", "served"])
def test_forks_share_the_past_and_then_differ(policy: str, tmp_path: Path) -> None:
    run = fs.simulate(**RUN, policy="sia", out=tmp_path / "run", checkpoint_s=0.0, keep_checkpoint=True)
    fork = fs.fork(tmp_path / "run", tmp_path / "fork", at_s=1200.0, policy=policy)
    assert fork.summary["pods_finished"].to_list() == [4]
    early, late = pl.col("t_s") <= 1200.0, pl.col("t_s") > 1200.0
    assert fork.timeline.filter(early).equals(run.timeline.filter(early))
    assert not fork.timeline.filter(late).equals(run.timeline.filter(late))
    assert fork.provenance["forked_from"]["pods"] == (run.jobs["submit_s"] <= 1200.0).sum()


def test_forks_that_make_no_sense(tmp_path: Path) -> None:
    fs.simulate(**RUN, policy="sia", out=tmp_path / "run", checkpoint_s=0.0, keep_checkpoint=True)
    for changes, complaint in (
        ({"policy": "max_min_fairness"}, "fork: policy: found max_min_fairness, expected a policy for adaptive jobs"),
        ({"policy": "fgd"}, "fork: policy: found fgd, expected a policy for adaptive jobs"),
        ({"round_s": 20.0}, "fork: round_s: found a change of the past"),
    ):
        with pytest.raises(FastsimError, match=complaint):
            fs.fork(tmp_path / "run", tmp_path / "other", **changes)
        assert not (tmp_path / "other").exists()

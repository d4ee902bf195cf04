"""Checkpoints of runs in rounds: the file, what it refuses, when one is due."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastsim as fs
from fastsim.engine.adaptive.restored_state import MEASUREMENTS
from fastsim.engine.checkpoints.clock import CheckpointClock, Checkpoints, CheckpointSchedule
from fastsim.engine.checkpoints.folder import STATE, unfinished
from fastsim.engine.checkpoints.state import VERSION, RunState, stored_state
from fastsim.engine.checkpoints.writer import CheckpointWriter
from fastsim.engine.driving.drive import Stop
from fastsim.engine.rounds.checkpoint import arrived_jobs
from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.engine.rounds.options import Job, RoundOptions
from fastsim.engine.rounds.outcome import MOMENT, RoundOutcome
from fastsim.engine.shares.plan import Allocation, RoundView, SharePlan
from fastsim.engine.shares.run import run_rounds
from fastsim.engine.tables import EVENTS, ROW
from fastsim.errors import InputError, PolicyError, ResultError, ScenarioError, StoredError
from fastsim.policies.shares.max_min_fairness import MaxMinFairness
from fastsim.policies.shares.pair_rate_estimator import Estimator
from fastsim_ext.rounds import snapshot as round_state
from tests.engines import RUNS
from tests.unit.ext.rounds.test_loop import share_loop
from tests.views import setting

WHERE = setting((2, 1), [[1.0, 2.0]])
JOBS = [Job(100.0 * job, 0, 1, 1000.0) for job in range(8)]
ROUND_ENGINES = ("shares", "orders", "adaptive")
SIMULATED_JOBS = "synth:gavel?jobs=25&rate_per_hour=4&seed=1"


@dataclasses.dataclass
class Even:
    """The same share for everybody; counts how often it was asked."""

    calls: int = 0

    def allocate(self, view: RoundView) -> Allocation | None:
        """A third each."""
        self.calls += 1
        return Allocation.of_singles(view.job_id, np.full((len(view), 2), 1 / 3))

    def state(self) -> dict[str, Any]:
        """The count."""
        return {"calls": self.calls}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on counting."""
        self.calls = state["calls"]


class Other(Even):
    """Another class of policies."""


def played(policy: Even | None = None, jobs: list[Job] = JOBS, strict: bool = False, **more: Any) -> RoundOutcome:
    options = more.pop("options", RoundOptions(realloc_s=0.0))
    plan = SharePlan(policy or Even(), strict=strict, overcommitted=True)
    return run_rounds(WHERE, plan, [JobBatch.of(jobs)], options, **more)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A checkpoint after four rounds, and no other file beside it."""
    played(
        checkpoint=CheckpointSchedule(tmp_path / "state.npz", every_rounds=4),
        options=RoundOptions(realloc_s=0, until_s=1500),
    )
    assert [file.name for file in tmp_path.iterdir()] == ["state.npz"]
    return tmp_path / "state.npz"


def test_it_says_where_it_stands(path: Path) -> None:
    state = RunState.read(path)
    assert state.meta["loop"]["rounds"] == 4
    assert state.now_s == 1080  # the first round has a job of 500 s on the fast model, the others end after 360 s
    assert arrived_jobs(state)["id"].tolist() == list(range(state.arrived)) == list(range(8))


def test_the_policy_remembers(path: Path) -> None:
    policy = Even()
    run = played(policy, resume=RunState.read(path))
    assert policy.calls == run.calls
    assert run.jobs.tolist() == played().jobs.tolist()


def test_another_policy_begins_without_a_memory_and_at_once(path: Path) -> None:
    state, policy = RunState.read(path), Other()
    with pytest.raises(PolicyError, match=r"checkpoint: found .'Other', .* expected .'Even'.*without_memory"):
        played(policy, resume=state)
    run = played(policy, resume=state.without_memory(), strict=True)
    assert 0 < policy.calls < run.calls
    assert not np.isnan(run.jobs["finish_s"]).any()


@pytest.mark.parametrize("changes", [{"round_s": 100.0}, {"realloc_s": 5.0}, {"window": (0, 3)}, {"endless": True},
                                     {"compat": frozenset({"whole_steps"})}, {"global_queue": True}])  # fmt: skip
def test_other_decisions_are_refused(path: Path, changes: dict[str, Any]) -> None:
    options = dataclasses.replace(RoundOptions(realloc_s=0.0), **changes)
    with pytest.raises(ScenarioError, match=f"checkpoint: {next(iter(changes))}: found .* as before"):
        played(options=options, resume=RunState.read(path))


def test_another_record_of_tasks_is_refused(path: Path) -> None:
    with pytest.raises(ScenarioError, match="checkpoint: recorded: found True, expected False, as before"):
        played(record_tasks=True, resume=RunState.read(path))


def test_other_jobs_are_refused(path: Path) -> None:
    state = RunState.read(path)
    jobs = [*JOBS[:5], JOBS[5]._replace(total_steps=9.0), *JOBS[6:]]
    with pytest.raises(InputError, match=r"job 5: total: found 9\.0, expected 1000\.0, as when"):
        played(jobs=jobs, resume=state)
    with pytest.raises(InputError, match="workload: found 3 jobs, expected at least 8"):
        played(jobs=JOBS[:3], resume=state)


def test_damaged_and_foreign_files_are_refused(path: Path, tmp_path: Path) -> None:
    whole = path.read_bytes()
    with pytest.raises(ResultError, match=r"none\.npz: found no such file, expected the checkpoint of a run"):
        RunState.read(tmp_path / "none.npz")
    for damaged in (b"", b"no archive", whole[: len(whole) // 2], whole.replace(b"gangs", b"bangs")):
        path.write_bytes(damaged)
        with pytest.raises(ResultError, match=r"state\.npz: .*expected the checkpoint of a run"):
            RunState.read(path)
    np.savez(path, other=np.zeros(3))
    with pytest.raises(ResultError, match="cannot be read"):
        RunState.read(path)


def test_another_version_is_refused(path: Path) -> None:
    with np.load(path) as stored:
        arrays = dict(stored)
    header = json.loads(arrays.pop("header").tobytes()) | {"version": 99}
    np.savez(path, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)
    with pytest.raises(ResultError, match=rf"found the state of a run of version 99, expected version {VERSION}"):
        RunState.read(path)


def test_a_state_that_contradicts_itself_is_refused(path: Path) -> None:
    state = RunState.read(path)
    loop = state.meta["loop"]
    for wrong in ({"jobs": 99}, {"held": 99}, {"couples": -1}):
        broken = state.having(loop=loop | wrong)
        with pytest.raises(ResultError, match=r"checkpoint: found .* expected the state of a run in rounds"):
            played(resume=broken)


def test_a_state_is_only_there_between_rounds(path: Path) -> None:
    run = share_loop()
    run.feed(*JobBatch.of(JOBS[:1]), True)
    assert run.advance(9) == Stop.ASK_POLICY  # within a round
    assert round_state.arrived(run) == 1
    with pytest.raises(ValueError, match="within a round"):
        round_state.snapshot(run)
    with pytest.raises(ValueError, match="has begun"):
        round_state.restore(run, {}, {})


def test_one_is_due_after_rounds_after_seconds_or_with_a_job() -> None:
    keeper = CheckpointClock(CheckpointSchedule("x", every_rounds=10), 5, 0)
    assert (keeper.budget(5, 4096), keeper.budget(12, 4096), keeper.budget(12, 2)) == (10, 3, 2)
    assert (keeper.due(14, 0), keeper.due(15, 0)) == (False, True)
    keeper.restart(15, 0)
    assert not keeper.due(16, 0)
    assert CheckpointClock(CheckpointSchedule("x", wall_s=0.0), 0, 0).due(1, 0)
    assert not CheckpointClock(CheckpointSchedule("x", wall_s=1e9), 0, 0).due(1, 0)
    filled = CheckpointClock(CheckpointSchedule("x", every_jobs=5), 0, 2)
    assert filled.budget(0, 4096) == 5
    assert [filled.due(rounds, arrived) for rounds, arrived in ((3, 6), (4, 7))] == [False, True]
    assert CheckpointClock(CheckpointSchedule("x", every_jobs=10_000), 0, 0).budget(0, 4096) == 64
    coming = CheckpointClock(CheckpointSchedule("x", at_job=3), 0, 0)
    assert coming.budget(0, 4096) == 1
    assert [coming.due(1, arrived) for arrived in (0, 3, 4, 5)] == [False, False, True, False]
    assert coming.budget(0, 4096) == 4096
    assert not CheckpointClock(CheckpointSchedule("x", at_job=3), 0, 4).due(1, 5)  # it came before


def test_one_that_is_due_with_a_job_is_written_once(tmp_path: Path) -> None:
    played(checkpoint=CheckpointSchedule(tmp_path / "s", at_job=2))
    state = RunState.read(tmp_path / "s")
    assert state.arrived == 4  # the round after 360 s, and no later one


@pytest.mark.parametrize("wrong", [{"every_rounds": 0}, {"every_rounds": True}, {"wall_s": -1.0}, {"at_job": -1},
                                   {"wall_s": float("inf")}])  # fmt: skip
def test_numbers_without_meaning_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match=f"checkpoint: {next(iter(wrong))}"):
        CheckpointSchedule("x", **wrong)


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="cannot be written"):
        played(checkpoint=CheckpointSchedule(tmp_path / "no" / "s", every_rounds=1))


def test_estimates_go_on_with_their_draws(tmp_path: Path) -> None:
    rates = np.linspace(0.1, 0.9, 27).reshape(3, 3, 3) * np.array([[1.0], [2.0], [3.0]])[:, None]
    where = setting((2, 1, 1), [[1.0] * 3, [2.0] * 3, [3.0] * 3], rates)
    jobs = [JobBatch.of([Job(300.0 * job, job % 3, 1, 2000.0)]) for job in range(20)]

    def run(profiled: float = 0.5, **more: Any) -> RoundOutcome:
        plan = MaxMinFairness(mode="packed").begin(where)
        plan = dataclasses.replace(plan, estimates=Estimator(profiled, 2).begin(where))
        return run_rounds(where, plan, jobs, RoundOptions(), **more)

    path = tmp_path / "state.npz"
    whole = run(checkpoint=CheckpointSchedule(path, at_job=9))
    state = RunState.read(path)
    assert state.arrived < len(jobs)
    assert run(resume=state).jobs.tolist() == whole.jobs.tolist()
    with pytest.raises(ScenarioError, match=r"checkpoint: estimates: found 0.9 of 2 references .* as before"):
        run(0.9, resume=state)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working folder of a run that kept its checkpoint."""
    out = tmp_path_factory.mktemp("saving") / "run"
    fs.simulate("gavel:2:2:2", SIMULATED_JOBS, "fifo", out=out, checkpoint_pods=10, keep_checkpoint=True)
    return out.with_name("run.checkpoint")


def test_a_state_says_how_to_build_the_run_again(work: Path) -> None:
    assert [path.name for path in work.iterdir()] == [STATE]
    taken = stored_state(work)
    fields = taken.note["scenario"]["fields"]
    assert (fields["cluster"], fields["workload"], fields["policy"]) == ("gavel:2:2:2", SIMULATED_JOBS, "fifo")
    assert Checkpoints(**taken.note["checkpoints"]) == Checkpoints(10, None, True)
    assert taken.arrived >= 10 and min(taken.note["spent"].values()) > 0


def test_time_of_earlier_starts_counts(work: Path) -> None:
    taken = stored_state(work)
    saving = CheckpointWriter(work.with_name("other"), Checkpoints(), taken.note["scenario"], taken)
    assert saving.spent({"wall_s": 0.0, "cpu_s": 0.0}) == taken.note["spent"]
    assert saving.note()["spent"]["wall_s"] > taken.note["spent"]["wall_s"]


def test_checkpoints_need_a_folder_and_numbers_that_mean_something(tmp_path: Path) -> None:
    for keeping, out, match in (
        (Checkpoints(0), tmp_path / "run", "checkpoint_pods"),
        (Checkpoints(5), None, "out=FOLDER"),
    ):
        with pytest.raises(ScenarioError, match=match), unfinished(out, keeping, False, False):
            pass
    assert not list(tmp_path.iterdir())


def test_a_state_without_notes_is_no_checkpoint_of_a_run(work: Path, tmp_path: Path) -> None:
    RunState.read(work / STATE).having(note={}).write(tmp_path / STATE)
    with pytest.raises(ResultError, match="found a state without scenario, expected the checkpoint of"):
        stored_state(tmp_path)


def resume_changed(
    engine: str, folder: Path, name: str, kind: Any, change: Callable[[Any], None], **numbers: int
) -> None:
    """Go on from a checkpoint of a small run whose records of this name and numbers of the loop were changed."""
    fs.simulate(**RUNS[engine], out=folder / "run", checkpoint_pods=3, keep_checkpoint=True)
    file = folder / "run.checkpoint" / STATE
    state = RunState.read(file)
    records = np.frombuffer(state.arrays[name].tobytes(), kind).copy()
    change(records)
    arrays = {**state.arrays, name: records.view(state.arrays[name].dtype)}
    meta = {**state.meta, "loop": {**state.meta["loop"], **numbers}}
    dataclasses.replace(state, meta=meta, arrays=arrays).write(file)
    fs.resume(folder / "run", overwrite=True)


@pytest.mark.spread(2)
@pytest.mark.parametrize(
    ("engine", "field", "value"), [*((one, "kind", len(EVENTS)) for one in ROUND_ENGINES), ("orders", "seq", 1 << 40)]
)
def test_rows_of_unknown_events_and_rounds_are_refused(engine: str, field: str, value: int, tmp_path: Path) -> None:
    def change(rows: Any) -> None:
        rows[field][rows["kind"] == EVENTS.index("sample")] = value

    with pytest.raises(StoredError, match=rf"rows\.{field}"):
        resume_changed(engine, tmp_path, "rows", ROW, change)


@pytest.mark.spread(2)
@pytest.mark.parametrize(
    ("field", "value"), [("pod", 65_536), ("pod", -2), ("seq", -1), ("running", -1), ("gpu_cap", -5)]
)
@pytest.mark.parametrize("engine", ROUND_ENGINES)
def test_rows_of_jobs_that_are_not_there_and_counts_below_nothing_are_refused(
    engine: str, field: str, value: int, tmp_path: Path
) -> None:
    def change(rows: Any) -> None:
        rows[field][-1] = value

    with pytest.raises(StoredError, match=rf"rows\.{field}"):
        resume_changed(engine, tmp_path, "rows", ROW, change)


def test_a_job_that_waits_for_its_admission_must_come_again(tmp_path: Path) -> None:
    def change(rows: Any) -> None:
        rows["pod"][-1] = 65_536

    with pytest.raises(InputError, match="at least 65537, as when the checkpoint was written"):
        resume_changed("orders", tmp_path, "rows", ROW, change, reported=65_537)


@pytest.mark.spread(1)
@pytest.mark.parametrize("engine", ROUND_ENGINES)
def test_stays_without_their_first_round_are_refused(engine: str, tmp_path: Path) -> None:
    def change(tasks: Any) -> None:
        tasks["held"] = -1

    with pytest.raises(StoredError, match="tasks: a stay without its GPUs"):
        resume_changed(engine, tmp_path, "tasks", MOMENT, change)


@pytest.mark.parametrize(
    ("engine", "value", "told"),
    [*((one, 1 << 40, "mark") for one in ROUND_ENGINES), *((one, -1, "touched") for one in ("shares", "orders"))],
)
def test_nodes_in_use_without_the_mark_of_their_round_are_refused(
    engine: str, value: int, told: str, tmp_path: Path
) -> None:
    def change(mark: Any) -> None:
        mark[mark == mark.max()] = value  # those in use would be added to a full list of them once more

    with pytest.raises(StoredError, match=told):
        resume_changed(engine, tmp_path, "mark", np.dtype(np.int64), change)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_fitted_step_times_that_are_no_numbers_are_refused(value: float, tmp_path: Path) -> None:
    def change(rows: Any) -> None:
        rows["perf"]["gamma"][-1] = value

    with pytest.raises(StoredError, match=r"measurements\.perf"):
        resume_changed("adaptive", tmp_path, "measurements", MEASUREMENTS, change)


def test_records_that_are_cut_are_refused(tmp_path: Path) -> None:
    fs.simulate(**RUNS["orders"], out=tmp_path / "run", checkpoint_pods=3, keep_checkpoint=True)
    file = tmp_path / "run.checkpoint" / STATE
    state = RunState.read(file)
    dataclasses.replace(state, arrays={**state.arrays, "tasks": state.arrays["tasks"][:0]}).write(file)
    with pytest.raises(StoredError, match="records of another number of rounds"):
        fs.resume(tmp_path / "run", overwrite=True)

"""Resumed runs and forks: from a checkpoint, the same run goes on to its end, or another one with the same past."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastsim.engine.checkpoint_folder import (
    STATE,
    SUFFIX,
    Checkpoint,
    Checkpoints,
    check_stored_run,
    cleared,
    restoring,
    unfinished,
    working_folder,
)
from fastsim.engine.online.arrivals import arrived_by
from fastsim.engine.rounds.checkpoint import (
    CheckpointSchedule,
    RoundCheckpoint,
    RoundCheckpointWriter,
    is_of_rounds,
    stored_state,
)
from fastsim.errors import FastsimError, PolicyError, ResultError, ScenarioError
from fastsim.foundation.folder_lock import held
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.limits.quantities import seconds_of
from fastsim.foundation.option_texts import path_of
from fastsim.policies import registry
from fastsim.scenario.scenario import Scenario
from fastsim.scenario.user_code import refuse_user_code
from fastsim.simulation import simulate as simulation
from fastsim.simulation.engines.pods import prepared
from fastsim.simulation.simulate import OTHER_ENGINE

if TYPE_CHECKING:
    from fastsim.engine.result import Result
    from fastsim.simulation.simulate import Progress

FORK_FIELDS = (
    "policy", "queue", "gpu_pick", "seed", "until_s", "inflation", "retarget", "preempt", "on_node_loss",
    "checkpoint_every_s", "restart_s", "quotas", "weights", "name",
)  # fmt: skip
"""Fields of a scenario that may differ after a fork; everything else decided the past too."""
ROUND_FORK_FIELDS = ("policy", "until_s", "name", "log")
"""Those of a run in rounds."""


@whole_process
def resume(
    folder: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    overwrite: bool = False,
    allow_code: bool = False,
    **objects: Any,
) -> Result:
    """Resume the run to this folder from its last checkpoint; its tables are those of an uninterrupted run.

    ``objects`` are those parts of the scenario that were objects in memory and not texts (``cluster``, ``workload``,
    ``policy``, ...); whether they are the same is checked. A run is refused while another process works on it.
    ``allow_code`` lets the stored policy import a function of the user's.
    """
    out = _target(path_of("resume: folder", folder, "the folder of a run, a text or a path"))
    work = working_folder(out)
    if is_of_rounds(work):
        return resume_rounds(out, work, partial(_scenario, out, objects, allow_code), progress, overwrite)
    Checkpoint.read(work)  # without a checkpoint there is nothing to lock
    with held(out, overwrite):
        checkpoint = _stored_pods(work)
        checkpoint.check_parts(work)
        scenario = _scenario(out, objects, allow_code, checkpoint.meta["scenario"])
        return simulation.run(scenario, progress, overwrite, Checkpoints(**checkpoint.meta["checkpoints"]), checkpoint)


@whole_process
def fork(
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    at_s: float | str | None = None,
    progress: Progress | None = None,
    overwrite: bool = False,
    allow_code: bool = False,
    **changes: Any,
) -> Result:
    """Another run from the checkpoint beside this folder, to a folder of its own: the same past, then the changes.

    ``changes`` may name another policy, queue, gpu_pick, seed, until_s (seconds), inflation, retarget or rule (from
    ``preempt`` to ``weights``), and gives the parts of the scenario that were objects in memory. They count from the
    checkpoint on, or from ``at_s`` seconds of simulated time: everything up to then happens as in the run, once more
    from the beginning if the checkpoint is of a later time. Outages are part of the past, and with random failures so
    is the seed. The checkpoint stays as it is. ``allow_code`` as in :func:`resume`. A fork of a run in rounds may
    change the policy and ``until_s``; see :func:`fastsim.simulation.resume.fork_rounds`.
    """
    source = working_folder(_target(path_of("fork: folder", folder, "the folder of a run, a text or a path")))
    target = path_of("fork: out", out, "a folder, a text or a path").absolute()
    rounds = is_of_rounds(source)
    written = (stored_state(source).note if rounds else _stored_pods(source).meta)["scenario"]
    objects = {name: changes.pop(name) for name in written["objects"] if name in changes}
    if working_folder(target) == source:
        raise ScenarioError("fork: out", str(target), "another folder than that of the run")
    at_s = _time_of(at_s)
    stored = partial(_scenario, target, objects, allow_code)
    if rounds:
        return fork_rounds(source, target, stored, at_s, changes, progress, overwrite)
    return _fork_pods(source, target, stored, at_s, changes, progress, overwrite)


def _fork_pods(
    source: Path, target: Path, stored: Callable[..., Scenario], at_s: float | None, changes: dict[str, Any],
    progress: Progress | None, overwrite: bool,
) -> Result:  # fmt: skip
    checkpoint = _stored_pods(source)
    wrong = [name for name in changes if name not in FORK_FIELDS]
    if wrong:
        raise ScenarioError(f"fork: {wrong[0]}", "a change of the past", f"changes of {', '.join(FORK_FIELDS)}")
    _check_past(at_s, checkpoint)
    before, after = stored(checkpoint.meta["scenario"]), stored(checkpoint.meta["scenario"], changes)
    after.check()
    checkpoints = Checkpoints(**(checkpoint.meta["checkpoints"] | {"keep": False}))
    with held(target, overwrite), unfinished(target, checkpoints, False, overwrite) as work:
        try:
            if at_s is None or checkpoint.meta["loop"]["now"] <= at_s:
                _copy_parts(checkpoint, source, work)
            start = checkpoint if at_s is None else _played(before, at_s, checkpoint, work, progress)
            # From here on the fork can be resumed; killed earlier, it leaves nothing.
            start = Checkpoint(start.meta | _forked(checkpoint, start, after, at_s), start.arrays)
            start.write(work)
            return simulation.run(after, progress, overwrite, checkpoints, start)
        except FastsimError:
            cleared(work)
            raise


def _stored_pods(work: Path) -> Checkpoint:
    """The state of a run of pods, its plain values checked; ResultError if it is damaged or something else."""
    from fastsim.engine.online.restored_state import check_header

    checkpoint = Checkpoint.read(work)
    with restoring(work):
        check_header(checkpoint.meta)
        check_stored_run(checkpoint.meta["scenario"], checkpoint.meta["checkpoints"])
    return checkpoint


def _time_of(at_s: float | str | None) -> float | None:
    """The seconds of a finite time, which a text may have with units; None stays None."""
    seconds = seconds_of(at_s) if isinstance(at_s, str) else at_s
    if at_s is None or (isinstance(seconds, int | float) and not isinstance(seconds, bool) and math.isfinite(seconds)):
        return seconds
    raise ScenarioError("fork: at_s", repr(at_s), "seconds of simulated time")


def _check_past(at_s: float | None, checkpoint: Checkpoint) -> None:
    """ScenarioError if this time is in the past of another run, which cannot be played again."""
    if at_s is None:
        return
    now = checkpoint.meta["loop"]["now"]
    if at_s < now and checkpoint.meta["forked_from"] is not None:
        expected = f"{now!r} or more, the time of the checkpoint: earlier is the past of another run"
        raise ScenarioError("fork: at_s", repr(at_s), expected)


def _copy_parts(checkpoint: Checkpoint, source: Path, work: Path) -> None:
    """Copy the files of a checkpoint to another working folder."""
    checkpoint.check_parts(source)
    for name in checkpoint.parts():
        try:
            shutil.copyfile(source / name, work / name)
        except OSError as error:
            raise ResultError(f"{work / name}: cannot be written: {error.strerror or error}") from error
    checkpoint.check_parts(work)


def _played(
    scenario: Scenario, at_s: float, checkpoint: Checkpoint, work: Path, progress: Progress | None
) -> Checkpoint:
    """The state of the checkpoint's run at a time in seconds, played from it if it is earlier; rows go to ``work``."""
    from fastsim.engine.online.checkpointing import CheckpointWriter
    from fastsim.engine.online.run import OnlineRun

    checkpoint = Checkpoint(checkpoint.meta | {"may_change": ["until_s"]}, checkpoint.arrays)
    start = checkpoint if checkpoint.meta["loop"]["now"] <= at_s else None
    inputs = prepared(scenario, progress=progress)
    end_s = at_s if scenario.until_s is None else min(at_s, scenario.until_s)
    writer = CheckpointWriter(work, Checkpoints(), checkpoint.meta["scenario"], start)
    options = replace(inputs.options, until_s=end_s, folder=work, checkpoint_writer=writer, telemetry=None)
    run = OnlineRun(inputs.cluster, inputs.workload, inputs.plan, inputs.typical, options)
    try:
        writer.compare(run, checkpoint)
        batches = arrived_by(writer.batches(inputs.workload), end_s)
        writer.take_over(run, batches)
        run.stream(batches)
        run.writer.close()
        return writer.secured(writer.state(run), run.recorder)
    finally:
        run.writer.drop()
        run.recorder.drop()
        run.release_memo()


def _forked(checkpoint: Checkpoint, start: Checkpoint, scenario: Scenario, at_s: float | None) -> dict[str, Any]:
    """Values of a fork's first checkpoint that record its origin."""
    from fastsim.engine.online.checkpointing import FORK_MAY_CHANGE

    loop = start.meta["loop"]
    at_s = loop["now"] if at_s is None else at_s
    past = {"scenario": checkpoint.meta["scenario"]["fields"], "pods": loop["arrived"], "at_s": at_s}
    before = checkpoint.meta["forked_from"]
    return {
        "scenario": scenario.written(), "may_change": FORK_MAY_CHANGE,
        "forked_from": past if before is None else past | {"forked_from": before},
    }  # fmt: skip


def _target(folder: Path) -> Path:
    """The folder of the run, also from the folder of its checkpoint."""
    plain = folder.absolute()
    return plain.with_name(plain.name.removesuffix(SUFFIX))


def _scenario(
    out: Path,
    objects: dict[str, Any],
    allow_code: bool,
    stored: dict[str, Any],
    changes: dict[str, Any] | None = None,
) -> Scenario:
    """The scenario that was ``stored`` with a checkpoint, completed by ``objects`` that cannot be stored."""
    needed = [name for name in stored["objects"] if name not in {**objects, **(changes or {})}]
    if needed:
        raise ResultError(f"{out}{SUFFIX}: {', '.join(needed)} was an object in memory; give it again: {needed[0]}=...")
    stray = [name for name in objects if name not in stored["objects"]]
    if stray:
        raise ScenarioError(f"resume: {stray[0]}", "a new value", "nothing: the checkpoint has it")
    if "policy" in stored["fields"] and "policy" not in (changes or {}):
        refuse_user_code(stored["fields"]["policy"], f"{out}{SUFFIX}", allow_code)
    fields = stored["fields"] | objects | (changes or {}) | {"out": str(out)}
    return Scenario.from_dict(fields, str(out))


def resume_rounds(
    out: Path, work: Path, stored: Callable[..., Scenario], progress: Progress | None, overwrite: bool
) -> Result:
    """Resume the run to ``out``; ``stored`` makes its scenario from the fields in the checkpoint."""
    stored_state(work)  # without a checkpoint there is nothing to lock
    with held(out, overwrite):
        checkpoint = stored_state(work)
        scenario = stored(checkpoint.note["scenario"])
        return simulation.run(scenario, progress, overwrite, Checkpoints(**checkpoint.note["checkpoints"]), checkpoint)


def fork_rounds(
    source: Path, target: Path, stored: Callable[..., Scenario], at_s: float | None, changes: dict[str, Any],
    progress: Progress | None, overwrite: bool,
) -> Result:  # fmt: skip
    """Another run from a checkpoint, or from a time in seconds: the same past, then ``changes``.

    Another policy begins without a state, and allocates as soon as ``realloc_s`` allows. A fork at a time begins with
    the first round that starts then or later. Adaptive jobs keep their measurements and fits.
    """
    checkpoint = stored_state(source)
    wrong = [name for name in changes if name not in ROUND_FORK_FIELDS]
    if wrong:
        raise ScenarioError(f"fork: {wrong[0]}", "a change of the past", f"changes of {', '.join(ROUND_FORK_FIELDS)}")
    before, after = stored(checkpoint.note["scenario"]), stored(checkpoint.note["scenario"], {"log": None} | changes)
    after.check()
    engine, former = (registry.engine_of(registry.policy_of(one.policy)) for one in (after, before))
    adaptive = former == "adaptive"
    kind = "adaptive jobs" if adaptive else "jobs"
    if registry.METHODS[engine] != "begin" or (engine == "adaptive") != adaptive:
        raise PolicyError("fork: policy", str(after.policy), f"a policy for {kind}, as before", OTHER_ENGINE)
    if at_s is not None and at_s < checkpoint.now_s and checkpoint.note["forked_from"] is not None:
        expected = f"{checkpoint.now_s!r} or more, the time of the checkpoint: earlier is the past of another run"
        raise ScenarioError("fork: at_s", repr(at_s), expected)
    checkpoints = Checkpoints(**(checkpoint.note["checkpoints"] | {"keep": False}))
    with held(target, overwrite), unfinished(target, checkpoints, False, overwrite) as work:
        try:
            start = checkpoint if at_s is None else _rounds_played(before, at_s, checkpoint, work, progress)
            start = _rounds_forked(checkpoint, start, after, at_s)
            if "policy" in changes:
                start = start.without_memory()
            start.write(work / STATE)
            return simulation.run(after, progress, overwrite, checkpoints, start)
        except FastsimError:
            cleared(work)
            raise


def _rounds_played(
    scenario: Scenario, at_s: float, checkpoint: RoundCheckpoint, work: Path, progress: Progress | None
) -> RoundCheckpoint:
    """The state of the checkpoint's run at a time in seconds, played from it if it is earlier."""
    from fastsim.simulation.engines.adaptive import driven_adaptive, prepared_adaptive
    from fastsim.simulation.engines.rounds import driven, prepared_rounds

    end_s = at_s if scenario.until_s is None else min(at_s, scenario.until_s)
    scenario = scenario.with_(until_s=end_s)
    start = checkpoint if checkpoint.now_s <= end_s else None
    path = work / f".{STATE}.past.partial"
    note = RoundCheckpointWriter(work, Checkpoints(), checkpoint.note["scenario"], start).note
    schedule, policy = CheckpointSchedule(path, at_end=True, note=note), registry.policy_of(scenario.policy)
    if registry.engine_of(policy) == "adaptive":
        driven_adaptive(scenario, prepared_adaptive(scenario, policy), progress, schedule, start)
    else:
        driven(scenario, prepared_rounds(scenario, policy), progress, schedule, start)
    state = RoundCheckpoint.read(path)
    path.unlink()
    return state


def _rounds_forked(
    checkpoint: RoundCheckpoint, start: RoundCheckpoint, scenario: Scenario, at_s: float | None
) -> RoundCheckpoint:
    """The state with notes of its origin."""
    at_s = start.now_s if at_s is None else at_s
    past = {"scenario": checkpoint.note["scenario"]["fields"], "pods": start.jobs, "at_s": at_s}
    before = checkpoint.note["forked_from"]
    return start.noted(
        scenario=scenario.written(), checkpoints=checkpoint.note["checkpoints"] | {"keep": False},
        forked_from=past if before is None else past | {"forked_from": before},
    )  # fmt: skip

"""Runs that go on from a checkpoint: the same run to its end, or another one that shares its past."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastsim.engine.checkpoint_folder import STATE, SUFFIX, Checkpoint, Checkpoints, cleared, unfinished, working_folder
from fastsim.engine.online.arrivals import arrived_by, stream
from fastsim.engine.rounds.checkpoint import RoundCheckpoint, RoundKeeping, RoundSaving, is_of_rounds, stored_state
from fastsim.errors import FastsimError, PolicyError, ResultError, ScenarioError
from fastsim.foundation.folder_lock import held
from fastsim.policies import registry
from fastsim.scenario.scenario import Scenario
from fastsim.scenario.user_code import refuse_user_code
from fastsim.simulation import simulate as simulation
from fastsim.simulation.adaptive import is_adaptive
from fastsim.simulation.scenario_checks import is_round_policy

if TYPE_CHECKING:
    from fastsim.engine.result import Result
    from fastsim.simulation.simulate import Progress

FORK_FIELDS = (
    "policy", "queue", "gpu_pick", "seed", "until_s", "inflation", "retarget", "preempt", "on_node_loss",
    "checkpoint_every_s", "restart_s", "quotas", "weights", "name",
)  # fmt: skip
"""Fields of a scenario that may differ after a fork; everything else decided the past too."""
ROUND_FORK_FIELDS = ("policy", "until_s", "name", "log")
"""Fields of a scenario that may differ after a fork; everything else decided the past too."""


def resume(
    folder: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    overwrite: bool = False,
    allow_code: bool = False,
    **objects: Any,
) -> Result:
    """Go on with the run to this folder from its last checkpoint; its tables are as if it had never stopped.

    ``objects`` are those parts of the scenario that were objects in memory and not texts (``cluster``, ``workload``,
    ``policy``, ...); whether they are the same is checked. A run that another process is at work on is refused.
    ``allow_code`` lets the stored policy import a function of the user's.
    """
    out = _target(Path(folder))
    work = working_folder(out)
    if is_of_rounds(work):
        return resume_rounds(out, work, partial(_scenario, out, objects, allow_code), progress, overwrite)
    Checkpoint.read(work)  # a lock would be of no use where there is nothing
    with held(out, overwrite):
        taken = Checkpoint.read(work)
        taken.check_parts(work)
        scenario = _scenario(out, objects, allow_code, taken.meta["scenario"])
        return simulation.run(scenario, progress, overwrite, Checkpoints(**taken.meta["keeping"]), taken)


def fork(
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    at_s: float | None = None,
    progress: Progress | None = None,
    overwrite: bool = False,
    allow_code: bool = False,
    **changes: Any,
) -> Result:
    """Another run from the checkpoint beside this folder, to a folder of its own: a shared past, then the changes.

    ``changes`` may name another policy, queue, gpu_pick, seed, until_s (seconds), inflation, retarget or rule (from
    ``preempt`` to ``weights``), and gives the parts of the scenario that were objects in memory. They count from the
    checkpoint on, or from ``at_s`` seconds of simulated time: everything up to then happens as in the run, once more
    from the beginning if the checkpoint is of a later time. Outages are part of the past, and with random failures so
    is the seed. The checkpoint stays as it is. ``allow_code`` as in :func:`resume`. A fork of a run in rounds may
    change the policy and ``until_s``; see :func:`fastsim.simulation.resume.fork_rounds`.
    """
    source, target = working_folder(_target(Path(folder))), Path(out).absolute()
    rounds = is_of_rounds(source)
    written = (stored_state(source).note if rounds else Checkpoint.read(source).meta)["scenario"]
    objects = {name: changes.pop(name) for name in written["objects"] if name in changes}
    if working_folder(target) == source:
        raise ScenarioError("fork: out", str(target), "another folder than that of the run")
    _check_time(at_s)
    stored = partial(_scenario, target, objects, allow_code)
    if rounds:
        return fork_rounds(source, target, stored, at_s, changes, progress, overwrite)
    return _fork_pods(source, target, stored, at_s, changes, progress, overwrite)


def _fork_pods(
    source: Path, target: Path, stored: Callable[..., Scenario], at_s: float | None, changes: dict[str, Any],
    progress: Progress | None, overwrite: bool,
) -> Result:  # fmt: skip
    taken = Checkpoint.read(source)
    wrong = [name for name in changes if name not in FORK_FIELDS]
    if wrong:
        raise ScenarioError(f"fork: {wrong[0]}", "a change of the past", f"changes of {', '.join(FORK_FIELDS)}")
    _check_past(at_s, taken)
    before, after = stored(taken.meta["scenario"]), stored(taken.meta["scenario"], changes)
    after.check()
    keeping = Checkpoints(**(taken.meta["keeping"] | {"keep": False}))
    with held(target, overwrite), unfinished(target, keeping, False, overwrite) as work:
        try:
            if at_s is None or taken.meta["loop"]["now"] <= at_s:
                _copy_parts(taken, source, work)
            begun = taken if at_s is None else _played(before, at_s, taken, work, progress)
            # Only now is there something to go on from: killed earlier, this was no run yet.
            begun = Checkpoint(begun.meta | _forked(taken, begun, after, at_s), begun.arrays)
            begun.write(work)
            return simulation.run(after, progress, overwrite, keeping, begun)
        except FastsimError:
            cleared(work)
            raise


def _check_time(at_s: float | None) -> None:
    """ScenarioError if this is no time."""
    if at_s is None:
        return
    if isinstance(at_s, bool) or not isinstance(at_s, int | float) or not math.isfinite(at_s):
        raise ScenarioError("fork: at_s", repr(at_s), "seconds of simulated time")


def _check_past(at_s: float | None, taken: Checkpoint) -> None:
    """ScenarioError if the past up to this time cannot be played."""
    if at_s is None:
        return
    now = taken.meta["loop"]["now"]
    if at_s < now and taken.meta["forked_from"] is not None:
        expected = f"{now!r} or more, the time of the checkpoint: what was before is the past of another run"
        raise ScenarioError("fork: at_s", repr(at_s), expected)


def _copy_parts(taken: Checkpoint, source: Path, work: Path) -> None:
    """Put copies of what belongs to a checkpoint into another working folder."""
    taken.check_parts(source)
    for name in taken.parts():
        try:
            shutil.copyfile(source / name, work / name)
        except OSError as error:
            raise ResultError(f"{work / name}: cannot be written: {error.strerror or error}") from error
    taken.check_parts(work)


def _played(scenario: Scenario, at_s: float, taken: Checkpoint, work: Path, progress: Progress | None) -> Checkpoint:
    """The state at a time, in seconds, of the run that the checkpoint was taken of; its rows are in ``work``."""
    from fastsim.engine.online.checkpointing import CheckpointWriter
    from fastsim.engine.online.run import OnlineRun

    taken = Checkpoint(taken.meta | {"may_change": ["until_s"]}, taken.arrays)
    start = taken if taken.meta["loop"]["now"] <= at_s else None
    made = simulation.prepared(scenario, progress=progress)
    end_s = at_s if scenario.until_s is None else min(at_s, scenario.until_s)
    saving = CheckpointWriter(work, Checkpoints(), taken.meta["scenario"], start)
    options = replace(made.options, until_s=end_s, folder=work, saving=saving)
    run = OnlineRun(made.cluster, made.workload, made.plan, made.typical, options)
    try:
        saving.compare(run, taken)
        batches = arrived_by(saving.batches(made.workload), end_s)
        saving.take_over(run, batches)
        stream(run, batches)
        run.scribe.close()
        return saving.secured(saving.state(run), run.recorder)
    finally:
        run.scribe.drop()
        run.recorder.drop()
        run.give_back()


def _forked(taken: Checkpoint, begun: Checkpoint, scenario: Scenario, at_s: float | None) -> dict[str, Any]:
    """What the first checkpoint of a fork says of where it comes from."""
    from fastsim.engine.online.checkpointing import FORK_MAY_CHANGE

    loop = begun.meta["loop"]
    at_s = loop["now"] if at_s is None else at_s
    past = {"scenario": taken.meta["scenario"]["fields"], "pods": loop["arrived"], "at_s": at_s}
    before = taken.meta["forked_from"]
    return {
        "scenario": scenario.written(), "may_change": FORK_MAY_CHANGE,
        "forked_from": past if before is None else past | {"forked_from": before},
    }  # fmt: skip


def _target(folder: Path) -> Path:
    """The folder of the run, also if its checkpoint's folder was named."""
    plain = folder.absolute()
    return plain.with_name(plain.name.removesuffix(SUFFIX))


def _scenario(
    out: Path,
    objects: dict[str, Any],
    allow_code: bool,
    stored: dict[str, Any],
    changes: dict[str, Any] | None = None,
) -> Scenario:
    """The scenario that was ``stored`` with a checkpoint, with the objects that could not be."""
    needed = [name for name in stored["objects"] if name not in {**objects, **(changes or {})}]
    if needed:
        raise ResultError(f"{out}{SUFFIX}: {', '.join(needed)} was an object in memory; give it again: {needed[0]}=...")
    stray = [name for name in objects if name not in stored["objects"]]
    if stray:
        raise ScenarioError(f"resume: {stray[0]}", "a new value", "nothing: the checkpoint knows it")
    if "policy" not in (changes or {}):
        refuse_user_code(stored["fields"].get("policy"), f"{out}{SUFFIX}", allow_code)
    given = stored["fields"] | objects | (changes or {}) | {"out": str(out)}
    return Scenario.from_dict(given, str(out))


def resume_rounds(
    out: Path, work: Path, stored: Callable[..., Scenario], progress: Progress | None, overwrite: bool
) -> Result:
    """Go on with the run to ``out``; ``stored`` makes its scenario from what was written of it."""
    stored_state(work)  # a lock would be of no use where there is nothing
    with held(out, overwrite):
        taken = stored_state(work)
        scenario = stored(taken.note["scenario"])
        return simulation.run(scenario, progress, overwrite, Checkpoints(**taken.note["keeping"]), taken)


def fork_rounds(
    source: Path, target: Path, stored: Callable[..., Scenario], at_s: float | None, changes: dict[str, Any],
    progress: Progress | None, overwrite: bool,
) -> Result:  # fmt: skip
    """Another run from a checkpoint, or from a time in seconds: a shared past, then ``changes``.

    Another policy begins without a memory, and is asked as soon as ``realloc_s`` allows. A fork at a time begins
    with the first round that starts then or later. Adaptive jobs keep what they have learned.
    """
    taken = stored_state(source)
    wrong = [name for name in changes if name not in ROUND_FORK_FIELDS]
    if wrong:
        raise ScenarioError(f"fork: {wrong[0]}", "a change of the past", f"changes of {', '.join(ROUND_FORK_FIELDS)}")
    before, after = stored(taken.note["scenario"]), stored(taken.note["scenario"], {"log": None} | changes)
    after.check()
    kind = "adaptive jobs" if is_adaptive(_policy(before)) else "jobs"
    if not is_round_policy(_policy(after)) or is_adaptive(_policy(after)) != is_adaptive(_policy(before)):
        raise PolicyError("fork: policy", str(after.policy), f"a policy for {kind}, as before")
    if at_s is not None and at_s < taken.now_s and taken.note["forked_from"] is not None:
        expected = f"{taken.now_s!r} or more, the time of the checkpoint: what was before is the past of another run"
        raise ScenarioError("fork: at_s", repr(at_s), expected)
    keeping = Checkpoints(**(taken.note["keeping"] | {"keep": False}))
    with held(target, overwrite), unfinished(target, keeping, False, overwrite) as work:
        try:
            begun = taken if at_s is None else _rounds_played(before, at_s, taken, work, progress)
            begun = _rounds_forked(taken, begun, after, at_s)
            if "policy" in changes:
                begun = begun.without_memory()
            begun.write(work / STATE)
            return simulation.run(after, progress, overwrite, keeping, begun)
        except FastsimError:
            cleared(work)
            raise


def _rounds_played(
    scenario: Scenario, at_s: float, taken: RoundCheckpoint, work: Path, progress: Progress | None
) -> RoundCheckpoint:
    """The state at a time, seconds, of the run that the checkpoint was taken of."""
    from fastsim.simulation.adaptive import driven_adaptive, prepared_adaptive
    from fastsim.simulation.rounds import driven, prepared_rounds

    end_s = at_s if scenario.until_s is None else min(at_s, scenario.until_s)
    scenario = scenario.with_(until_s=end_s)
    start = taken if taken.now_s <= end_s else None
    path = work / f".{STATE}.past.partial"
    note = RoundSaving(work, Checkpoints(), taken.note["scenario"], start).note
    keeping, policy = RoundKeeping(path, at_end=True, note=note), _policy(scenario)
    if is_adaptive(policy):
        driven_adaptive(scenario, prepared_adaptive(scenario, policy), progress, keeping, start)
    else:
        driven(scenario, prepared_rounds(scenario, policy), progress, keeping, start)
    state = RoundCheckpoint.read(path)
    path.unlink()
    return state


def _rounds_forked(
    taken: RoundCheckpoint, begun: RoundCheckpoint, scenario: Scenario, at_s: float | None
) -> RoundCheckpoint:
    """The state with notes of where it comes from."""
    at_s = begun.now_s if at_s is None else at_s
    past = {"scenario": taken.note["scenario"]["fields"], "pods": begun.jobs, "at_s": at_s}
    before = taken.note["forked_from"]
    return begun.noted(
        scenario=scenario.written(), keeping=taken.note["keeping"] | {"keep": False},
        forked_from=past if before is None else past | {"forked_from": before},
    )  # fmt: skip


def _policy(scenario: Scenario) -> Any:
    return registry.parse(scenario.policy) if isinstance(scenario.policy, str) else scenario.policy

"""Resumed runs and forks: from a checkpoint, the same run goes on to its end, or another one with the same past."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastsim.engine.checkpoints.clock import Checkpoints
from fastsim.engine.checkpoints.folder import STATE, SUFFIX, cleared, unfinished, working_folder
from fastsim.engine.checkpoints.state import RunState, stored_state
from fastsim.engine.checkpoints.state_file import restoring
from fastsim.errors import FastsimError, PolicyError, ResultError, ScenarioError
from fastsim.foundation.folder_lock import held
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.limits.quantities import seconds_of
from fastsim.foundation.option_texts import path_of
from fastsim.policies import registry
from fastsim.scenario.scenario import Scenario
from fastsim.scenario.user_code import refuse_user_code
from fastsim.simulation import simulate as simulation
from fastsim.simulation.engines.choice import engine_named
from fastsim.simulation.engines.engine import Keeper, Past
from fastsim.simulation.simulate import OTHER_ENGINE

if TYPE_CHECKING:
    from fastsim.engine.result import Result
    from fastsim.simulation.simulate import Progress


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
    stored_state(work)  # without a checkpoint there is nothing to lock
    with held(out, overwrite):
        state = stored_state(work)
        with restoring(work):
            state.check_parts(work)
        scenario = _scenario(out, work, objects, allow_code, state.note["scenario"])
        return simulation.run(scenario, progress, overwrite, Checkpoints(**state.note["checkpoints"]), state)


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
    is the seed. The checkpoint stays as it is. ``allow_code`` as in :func:`resume`.

    A fork of a run of jobs may change the policy and ``until_s``. Another policy begins without a state, and allocates
    as soon as ``realloc_s`` allows. Such a fork at a time begins with the first round that starts then or later.
    Adaptive jobs keep their measurements and fits.
    """
    source = working_folder(_target(path_of("fork: folder", folder, "the folder of a run, a text or a path")))
    target = path_of("fork: out", out, "a folder, a text or a path").absolute()
    state = stored_state(source)
    written = state.note["scenario"]
    objects = {name: changes.pop(name) for name in written["objects"] if name in changes}
    if working_folder(target) == source:
        raise ScenarioError("fork: out", str(target), "another folder than that of the run")
    at_s, keeper = _time_of(at_s), _keeper(state, changes)
    _refuse_past(at_s, state)
    before = _scenario(target, source, objects, allow_code, written)
    after = _scenario(target, source, objects, allow_code, written, changes={"log": None} | changes)
    after.check()
    _refuse_engine(state, after)
    checkpoints = Checkpoints(**(state.note["checkpoints"] | {"keep": False}))
    with held(target, overwrite), unfinished(target, checkpoints, False, overwrite) as work:
        try:
            if at_s is None or state.now_s <= at_s:
                _copy_parts(state, source, work)
            start = state if at_s is None else keeper.past(Past(before, state, at_s, work, progress))
            # From here on the fork can be resumed; killed earlier, it leaves nothing.
            start = _forked(state, start, after, at_s, checkpoints).having(may_change=keeper.may_change)
            if "policy" in changes:
                start = start.without_memory()
            start.write(work / STATE)
            return simulation.run(after, progress, overwrite, checkpoints, start)
        except FastsimError:
            cleared(work)
            raise


def _keeper(state: RunState, changes: Mapping[str, Any]) -> Keeper:
    """How the engine of a state keeps checkpoints; ScenarioError for a change of the past."""
    keeper = engine_named(state.engine).keeper
    assert keeper is not None, "an engine without checkpoints has no states"
    wrong = [name for name in changes if name not in keeper.forks]
    if wrong:
        raise ScenarioError(f"fork: {wrong[0]}", "a change of the past", f"changes of {', '.join(keeper.forks)}")
    return keeper


def _refuse_engine(state: RunState, after: Scenario) -> None:
    """PolicyError for a policy of another engine than that of the past."""
    if registry.engine_of(registry.policy_of(after.policy)) != state.engine:
        expected = f"a policy for {engine_named(state.engine).places}, as before"
        raise PolicyError("fork: policy", str(after.policy), expected, OTHER_ENGINE)


def _time_of(at_s: float | str | None) -> float | None:
    """The seconds of a finite time, which a text may have with units; None stays None."""
    seconds = seconds_of(at_s) if isinstance(at_s, str) else at_s
    if at_s is None or (isinstance(seconds, int | float) and not isinstance(seconds, bool) and math.isfinite(seconds)):
        return seconds
    raise ScenarioError("fork: at_s", repr(at_s), "seconds of simulated time")


def _refuse_past(at_s: float | None, state: RunState) -> None:
    """ScenarioError if this time is in the past of another run, which cannot be played again."""
    if at_s is not None and at_s < state.now_s and state.note["forked_from"] is not None:
        expected = f"{state.now_s!r} or more, the time of the checkpoint: earlier is the past of another run"
        raise ScenarioError("fork: at_s", repr(at_s), expected)


def _copy_parts(state: RunState, source: Path, work: Path) -> None:
    """Copy the files of a checkpoint to another working folder."""
    with restoring(source):
        state.check_parts(source)
    for name in state.parts():
        try:
            shutil.copyfile(source / name, work / name)
        except OSError as error:
            raise ResultError(f"{work / name}: cannot be written: {error.strerror or error}") from error
    state.check_parts(work)


def _forked(
    state: RunState, start: RunState, scenario: Scenario, at_s: float | None, checkpoints: Checkpoints
) -> RunState:
    """A fork's first state: that of the past with notes of its origin."""
    at_s = start.now_s if at_s is None else at_s
    past = {"scenario": state.note["scenario"]["fields"], "pods": start.arrived, "at_s": at_s}
    before = state.note["forked_from"]
    return start.noted(
        scenario=scenario.written(), checkpoints=asdict(checkpoints),
        forked_from=past if before is None else past | {"forked_from": before},
    )  # fmt: skip


def _target(folder: Path) -> Path:
    """The folder of the run, also from the folder of its checkpoint."""
    plain = folder.absolute()
    return plain.with_name(plain.name.removesuffix(SUFFIX))


def _scenario(
    out: Path,
    checkpoint: Path,
    objects: dict[str, Any],
    allow_code: bool,
    stored: dict[str, Any],
    changes: dict[str, Any] | None = None,
) -> Scenario:
    """The scenario that was ``stored`` in the folder ``checkpoint``, completed by ``objects`` that cannot be."""
    needed = [name for name in stored["objects"] if name not in {**objects, **(changes or {})}]
    if needed:
        raise ResultError(f"{checkpoint}: {', '.join(needed)} was an object in memory; give it again: {needed[0]}=...")
    stray = [name for name in objects if name not in stored["objects"]]
    if stray:
        raise ScenarioError(f"resume: {stray[0]}", "a new value", "nothing: the checkpoint has it")
    if "policy" in stored["fields"] and "policy" not in (changes or {}):
        refuse_user_code(stored["fields"]["policy"], str(checkpoint), allow_code)
    fields = stored["fields"] | objects | (changes or {}) | {"out": str(out)}
    return Scenario.from_dict(fields, str(out))

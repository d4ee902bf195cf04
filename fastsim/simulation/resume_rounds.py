"""Runs in rounds that go on from a checkpoint: the same run to its end, or another one that shares its past."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastsim.engine.checkpoint_folder import STATE, Checkpoints, unfinished
from fastsim.engine.rounds.checkpoint import RoundCheckpoint, RoundKeeping, RoundSaving, stored_state
from fastsim.errors import FastsimError, PolicyError, ScenarioError
from fastsim.foundation.folder_lock import held
from fastsim.policies import registry
from fastsim.scenario.scenario import Scenario
from fastsim.simulation import simulate as simulation
from fastsim.simulation.adaptive import is_adaptive
from fastsim.simulation.engine_choice import is_round_policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastsim.engine.result import Result
    from fastsim.simulation.simulate import Progress

FORK_FIELDS = ("policy", "until_s", "name", "log")
"""Fields of a scenario that may differ after a fork; everything else decided the past too."""


def resume_rounds(
    out: Path, work: Path, stored: Callable[..., Scenario], progress: Progress | None, overwrite: bool
) -> Result:
    """Go on with the run to ``out``; ``stored`` makes its scenario from what was written of it."""
    stored_state(work)  # a lock would be of no use where there is nothing
    with held(out, overwrite):
        taken = stored_state(work)
        scenario = stored(taken.note["scenario"])
        shutil.rmtree(out.with_name(f".{out.name}.{taken.note['process']}.former"), ignore_errors=True)
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
    wrong = [name for name in changes if name not in FORK_FIELDS]
    if wrong:
        raise ScenarioError(f"fork: {wrong[0]}", "a change of the past", f"changes of {', '.join(FORK_FIELDS)}")
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
            begun = taken if at_s is None else _played(before, at_s, taken, work, progress)
            begun = _forked(taken, begun, after, at_s)
            if "policy" in changes:
                begun = begun.without_memory()
            begun.write(work / STATE)
            return simulation.run(after, progress, overwrite, keeping, begun)
        except FastsimError:
            shutil.rmtree(work, ignore_errors=True)
            raise


def _played(
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


def _forked(taken: RoundCheckpoint, begun: RoundCheckpoint, scenario: Scenario, at_s: float | None) -> RoundCheckpoint:
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

"""Runs that go on from a checkpoint: the same run to its end, or another one that shares its past."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastsim import simulation
from fastsim.checkpoint import SUFFIX, Checkpoint, Keeping, unfinished, working_folder
from fastsim.errors import FastsimError, ResultError, ScenarioError
from fastsim.spec import Scenario

if TYPE_CHECKING:
    from fastsim.result import Result
    from fastsim.simulation import Progress

FORK_FIELDS = (
    "policy", "queue", "gpu_pick", "seed", "until_s", "inflation", "retarget", "preempt", "on_node_loss",
    "checkpoint_every_s", "restart_s", "quotas", "weights", "name",
)  # fmt: skip
"""Fields of a scenario that may differ after a fork; everything else decided the past too."""


def resume(
    folder: str | os.PathLike[str], *, progress: Progress | None = None, overwrite: bool = False, **objects: Any
) -> Result:
    """Go on with the run to this folder from its last checkpoint; its tables are as if it had never stopped.

    ``objects`` are those parts of the scenario that were objects in memory and not texts (``cluster``, ``workload``,
    ``policy``, ...); whether they are the same is checked.
    """
    out = _target(Path(folder))
    taken = Checkpoint.read(working_folder(out))
    scenario = _scenario(taken, out, objects)
    _sweep(out, taken)
    keeping = Keeping(**taken.meta["keeping"])
    return simulation.run(scenario, progress, overwrite, keeping, taken)


def fork(
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    overwrite: bool = False,
    **changes: Any,
) -> Result:
    """Another run from the checkpoint beside this folder, to a folder of its own: a shared past, then the changes.

    ``changes`` may name another policy, queue, gpu_pick, seed, until_s (seconds), inflation, retarget or rule (from
    ``preempt`` to ``weights``), and gives the parts of the scenario that were objects in memory. Outages are part of
    the past, and with random failures so is the seed. The checkpoint stays as it is.
    """
    source, target = working_folder(_target(Path(folder))), Path(out).absolute()
    taken = Checkpoint.read(source)
    objects = {name: changes.pop(name) for name in taken.meta["scenario"]["objects"] if name in changes}
    wrong = [name for name in changes if name not in FORK_FIELDS]
    if wrong:
        raise ScenarioError(f"fork: {wrong[0]}", "a change of the past", f"changes of {', '.join(FORK_FIELDS)}")
    scenario = _scenario(taken, target, objects, changes)
    keeping = Keeping(**(taken.meta["keeping"] | {"keep": False}))
    with unfinished(target, keeping, False, overwrite) as work:
        shutil.copytree(source, work, dirs_exist_ok=True)
        taken = Checkpoint(taken.meta | _forked(taken, scenario), taken.arrays)
        taken.write(work)
        try:
            return simulation.run(scenario, progress, overwrite, keeping, taken)
        except FastsimError:
            shutil.rmtree(work, ignore_errors=True)
            raise


def _forked(taken: Checkpoint, scenario: Scenario) -> dict[str, Any]:
    """What the first checkpoint of a fork says of where it comes from."""
    loop = taken.meta["loop"]
    past = {"scenario": taken.meta["scenario"]["fields"], "pods": loop["arrived"], "at_s": loop["now"]}
    before = taken.meta["forked_from"]
    return {
        "scenario": scenario.written(), "fork": True,
        "forked_from": past if before is None else past | {"forked_from": before},
    }  # fmt: skip


def _target(folder: Path) -> Path:
    """The folder of the run, also if its checkpoint's folder was named."""
    plain = folder.absolute()
    return plain.with_name(plain.name.removesuffix(SUFFIX))


def _scenario(taken: Checkpoint, out: Path, objects: dict[str, Any], changes: dict[str, Any] | None = None) -> Scenario:
    stored = taken.meta["scenario"]
    needed = [name for name in stored["objects"] if name not in {**objects, **(changes or {})}]
    if needed:
        raise ResultError(f"{out}{SUFFIX}: {', '.join(needed)} was an object in memory; give it again: {needed[0]}=...")
    stray = [name for name in objects if name not in stored["objects"]]
    if stray:
        raise ScenarioError(f"resume: {stray[0]}", "a new value", "nothing: the checkpoint knows it")
    given = stored["fields"] | objects | (changes or {}) | {"out": str(out)}
    return Scenario.from_dict(given, str(out))


def _sweep(out: Path, taken: Checkpoint) -> None:
    """Remove what the stopped process left half-written."""
    for kind in ("partial", "former"):
        shutil.rmtree(out.with_name(f".{out.name}.{taken.meta['process']}.{kind}"), ignore_errors=True)

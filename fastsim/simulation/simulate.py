"""Runs scenarios: opens their texts, runs the engine of the policy, and adds provenance to the result."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from fastsim.engine.checkpoints.clock import Checkpoints
from fastsim.engine.checkpoints.folder import unfinished
from fastsim.engine.online.plan import OnlinePolicy
from fastsim.engine.summary import refuse_impossible
from fastsim.errors import PolicyError, ScenarioError
from fastsim.foundation import interrupts
from fastsim.foundation.folder_lock import held
from fastsim.foundation.limits.forked_process import note_run
from fastsim.foundation.object_cache import OBJECTS
from fastsim.foundation.parquet import replacing_folder
from fastsim.policies import registry
from fastsim.scenario.carbon import carbon_from
from fastsim.scenario.compat import switches_on
from fastsim.scenario.parameters import documented
from fastsim.scenario.scenario import Scenario
from fastsim.simulation import scenario_checks
from fastsim.simulation.emissions import refuse_unrecorded, with_emissions
from fastsim.simulation.engines.choice import engine_named
from fastsim.simulation.engines.engine import Engine, Hooks
from fastsim.simulation.run_warnings import ColumnIgnored as ColumnIgnored
from fastsim.simulation.run_warnings import Message, warn
from fastsim.simulation.run_warnings import PodTooLarge as PodTooLarge
from fastsim.simulation.run_warnings import RunWarning as RunWarning
from fastsim.simulation.uses.option_types import CHECKPOINTS, Options, Text, refuse_unknown, spelled_out
from fastsim.simulation.uses.options import option_facts, refuse_options, unused_options

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.engine.checkpoints.state import RunState
    from fastsim.engine.result import Result
    from fastsim.engine.shares.plan import RoundPolicy
    from fastsim.workload import Workload

Progress = Callable[[int], None]
"""A function of the number of arrived pods (one run) or finished runs (many)."""
RUNNING = {
    "overwrite": "Replace the folder of an earlier run.",
    "checkpoint_pods": "Arrivals, 1 or more, after which a checkpoint is written beside out, for fastsim.resume.",
    "checkpoint_s": "Seconds of work, above 0, after which one is written.",
    "keep_checkpoint": "Keep the last one, for fastsim.fork.",
    "keep_inputs": "Keep large workloads that are objects in memory in the folder, too.",
    "progress": "A function that is called with the number of arrived pods.",
}
"""Parameters of `simulate` that are no fields of a scenario."""
OTHER_ENGINE = "a checkpoint goes on with policies of its kind only: begin anew with fastsim run --policy ..."

_ = scenario_checks  # loading it registers the checks of fields

FASTSIM = """@software{fastsim,
  title = {fastsim: a {GPU}-cluster scheduling simulator},
  author = {{The fastsim authors}}
}"""


def simulate(
    cluster: Cluster | Text, workload: Workload | Text, policy: OnlinePolicy | RoundPolicy | str = "fgd", *,
    overwrite: bool = False, keep_inputs: bool = False, progress: Progress | None = None, **options: Unpack[Options],
) -> Result:  # fmt: skip
    """The result of running a workload under a policy on this cluster: pods placed one by one, or jobs in rounds.

    ``deschedule``, ``inflation`` and ``retarget`` follow the main run. ``ideal`` plays jobs without rounds: timeline
    and placements have no rows, ``realloc_s`` is 0 by default, and ``round_s``, ``restart_s`` and ``global_queue`` have
    no effect. Lengths of time are seconds or texts such as ``1h``. With ``out``, memory follows the pods in the system,
    and the folder also keeps clusters and workloads that are objects in memory, if they are small.

    >>> simulate("openb:20", "synth:openb?pods=50&seed=1", "fgd", queue="fifo").summary["pods_finished"].item()
    50
    """
    refuse_unknown("simulate", options)
    fields: dict[str, Any] = dict(options)
    pods, seconds, keep = (fields.pop(name, None) for name in CHECKPOINTS)
    checkpoints = None if pods is None and seconds is None else Checkpoints(pods, seconds, bool(keep))
    scenario = Scenario(cluster, workload, policy, **fields)
    return run(scenario, progress, overwrite, checkpoints, keep_inputs=keep_inputs)


SIGNATURE = spelled_out(inspect.signature(simulate))
simulate.__doc__ = documented(simulate.__doc__, SIGNATURE.parameters, RUNNING)
simulate.__signature__ = SIGNATURE  # type: ignore[attr-defined]


def run(
    scenario: Scenario,
    progress: Progress | None = None,
    overwrite: bool = False,
    checkpoints: Checkpoints | None = None,
    start: RunState | None = None,
    keep_inputs: bool = False,
) -> Result:
    """The result of one scenario; ``overwrite`` allows its folder to replace another."""
    result, messages = played(
        scenario=scenario,
        progress=progress,
        overwrite=overwrite,
        checkpoints=checkpoints,
        start=start,
        keep_inputs=keep_inputs,
    )
    warn(messages, depth=2)
    return result


def played(
    scenario: Scenario,
    progress: Progress | None = None,
    overwrite: bool = False,
    checkpoints: Checkpoints | None = None,
    start: RunState | None = None,
    keep_inputs: bool = False,
) -> tuple[Result, list[Message]]:
    """The result of a scenario, and warnings for the caller to give.

    ``checkpoints`` is the interval of checkpoints; ``start`` is one to resume, whose folder the caller has locked.
    ``keep_inputs`` keeps workloads in memory of any size in the folder.
    """
    note_run()
    with interrupts.deferred(), OBJECTS.during_run(), ExitStack() as stack:
        policy = checked_policy(scenario)
        name = registry.engine_of(policy)
        engine = engine_named(name)
        _refuse_state(name, engine, scenario, checkpoints, start)
        out = None if scenario.out is None else Path(scenario.out).absolute()
        if out is not None and start is None:
            stack.enter_context(held(out, overwrite))
        made = engine.prepared(scenario, policy)
        warn(made.ahead, depth=3)
        writer = _opened_writer(
            stack=stack,
            engine=engine,
            scenario=scenario,
            out=out,
            overwrite=overwrite,
            checkpoints=checkpoints,
            start=start,
        )
        folder = None if out is None else stack.enter_context(replacing_folder(out))
        result = with_emissions(made.play(Hooks(progress, writer, folder)), carbon_from(scenario.carbon), folder)
        refuse_impossible(result.summary)
        result = _with_origin(result, scenario, policy, None if writer is None else writer.forked_from)
        interrupts.check()
        if out is not None and folder is not None:
            result.write(folder, keep_inputs)
            interrupts.check()
            result = _named(stack, result, out)
        unused = unused_options(name, option_facts(scenario, policy, made.cluster, **made.facts()))
        return result, [*made.messages(), *unused]


def checked_policy(scenario: Scenario) -> Any:
    """The policy of a scenario whose fields are right, each by itself and for this policy."""
    policy = scenario.check()["policy"]
    refuse_options(scenario, registry.engine_of(policy))
    refuse_unrecorded(scenario)
    return policy


def _refuse_state(
    name: str, engine: Engine, scenario: Scenario, checkpoints: Checkpoints | None, start: RunState | None
) -> None:
    """An error for checkpoints of an engine that keeps none, and for one of another engine."""
    if start is not None and start.engine != name:
        before = engine_named(start.engine).places
        raise PolicyError("policy", str(scenario.policy), f"a policy for {before}, as in the checkpoint", OTHER_ENGINE)
    if checkpoints is not None and engine.keeper is None:
        raise ScenarioError("checkpoint", "one", f"none: policy {scenario.policy} keeps no checkpoints")
    if checkpoints is not None and scenario.ideal:
        raise ScenarioError("checkpoint", "one", "none: the ideal keeps no checkpoints")


def _opened_writer(
    stack: ExitStack, engine: Engine, scenario: Scenario, out: Path | None, overwrite: bool,
    checkpoints: Checkpoints | None, start: Any,
) -> Any:  # fmt: skip
    """The writer of checkpoints; when the stack is left, its working folder is removed or kept as it should."""
    if checkpoints is None or engine.keeper is None:
        return None
    folder = stack.enter_context(unfinished(out, checkpoints, start is not None, overwrite))
    return engine.keeper.writer(folder, checkpoints, scenario.written(), start)


def _named(stack: ExitStack, result: Result, out: Path) -> Result:
    """The result in its folder; leaving the stack renames the folder and removes temporary files."""
    from fastsim.engine.result import FolderFrames

    stack.pop_all().close()
    return dataclasses.replace(result, frames=FolderFrames(out))


def _citations(policy: Any) -> tuple[str, ...]:
    parts = [summand for _, summand in policy] if hasattr(policy, "integer_parts") else [policy]
    citations = dict.fromkeys(getattr(part, "citation", "") for part in parts)
    return tuple(text for text in citations if text)


def _with_origin(result: Result, scenario: Scenario, policy: Any, forked_from: Any) -> Result:
    """The result with its citations and what leads to it: the scenario, or for a fork the run that it came from."""
    made, origin = scenario.with_(out=None, log=None), _provenance(scenario, forked_from)
    result = result.labelled((*_citations(policy), FASTSIM), **origin)
    return dataclasses.replace(result, scenario=None if forked_from is not None else made)


def _provenance(scenario: Scenario, forked_from: Any) -> dict[str, Any]:
    provenance = {"policy": str(scenario.policy), "compat": sorted(switches_on(scenario.compat))}
    if forked_from is not None:  # no scenario alone leads to such a run
        return {**provenance, "forked_from": forked_from}
    written = scenario.with_(out=None, log=None).written()
    if written["objects"]:
        return {**provenance, "scenario": written["fields"], "objects": written["objects"]}
    return {**provenance, "scenario": written["fields"], "scenario_id": scenario.id}

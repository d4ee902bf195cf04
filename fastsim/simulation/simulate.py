"""Runs scenarios: opens their texts, runs the engine of the policy, and adds provenance to the result."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from fastsim.cluster.texts import cluster_from
from fastsim.engine.checkpoint_folder import Checkpoints
from fastsim.engine.online.plan import OnlinePlan, OnlinePolicy
from fastsim.engine.summary import refuse_impossible
from fastsim.errors import PolicyError, ScenarioError
from fastsim.foundation import interrupts
from fastsim.foundation.limits.forked_process import note_run
from fastsim.foundation.object_cache import OBJECTS
from fastsim.foundation.parquet import replacing_folder
from fastsim.policies import registry
from fastsim.scenario.carbon import carbon_from
from fastsim.scenario.compat import switches_on
from fastsim.scenario.parameters import documented
from fastsim.scenario.run_rules import rules_from
from fastsim.scenario.scenario import Scenario
from fastsim.simulation import scenario_checks
from fastsim.simulation.emissions import refuse_unrecorded, with_emissions
from fastsim.simulation.returned_plans import returned_plan
from fastsim.simulation.run_warnings import ColumnIgnored as ColumnIgnored
from fastsim.simulation.run_warnings import Message, MissingValues, absent_tenants, large_pods, rounded_points, warn
from fastsim.simulation.run_warnings import PodTooLarge as PodTooLarge
from fastsim.simulation.run_warnings import RunWarning as RunWarning
from fastsim.simulation.uses.columns import UnusedColumns, facts_of
from fastsim.simulation.uses.option_types import CHECKPOINTS, Options, Text, refuse_unknown, spelled_out
from fastsim.simulation.uses.options import option_facts, refuse_options, unused_options
from fastsim.simulation.work_estimate import refuse_large
from fastsim.workload import texts

if TYPE_CHECKING:
    import pyarrow as pa

    from fastsim.cluster.cluster import Cluster
    from fastsim.engine.checkpoint_folder import Checkpoint
    from fastsim.engine.online.run import OnlineOptions
    from fastsim.engine.result import Result
    from fastsim.engine.rounds.checkpoint import RoundCheckpoint
    from fastsim.engine.shares.plan import RoundPolicy
    from fastsim.workload import Workload
    from fastsim.workload.typical_pods import TypicalPods

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
    start: Checkpoint | RoundCheckpoint | None = None,
    keep_inputs: bool = False,
) -> Result:
    """The result of one scenario; ``overwrite`` allows its folder to replace another."""
    result, messages = played(scenario, progress, overwrite, checkpoints, start, keep_inputs)
    warn(messages, depth=2)
    return result


class Prepared(NamedTuple):
    """The objects of a scenario for the online engine."""

    cluster: Cluster
    workload: Workload
    policy: OnlinePolicy
    plan: OnlinePlan
    typical: TypicalPods
    options: OnlineOptions


def prepared(scenario: Scenario, made: Any = None, **rest: Any) -> Prepared:
    """The objects of a scenario; ``made`` its policy if it is made already, ``rest`` options that no scenario has."""
    cluster, workload, untuned = texts.inputs_from(scenario.cluster, scenario.workload)
    interrupts.check()
    policy: OnlinePolicy = _policy(scenario) if made is None else made
    if registry.engine_of(policy) != "pods":
        raise PolicyError(f"policy {policy}", "a policy of another engine", "one that places pods")
    plan = _plan(policy, cluster, workload, scenario)
    typical = texts.typical_from(scenario.typical, untuned, cluster)
    return Prepared(cluster, workload, policy, plan, typical, _options(scenario, cluster, untuned, **rest))


def played(
    scenario: Scenario,
    progress: Progress | None = None,
    overwrite: bool = False,
    checkpoints: Checkpoints | None = None,
    start: Checkpoint | RoundCheckpoint | None = None,
    keep_inputs: bool = False,
) -> tuple[Result, list[Message]]:
    """The result of a scenario, and warnings for the caller to give.

    ``checkpoints`` is the interval of checkpoints; ``start`` is one to resume, whose folder the caller has locked.
    ``keep_inputs`` keeps workloads in memory of any size in the folder.
    """
    from fastsim.foundation.folder_lock import held

    note_run()
    with interrupts.deferred(), OBJECTS.during_run(), ExitStack() as stack:
        policy = checked_policy(scenario)
        out = None if scenario.out is None else Path(scenario.out).absolute()
        if out is not None and start is None:
            stack.enter_context(held(out, overwrite))
        play = _played_pods if registry.engine_of(policy) == "pods" else _played_rounds
        return play(stack, scenario, policy, out, progress, overwrite, checkpoints, start, keep_inputs)


def checked_policy(scenario: Scenario) -> Any:
    """The policy of a scenario whose fields are right, each by itself and for this policy."""
    policy = scenario.check()["policy"]
    refuse_options(scenario, registry.engine_of(policy))
    refuse_unrecorded(scenario)
    return policy


def _played_pods(
    stack: ExitStack, scenario: Scenario, policy: Any, out: Path | None, progress: Progress | None, overwrite: bool,
    checkpoints: Checkpoints | None, start: Checkpoint | RoundCheckpoint | None, keep_inputs: bool,
) -> tuple[Result, list[Message]]:  # fmt: skip
    from fastsim.engine.checkpoint_folder import Checkpoint
    from fastsim.engine.online.checkpointing import opened_writer
    from fastsim.engine.online.run import run_online
    from fastsim.engine.online.user_scorers import PointsRange
    from fastsim.workload.oversized_pods import Oversized

    if start is not None and not isinstance(start, Checkpoint):
        raise PolicyError("policy", str(scenario.policy), "a policy for jobs, as in the checkpoint", OTHER_ENGINE)
    inputs = prepared(scenario, policy, progress=progress)
    warn(refuse_large(inputs.cluster, inputs.workload, inputs.options, out is None), depth=4)
    oversized = Oversized(inputs.cluster)
    queue, missing, range_seen = inputs.plan.queue, MissingValues(inputs.cluster), PointsRange()
    unused = UnusedColumns("pods", facts_of(inputs.workload, scenario, queue, plan=inputs.plan))

    def look(batch: pa.RecordBatch) -> None:
        unused.add(batch)
        missing.add(batch)

    writer = (
        None if checkpoints is None else opened_writer(stack, scenario.written(), out, overwrite, checkpoints, start)
    )
    if writer is not None:
        writer.refuse_many(inputs.workload.rows)
    folder = None if out is None else stack.enter_context(replacing_folder(out))
    options = dataclasses.replace(
        inputs.options,
        oversized=oversized,
        each_batch=look,
        range_seen=range_seen,
        folder=folder,
        checkpoint_writer=writer,
    )
    result = run_online(inputs.cluster, inputs.workload, inputs.plan, inputs.typical, options)
    result = with_emissions(result, carbon_from(scenario.carbon), folder)
    refuse_impossible(result.summary)
    result = _with_origin(result, scenario, inputs.policy, None if writer is None else writer.forked_from)
    interrupts.check()
    if out is not None and folder is not None:
        result.write_inputs(folder, keep_inputs)
        result.write_record(folder)
        result = _named(stack, result, out)
    absent = absent_tenants(inputs.workload, options.rules)
    facts = option_facts(scenario, inputs.policy, inputs.cluster, columns=inputs.workload.columns, queue=queue)
    name = inputs.workload.name
    further = [*missing.messages(name, scenario.until_s is None), *rounded_points(range_seen)]
    return result, [*further, *large_pods(oversized), *unused.messages(name), *absent, *unused_options("pods", facts)]


def _policy(scenario: Scenario) -> Any:
    policy: Any = registry.parse(scenario.policy) if isinstance(scenario.policy, str) else scenario.policy
    return policy


def _played_rounds(
    stack: ExitStack, scenario: Scenario, policy: Any, out: Path | None, progress: Progress | None, overwrite: bool,
    checkpoints: Checkpoints | None, start: Checkpoint | RoundCheckpoint | None, keep_inputs: bool,
) -> tuple[Result, list[Message]]:  # fmt: skip
    from fastsim.engine.rounds.checkpoint import RoundCheckpoint, opened_writer
    from fastsim.simulation.adaptive import played_adaptive
    from fastsim.simulation.rounds import played_rounds

    if start is not None and not isinstance(start, RoundCheckpoint):
        raise PolicyError("policy", str(scenario.policy), "a policy for pods, as in the checkpoint", OTHER_ENGINE)
    engine = registry.engine_of(policy)
    if engine == "monitored" and checkpoints is not None:
        raise ScenarioError("checkpoint", "one", f"none: policy {policy} keeps no checkpoints")
    if scenario.ideal and checkpoints is not None:
        raise ScenarioError("checkpoint", "one", "none: the ideal keeps no checkpoints")
    writer = (
        None if checkpoints is None else opened_writer(stack, scenario.written(), out, overwrite, checkpoints, start)
    )
    messages: Sequence[Message] = ()
    if engine == "monitored":
        from fastsim.simulation.monitored import played_monitored

        result, messages = played_monitored(scenario, policy, progress)
    elif engine == "adaptive":
        result, messages = played_adaptive(scenario, policy, progress, writer)
    else:
        result, messages = played_rounds(scenario, policy, progress, writer)
    result = with_emissions(result, carbon_from(scenario.carbon))
    refuse_impossible(result.summary)
    result = _with_origin(result, scenario, policy, None if writer is None else writer.forked_from)
    interrupts.check()
    folder = None if out is None else stack.enter_context(replacing_folder(out))
    if scenario.telemetry is not None:
        result = _sampled(scenario, policy, result, folder)
    if out is not None and folder is not None:
        result.write(folder, keep_inputs)
        interrupts.check()
        result = _named(stack, result, out)
    facts = option_facts(scenario, policy, cluster_from(scenario.cluster))
    return result, [*messages, *unused_options(engine, facts)]


def _sampled(scenario: Scenario, policy: Any, result: Result, folder: Path | None) -> Result:
    """The result of a run in rounds with its telemetry, which is written to ``folder`` if there is one."""
    from fastsim.simulation.placement_telemetry import with_telemetry
    from fastsim.telemetry.telemetry import telemetry_from

    telemetry = telemetry_from(scenario.telemetry)
    assert telemetry is not None
    if registry.engine_of(policy) == "monitored":
        from fastsim.simulation.monitored import plan_of, watched

        telemetry = watched(plan_of(scenario, policy), telemetry)
    cluster = texts.nodes_from(scenario.cluster, scenario.workload)
    return with_telemetry(result, telemetry, cluster, scenario.seed, scenario.record, folder)


def _named(stack: ExitStack, result: Result, out: Path) -> Result:
    """The result in its folder; leaving the stack renames the folder and removes temporary files."""
    from fastsim.engine.result import FolderFrames

    stack.pop_all().close()
    return dataclasses.replace(result, frames=FolderFrames(out))


def _plan(policy: OnlinePolicy, cluster: Cluster, workload: Workload, scenario: Scenario) -> OnlinePlan:
    plan: OnlinePlan = returned_plan(policy, "plan", policy.plan(cluster, workload), (OnlinePlan,))
    if scenario.queue != "drop":
        plan = dataclasses.replace(plan, queue=scenario.queue)
    if scenario.gpu_pick is not None:
        # Merged vectors name no device, so an explicit dot-product pick looks at devices one by one.
        dim = "share" if scenario.gpu_pick == "dot_product" and plan.gpu_dim == "merge" else plan.gpu_dim
        plan = dataclasses.replace(plan, gpu_pick=scenario.gpu_pick, gpu_dim=dim)
    return plan


def _options(scenario: Scenario, cluster: Cluster, untuned: Workload, **rest: Any) -> OnlineOptions:
    from fastsim.engine.online.closing_stages import Inflation
    from fastsim.engine.online.run import OnlineOptions
    from fastsim.engine.totals.pod_totals import prices_for
    from fastsim.policies.deschedule import deschedule_from
    from fastsim.telemetry.telemetry import telemetry_from

    return OnlineOptions(
        seed=scenario.seed,
        sample_s=scenario.sample_s,
        until_s=scenario.until_s,
        record=scenario.record,
        deschedule=tuple(deschedule_from(step) for step in scenario.deschedule),
        inflation=None if scenario.inflation is None else Inflation(scenario.inflation, scenario.seed),
        retarget=None if scenario.retarget is None else texts.typical_from(scenario.retarget, untuned, cluster),
        rules=rules_from(scenario),
        telemetry=None if scenario.telemetry is None else telemetry_from(scenario.telemetry),
        prices=prices_for(scenario.prices, cluster),
        **rest,
    )


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

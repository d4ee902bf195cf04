"""Runs of pods placed one by one: the objects of a scenario, the run of its engine, the result."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fastsim.cluster.cluster import Cluster
from fastsim.engine.checkpoints.clock import Checkpoints
from fastsim.engine.checkpoints.state import RunState
from fastsim.engine.online.arrivals import arrived_by
from fastsim.engine.online.checkpointing import OnlineCheckpointWriter
from fastsim.engine.online.plan import OnlinePlan, OnlinePolicy
from fastsim.engine.online.user_scorers import MergedPoints
from fastsim.errors import PolicyError, ScenarioError
from fastsim.foundation import interrupts
from fastsim.policies import registry
from fastsim.scenario import run_inputs
from fastsim.scenario.run_rules import rules_from
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.engines.engine import Engine, Hooks, Keeper, Past, ScenarioRun, refuse_adaptive_jobs
from fastsim.simulation.returned_plans import returned_plan
from fastsim.simulation.run_warnings import Message, MissingValues, absent_tenants, large_pods, rounded_points
from fastsim.simulation.uses.columns import UnusedColumns, facts_of
from fastsim.simulation.work_estimate import refuse_large
from fastsim.workload.oversized_pods import Oversized

if TYPE_CHECKING:
    import pyarrow as pa

    from fastsim.engine.online.closing_stages import Deschedule
    from fastsim.engine.online.options import OnlineOptions
    from fastsim.engine.result import Result
    from fastsim.telemetry.telemetry import Telemetry
    from fastsim.workload import Workload
    from fastsim.workload.typical_pods import TypicalPods


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
    cluster, workload, untuned = run_inputs.inputs_from(scenario.cluster, scenario.workload)
    interrupts.check()
    policy: OnlinePolicy = registry.policy_of(scenario.policy) if made is None else made
    if registry.engine_of(policy) != "pods":
        raise PolicyError(f"policy {policy}", "a policy of another engine", "one that places pods")
    refuse_adaptive_jobs(workload, scenario.policy)
    plan = _plan(policy, cluster, workload, scenario)
    typical = run_inputs.typical_from(scenario.typical, untuned, cluster)
    return Prepared(
        cluster=cluster,
        workload=workload,
        policy=policy,
        plan=plan,
        typical=typical,
        options=_options(scenario, cluster, untuned, **rest),
    )


@dataclass(frozen=True)
class PodsRun(ScenarioRun[Prepared]):
    """A run of pods, and what is looked for in the pods that arrive."""

    ahead: Sequence[Message]
    unused: UnusedColumns
    missing: MissingValues
    oversized: Oversized
    points: MergedPoints = field(default_factory=MergedPoints)

    def play(self, hooks: Hooks) -> Result:
        """The result; with a folder its tables are there."""
        from fastsim.engine.online.run import run_online

        cluster, workload, _, plan, typical, options = self.inputs
        telemetry = None
        if hooks.writer is not None:
            hooks.writer.refuse_many(workload.rows)
            telemetry = telemetry_of_placements(self.scenario, options)
        options = dataclasses.replace(
            options, oversized=self.oversized, each_batch=self._look, merged=self.points, progress=hooks.progress,
            folder=hooks.folder, telemetry=options.telemetry if telemetry is None else None,
        )  # fmt: skip
        result = run_online(cluster, workload, plan, typical, options, hooks.writer)
        return result if telemetry is None else self._sampled(result, telemetry, hooks.folder)

    def _sampled(self, result: Result, telemetry: Telemetry, folder: Path | None) -> Result:
        """The result with readings of its placements, and the provenance of a run that took them as it went."""
        from fastsim.engine.sampling.placement_telemetry import with_telemetry

        scenario, known = self.scenario, result.provenance
        sampled = with_telemetry(
            result=result,
            telemetry=telemetry,
            cluster=self.cluster,
            seed=scenario.seed,
            record=scenario.record,
            folder=folder,
            workload=self.inputs.workload,
        )
        provenance = {**known, "options": {**known["options"], "telemetry": repr(telemetry)}}
        return dataclasses.replace(sampled, provenance=provenance)

    def _look(self, batch: pa.RecordBatch) -> None:
        self.unused.add(batch)
        self.missing.add(batch)

    def messages(self) -> list[Message]:
        """Warnings about values that were missing, pods that fit no node, columns and tenants without effect."""
        workload, options = self.inputs.workload, self.inputs.options
        missing = self.missing.messages(workload.name, self.scenario.until_s is None)
        about_pods = [*missing, *rounded_points(self.points), *large_pods(self.oversized)]
        return [*about_pods, *self.unused.messages(workload.name), *absent_tenants(workload, options.rules)]

    def facts(self) -> dict[str, Any]:
        """Columns of the workload, and the queue."""
        return {"columns": self.inputs.workload.columns, "queue": self.inputs.plan.queue}


def telemetry_of_placements(scenario: Scenario, options: OnlineOptions) -> Telemetry | None:
    """The telemetry that a run with checkpoints takes from its placements; None if it has none.

    ScenarioError if placements are not recorded, or clones are added that the workload does not have.
    """
    if options.telemetry is None:
        return None
    why = "readings beside checkpoints are taken from the placements"
    if scenario.record not in ("placements", "all"):
        raise ScenarioError("record", repr(scenario.record), f"placements or all: {why}")
    if scenario.inflation is not None:
        raise ScenarioError("inflation", scenario.inflation, f"nothing: {why} of the workload's pods")
    return options.telemetry


def prepared_run(scenario: Scenario, policy: Any) -> PodsRun:
    """The run of a scenario; ScenarioError if it exceeds a budget of work."""
    inputs = prepared(scenario, policy)
    ahead = refuse_large(inputs.cluster, inputs.workload, inputs.options, scenario.out is None)
    unused = UnusedColumns("pods", facts_of(inputs.workload, scenario, inputs.plan.queue, plan=inputs.plan))
    return PodsRun(
        scenario=scenario,
        inputs=inputs,
        ahead=ahead,
        unused=unused,
        missing=MissingValues(inputs.cluster),
        oversized=Oversized(inputs.cluster),
    )


def _plan(policy: OnlinePolicy, cluster: Cluster, workload: Workload, scenario: Scenario) -> OnlinePlan:
    plan: OnlinePlan = returned_plan(policy, "plan", policy.plan(cluster, workload), (OnlinePlan,))
    if scenario.queue != "drop":
        plan = dataclasses.replace(plan, queue=scenario.queue)
    if scenario.gpu_pick is not None:
        # Merged vectors name no device, so an explicit dot-product pick looks at devices one by one.
        dim = "share" if scenario.gpu_pick == "dot_product" and plan.gpu_dim == "merge" else plan.gpu_dim
        plan = dataclasses.replace(plan, gpu_pick=scenario.gpu_pick, gpu_dim=dim)
    return plan


def _deschedule(step: Any) -> Deschedule:
    from fastsim.policies.deschedule import deschedule_from

    return deschedule_from(step)


def _telemetry(source: Any) -> Telemetry | None:
    from fastsim.telemetry.telemetry import telemetry_from

    return telemetry_from(source)


def _options(scenario: Scenario, cluster: Cluster, untuned: Workload, **rest: Any) -> OnlineOptions:
    from fastsim.engine.online.closing_stages import Inflation
    from fastsim.engine.online.options import OnlineOptions
    from fastsim.engine.totals.pod_totals import prices_for

    return OnlineOptions(
        seed=scenario.seed,
        sample_s=scenario.sample_s,
        until_s=scenario.until_s,
        record=scenario.record,
        deschedule=tuple(map(_deschedule, scenario.deschedule)),
        inflation=None if scenario.inflation is None else Inflation(scenario.inflation, scenario.seed),
        retarget=None if scenario.retarget is None else run_inputs.typical_from(scenario.retarget, untuned, cluster),
        rules=rules_from(scenario),
        telemetry=None if scenario.telemetry is None else _telemetry(scenario.telemetry),
        prices=prices_for(scenario.prices, cluster),
        **rest,
    )


def past(run: Past) -> RunState:
    """The state of a run of pods at a time; its journals go to the working folder."""
    from fastsim.engine.online.run import OnlineRun

    inputs, state = prepared(run.scenario, progress=run.progress), run.state.having(may_change=["until_s"])
    start = None if run.start is None else state
    writer = OnlineCheckpointWriter(run.work, Checkpoints(), state.note["scenario"], start)
    options = dataclasses.replace(inputs.options, until_s=run.end_s, folder=run.work, telemetry=None)
    play = OnlineRun(inputs.cluster, inputs.workload, inputs.plan, inputs.typical, options, writer)
    try:
        writer.compare(play, state)
        batches = arrived_by(writer.batches(inputs.workload), run.end_s)
        writer.take_over(play, batches)
        play.stream(batches)
        play.writer.close()
        return writer.secured(writer.state(play), play.recorder)
    finally:
        play.writer.drop()
        play.recorder.drop()
        play.release_memo()


FORKS = (
    "policy", "queue", "gpu_pick", "seed", "until_s", "inflation", "retarget", "preempt", "on_node_loss",
    "checkpoint_every_s", "restart_s", "quotas", "weights", "name",
)  # fmt: skip
"""Fields of a scenario that may differ after a fork."""
ENGINE = Engine(prepared_run, "pods", Keeper(OnlineCheckpointWriter, past, FORKS, ("plan", "seed", "until_s", "rules")))
"""The engine."""

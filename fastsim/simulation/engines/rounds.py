"""Runs of jobs in rounds: the objects of a scenario, the run of its engine, the result.

With ``profiling`` or ``references`` the rates of pairs are not known but estimated (:func:`with_estimates`).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastsim.engine.orders.plan import OrderPlan
from fastsim.engine.orders.server_demands import ServerDemands, needs_of
from fastsim.engine.rounds.accepted_kinds import AcceptedKinds
from fastsim.engine.rounds.job_batches import JobBatches, PodBatches, Request, request_oracle, requests_of
from fastsim.engine.rounds.node_outages import NodeOutages
from fastsim.engine.rounds.options import LATE_SHARES, ORDERED_QUIRKS, QUIRKS, USE_FROM_ZERO, RoundOptions, Setting
from fastsim.engine.shares.plan import SharePlan, setting_of
from fastsim.errors import PolicyError, ScenarioError
from fastsim.foundation.columns.physical_types import cell_text
from fastsim.foundation.limits.knobs import WINDOW
from fastsim.performance.gavel_rates import JOB_NAMES
from fastsim.policies.adaptive.served import ORDERS
from fastsim.policies.shares.pair_rate_estimator import Estimator
from fastsim.scenario import round_texts, run_inputs
from fastsim.scenario.column_values import SortColumns
from fastsim.scenario.compat import switches_on
from fastsim.scenario.run_rules import outages_of
from fastsim.simulation.binding_columns import check_entities, check_gangs, checked_columns
from fastsim.simulation.engines.engine import (
    Figures,
    Hooks,
    JobsRun,
    PreparedJobs,
    Progress,
    gpus_by_model,
    lasting_inputs,
    records_placements,
)
from fastsim.simulation.returned_plans import returned_plan
from fastsim.simulation.uses.columns import UnusedColumns, facts_of
from fastsim.simulation.uses.options import refuse_options
from fastsim.workload import schema as s

if TYPE_CHECKING:
    from fastsim.engine.orders.run import OrderedDriver
    from fastsim.engine.rounds.driver import RunHooks
    from fastsim.engine.rounds.job_driver import RunContext
    from fastsim.engine.rounds.outcome import RoundOutcome
    from fastsim.engine.shares.run import ShareDriver
    from fastsim.performance.oracle import Oracle
    from fastsim.scenario.scenario import Scenario
    from fastsim.telemetry.telemetry import Telemetry
    from fastsim.workload import Workload

STREAM_ROWS = 1024
"""Jobs drawn at once from a stream without end."""
BY_DURATION = "without a column workload jobs run for their durations, on any GPU model"
"""Advice about jobs of kinds that have no rates."""
ESTIMATED_ROWS = 32
"""The same where rates are estimated, which takes milliseconds for each job, whether it will arrive or not."""


@dataclass(frozen=True, kw_only=True)
class PreparedRounds(PreparedJobs):
    """The objects of a scenario for the engines of rounds."""

    setting: Setting
    plan: SharePlan | OrderPlan
    batches: JobBatches
    tenants: list[str]
    options: RoundOptions
    nodes: NodeOutages | None = None
    """Outages of nodes; None if all are there all the time."""
    needs: ServerDemands | None = None
    """Servers and demands of ordered rounds; else None."""


def _check_shared(plan: SharePlan, workload: Workload, scenario: Scenario) -> None:
    """ScenarioError for jobs that a policy of shares cannot serve."""
    if plan.max_num_gpu is not None:
        check_gangs(workload, plan.max_num_gpu, scenario.policy)
    if plan.entities:
        check_entities(workload, plan.entities)


def _options(
    scenario: Scenario, workload: Workload, models: Sequence[str], switches: frozenset[str],
    window: tuple[int, int] | None,
) -> RoundOptions:  # fmt: skip
    return RoundOptions(
        **{name: getattr(scenario, name) for name in ("round_s", "realloc_s") if getattr(scenario, name) is not None},
        restart_s=scenario.restart_s,
        until_s=float("inf") if scenario.until_s is None else scenario.until_s,
        window=window,
        global_queue=scenario.global_queue,
        prices=round_texts.prices_from(scenario.prices, models, "azure_last_zone" in switches),
        compat=switches & frozenset((*QUIRKS, LATE_SHARES, USE_FROM_ZERO, *ORDERED_QUIRKS)),
        endless=workload.endless() is not None,
        begin_s=scenario.begin_s or 0.0,
    )


def prepared_rounds(scenario: Scenario, policy: Any) -> PreparedRounds:
    """The objects of a scenario for jobs."""
    read = lasting_inputs(scenario) if scenario.ideal else run_inputs.inputs_from(scenario.cluster, scenario.workload)
    cluster, workload, _ = read
    window = round_texts.window_from(scenario.window)
    round_texts.refuse_beyond(window, workload)
    if window is not None:
        WINDOW.refuse(window[1])
    switches = switches_on(scenario.compat)
    models = tuple(gpus_by_model(cluster, "jobs can share out"))
    rates = workload.rates if scenario.rates is None else scenario.rates
    sensitivity = round_texts.sensitivity_from(rates, cluster)
    oracle = round_texts.rates_from(sensitivity or rates, workload, models)
    _refuse_kinds(workload, oracle, models, scenario.policy)
    jobs, setting = _jobs(workload, setting_of(cluster, oracle, scenario.seed), scenario)
    plan = _plan(compatible(policy, switches), setting)
    plan = with_estimates(plan, setting, scenario)
    needs, requests = None, None
    engine = "orders" if isinstance(plan, OrderPlan) else "shares"
    refuse_options(scenario, engine)
    if isinstance(plan, OrderPlan):
        if scenario.rates is None and s.WORKLOAD not in workload.columns:
            requests = requests_of(workload)
            request_setting = setting_of(cluster, request_oracle(requests, models), scenario.seed)
            jobs, setting = _jobs(workload, request_setting, scenario, requests)
            assert jobs.accepted is not None
            requests = [requests[kind] for kind in jobs.accepted.origins]
        jobs.sorting = SortColumns(plan.order, workload)
        needs = needs_of(cluster, setting, sensitivity, requests, switches)
        needs.check(plan)
    counted = isinstance(plan, OrderPlan) and plan.mechanism == "greedy" and requests is not None
    unused = UnusedColumns(engine, facts_of(workload, scenario, counted=counted, order=getattr(plan, "order", ())))
    messages = checked_columns(workload, cluster, unused)
    if isinstance(plan, SharePlan):
        _check_shared(plan, workload, scenario)
    options = _options(scenario, workload, models, switches, window)
    return PreparedRounds.of(
        scenario,
        read,
        setting=setting,
        plan=plan,
        batches=jobs,
        tenants=jobs.tenants,
        options=options,
        nodes=NodeOutages.of(cluster, outages_of(scenario), scenario.seed),
        needs=needs,
        noticed=messages,
    )


class RoundsRun(JobsRun[PreparedRounds]):
    """A run of jobs in rounds of shares or ordered rounds, or without rounds."""

    def figures(self, hooks: Hooks) -> Figures:
        """Play the jobs; what the run leaves."""
        from fastsim.engine.rounds import tables as round_tables

        run, typical_count = self._played(hooks), self.inputs.typical_count
        absolute = "slo_compare_absolute" in switches_on(self.scenario.compat)
        summary = round_tables.summary(run, typical_count, absolute)
        if self.scenario.ideal:
            summary = round_tables.unmeasured(summary, run)
        makers = round_tables.makers(run, self.cluster, typical_count, self.inputs.workload)
        return Figures(len(run.jobs), summary, makers, run.figures())

    def _played(self, hooks: Hooks) -> RoundOutcome:
        if self.scenario.ideal:
            return _ideal(self.scenario, self.inputs, hooks.progress)
        run = driven(self.scenario, self.inputs, hooks.of_rounds())
        return run if self.scenario.log is None else _logged(self.scenario, self.inputs, run)

    def telemetry(self) -> Telemetry | None:
        """The telemetry that is taken from the placements; none of jobs without rounds."""
        return None if self.scenario.ideal else super().telemetry()

    def origins(self) -> dict[str, Any]:
        """Options and rates."""
        inputs, oracle = self.inputs, self.inputs.setting.oracle
        fields = ("seed", "sample_s", "record", "profiling", "references")
        used = {name: value for name, value in dataclasses.asdict(inputs.options).items() if name != "prices"}
        if isinstance(inputs.plan, SharePlan):
            used["realloc_s"] = inputs.options.gap_s(inputs.plan)
        used |= {"compat": sorted(inputs.options.compat), "prices": None if inputs.options.prices is None else "given"}
        options = {name: getattr(self.scenario, name) for name in fields} | used
        return {"options": options, "rates": {"name": oracle.name, "kinds": len(oracle.kinds)}}


def driven(scenario: Scenario, inputs: PreparedRounds, hooks: RunHooks) -> RoundOutcome:
    """Play the jobs."""
    context: RunContext = {
        **hooks, "tenants": inputs.tenants, "metrics": inputs.metrics(scenario, inputs.setting.gpu_models),
        "record_tasks": recorded(scenario), "nodes": inputs.nodes,
    }  # fmt: skip
    return driver_with(inputs, context).whole_run()


def driver_of(
    scenario: Scenario, inputs: PreparedRounds, progress: Progress | None = None
) -> ShareDriver | OrderedDriver:
    """The driver of a run that records nothing, before its first round; ScenarioError for one without rounds."""
    if scenario.ideal:
        raise ScenarioError("ideal", "jobs without rounds", "a run in rounds")
    return driver_with(inputs, {"tenants": inputs.tenants, "nodes": inputs.nodes, "progress": progress})


def driver_with(inputs: PreparedRounds, context: RunContext) -> ShareDriver | OrderedDriver:
    """The driver of a run in rounds of shares or ordered rounds, whichever the plan is for."""
    if isinstance(inputs.plan, OrderPlan):
        from fastsim.engine.orders.run import ordered_driver

        needs, jobs = inputs.needs, inputs.batches
        assert needs is not None
        return ordered_driver(inputs.setting, inputs.plan, needs, jobs, inputs.options, values=jobs.values, **context)
    from fastsim.engine.shares.run import share_driver

    return share_driver(inputs.setting, inputs.plan, inputs.batches, inputs.options, **context)


def _logged(scenario: Scenario, inputs: PreparedRounds, run: RoundOutcome) -> RoundOutcome:
    """Write the log; the run with the tasks that its tables need."""
    from fastsim.engine.shares.gavel_log import write_gavel_log

    assert scenario.log is not None and isinstance(inputs.plan, SharePlan)
    absolute = "slo_compare_absolute" in switches_on(scenario.compat)
    write_gavel_log(scenario.log, run, pairs=inputs.plan.pairs, slo_compare_absolute=absolute)
    if recorded(scenario.with_(log=None)):
        return run
    return dataclasses.replace(run, tasks=run.tasks[:0], held=run.held[:0])


def _ideal(scenario: Scenario, inputs: PreparedRounds, progress: Progress | None) -> RoundOutcome:
    """The run without rounds, with metrics of its end alone."""
    from fastsim.engine.shares.ideal import run_ideal

    assert isinstance(inputs.plan, SharePlan)
    if inputs.plan.estimates is not None:
        raise PolicyError("ideal", "a policy that estimates rates round by round", "one that takes them as given")
    run = run_ideal(
        inputs.setting, inputs.plan, inputs.batches, inputs.options, realloc_s=scenario.realloc_s or 0.0,
        tenants=inputs.tenants, progress=progress,
    )  # fmt: skip
    metrics = inputs.metrics(scenario.with_(record="summary"), inputs.setting.gpu_models)
    return dataclasses.replace(run, metrics=metrics)


def recorded(scenario: Scenario) -> bool:
    """Whether tasks are recorded: for the tables, or for the log."""
    return records_placements(scenario) or scenario.log is not None


def _refuse_kinds(workload: Workload, oracle: Oracle, models: Sequence[str], policy: Any) -> None:
    """PolicyError for jobs without rates: adaptive jobs, and others of kinds and on GPU models without any."""
    adaptive = s.BATCH_SIZE in workload.columns
    if s.WORKLOAD not in workload.columns or not (adaptive or {*models} - {*oracle.gpu_models}):
        return
    batch = next(iter(workload.batches(STREAM_ROWS)), None)
    names = None if batch is None else batch[s.WORKLOAD].drop_null().unique()
    if names and {name for name, _ in oracle.kinds}.isdisjoint(names.to_pylist()):
        found = f"{'adaptive jobs' if adaptive else 'jobs without rates'}, such as {cell_text(names, 0)}"
        expected = f"jobs with rates; those of {oracle.name} are of other kinds (rates= names others)"
        raise PolicyError(f"policy {policy}", found, expected, _for_adaptive(policy) if adaptive else BY_DURATION)


def _for_adaptive(policy: Any) -> str:
    """Policies for adaptive jobs in place of this one."""
    name = re.split(r"\W", str(policy), maxsplit=1)[0]
    order = {"fcfs": "fifo"}.get(name, name)
    if order in ORDERS:
        return f"policy served(order={order}) is for them"
    return "policies served, sia and pollux are for them"


def compatible(policy: Any, switches: frozenset[str]) -> Any:
    """The policy with those switches on that are parameters of it."""
    own = [item.name for item in dataclasses.fields(policy)] if dataclasses.is_dataclass(policy) else []
    for name in sorted(switches.intersection(own)):
        with suppress(PolicyError):  # a switch of one mode is refused by the others
            policy = dataclasses.replace(policy, **{name: True})
    return policy


def _plan(policy: Any, setting: Setting) -> SharePlan | OrderPlan:
    plan: SharePlan | OrderPlan = returned_plan(policy, "begin", policy.begin(setting), (SharePlan, OrderPlan))
    return plan


def _jobs(
    workload: Workload, setting: Setting, scenario: Scenario, requests: list[Request] | None = None
) -> tuple[JobBatches, Setting]:
    """The jobs, and the setting with the kinds of those that accept some GPU models only.

    Generated jobs of a window go on arriving as long as they are needed.
    """
    stream = workload.endless()
    endless = stream is not None and scenario.window is not None
    rows = ESTIMATED_ROWS if scenario.profiling != 1 or scenario.references is not None else STREAM_ROWS
    source = (lambda: stream.batches(rows=rows)) if stream is not None and endless else workload.batches
    columns = (workload.name, source, setting.oracle, setting.reference__k)
    jobs = JobBatches(*columns) if requests is None else PodBatches(*columns, requests=requests)
    restricted = workload.batches() if s.GPU_MODELS in workload.columns else iter(())
    jobs.accepted = AcceptedKinds.of(jobs.with_plain_kinds(restricted), len(setting.oracle.kinds), setting.gpu_models)
    setting = jobs.accepted.widened(setting)
    jobs.ideal__k = setting.reference__k
    return jobs, setting


def with_estimates(plan: SharePlan | OrderPlan, setting: Setting, scenario: Scenario) -> SharePlan | OrderPlan:
    """The plan with estimated rates of pairs, if a field needs them; ScenarioError if its jobs never share GPUs."""
    changed = {"profiling": scenario.profiling != 1, "references": scenario.references is not None}
    field = next((name for name, differs in changed.items() if differs), None)
    if field is None:
        return plan
    if not plan.pairs:
        expected = f"nothing: policy {scenario.policy} lets no jobs share GPUs"
        raise ScenarioError(field, repr(getattr(scenario, field)), expected)
    single = {name for name, num_gpu in setting.oracle.kinds if num_gpu == 1}
    references = len(single) if scenario.references is None else scenario.references
    if references > len(single):
        expected = f"at most {len(single)}, the workloads with rates on 1 GPU"
        raise ScenarioError("references", references, expected)
    # Draws number Gavel's job types in their original order, so that a seed means the same as in Gavel.
    workloads = tuple(JOB_NAMES) if single == set(JOB_NAMES) else ()
    column_bug = "estimator_column_bug" in switches_on(scenario.compat)
    estimator = Estimator(scenario.profiling, references, workloads, estimator_column_bug=column_bug)
    assert isinstance(plan, SharePlan)
    return dataclasses.replace(plan, estimates=estimator.begin(setting))


OF_SHARES = RoundsRun.engine(prepared_rounds, "jobs that get shares", driven)
"""The engine of shares."""
OF_ORDERS = OF_SHARES._replace(places="jobs in an order")
"""The engine of orders."""

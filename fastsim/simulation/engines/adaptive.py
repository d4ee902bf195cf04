"""Runs of adaptive jobs: the objects of a scenario, the run of its engine, the result."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from fastsim.engine.adaptive.plan import AdaptiveJob, AdaptivePlan, AdaptiveSetting, NodeGroup
from fastsim.engine.rounds.options import Setting
from fastsim.engine.totals.pod_totals import prices_for
from fastsim.errors import InputError, ScenarioError
from fastsim.performance.applications.family import Applications
from fastsim.performance.oracle import Oracle
from fastsim.simulation.binding_columns import checked_columns
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
from fastsim.workload.oversized_pods import smaller_jobs

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.engine.adaptive.driver import AdaptiveDriver
    from fastsim.engine.adaptive.run import AdaptiveOutcome
    from fastsim.engine.rounds.driver import RunHooks
    from fastsim.scenario.scenario import Scenario
    from fastsim.workload import Workload

ROUND_S = 60.0
"""Usual length of a round, seconds."""
OF_NO_TRAINING = (s.TENANT, s.WEIGHT, s.DEADLINE_S)
"""Columns of a workload that figures use and training does not."""


@dataclass(frozen=True, kw_only=True)
class PreparedAdaptive(PreparedJobs):
    """The objects of a scenario for the engine of adaptive jobs."""

    setting: AdaptiveSetting
    plan: AdaptivePlan
    jobs: tuple[AdaptiveJob, ...]


def prepared_adaptive(scenario: Scenario, policy: Any) -> PreparedAdaptive:
    """The objects of a scenario for adaptive jobs."""
    refuse_options(scenario, "adaptive")
    read = lasting_inputs(scenario)
    round_s = ROUND_S if scenario.round_s is None else scenario.round_s
    setting = AdaptiveSetting(
        groups_of(read.cluster), applications_from(scenario.rates), round_s, scenario.seed, scenario.interference
    )
    plan: AdaptivePlan = returned_plan(policy, "begin", policy.begin(setting), (AdaptivePlan,))
    unused = UnusedColumns("adaptive", facts_of(read.workload, scenario))
    jobs = jobs_of(read.workload)
    if plan.held and scenario.until_s is None:
        _refuse_wide(jobs, setting)
    messages = checked_columns(read.workload, read.cluster, unused, by_model=False)
    return PreparedAdaptive.of(scenario, read, setting=setting, plan=plan, jobs=jobs, noticed=messages)


class AdaptiveRun(JobsRun[PreparedAdaptive]):
    """A run of adaptive jobs."""

    def figures(self, hooks: Hooks) -> Figures:
        """Play the jobs; what the run leaves."""
        from fastsim.engine.adaptive import tables as adaptive_tables

        inputs, typical = self.inputs, self.inputs.typical_count
        run = driven_adaptive(self.scenario, inputs, hooks.of_rounds())
        tables = adaptive_tables.makers(run, inputs.cluster, typical, inputs.workload)
        return Figures(len(run.jobs), adaptive_tables.summary(run, typical), tables, run.figures())

    def origins(self) -> dict[str, Any]:
        """Options and applications."""
        names = ("seed", "sample_s", "record", "until_s", "interference")
        setting = self.inputs.setting
        options = {name: getattr(self.scenario, name) for name in names} | {"round_s": setting.round_s}
        known = {"name": setting.applications.name, "known": list(setting.applications)}
        return {"options": options, "applications": known}


def driven_adaptive(scenario: Scenario, inputs: PreparedAdaptive, hooks: RunHooks) -> AdaptiveOutcome:
    """Play the jobs."""
    from fastsim.engine.adaptive.run import run_adaptive
    from fastsim.engine.adaptive.tables import charge

    names, recorded = table_setting(inputs.setting), records_placements(scenario)
    prices = prices_for(scenario.prices, inputs.cluster)
    run = run_adaptive(
        names, inputs.setting, inputs.plan, inputs.jobs, record_tasks=recorded or prices is not None,
        until_s=float("inf") if scenario.until_s is None else scenario.until_s,
        metrics=inputs.metrics(scenario, names.gpu_models), **hooks,
    )  # fmt: skip
    describe(run.jobs, inputs.workload)
    if prices is not None:
        charge(run, inputs.cluster, prices)
    return run if recorded else dataclasses.replace(run, tasks=run.tasks[:0])


def driver_of(scenario: Scenario, inputs: PreparedAdaptive, progress: Progress | None = None) -> AdaptiveDriver:
    """The driver of a run that records nothing, before its first round."""
    from fastsim.engine.adaptive.run import adaptive_driver

    driver = adaptive_driver(inputs.setting, inputs.plan, inputs.jobs)
    driver.until_s = float("inf") if scenario.until_s is None else scenario.until_s
    driver.progress = progress
    return driver


def describe(records: npt.NDArray[Any], workload: Workload) -> None:
    """Fill in the columns of the workload that training does not need: tenants, weights and deadlines."""
    present = [name for name in OF_NO_TRAINING if name in workload.columns]
    if not present:
        return
    columns = pl.DataFrame(pl.from_arrow(workload.table().select(present)))[records["id"]]
    if s.WEIGHT in columns.columns:
        records["weight"] = columns[s.WEIGHT].fill_null(1.0)
    if s.DEADLINE_S in columns.columns:
        records["deadline_s"] = columns[s.DEADLINE_S].fill_null(np.inf)
    if s.TENANT in columns.columns:
        codes = columns[s.TENANT].cast(pl.String).rank("dense").cast(pl.Int32)
        records["tenant"] = codes.fill_null(-1)


def groups_of(cluster: Cluster) -> tuple[NodeGroup, ...]:
    """The cluster's nodes with whole GPUs by GPU model, models sorted by name."""
    groups = gpus_by_model(cluster, "jobs can train on")
    return tuple(NodeGroup(model, *zip(*nodes, strict=True)) for model, nodes in groups.items())


def applications_from(what: Any) -> Applications:
    """The applications of a text or an object; by default those that ship with fastsim."""
    if isinstance(what, Applications):
        return what
    if what is None or what == "default":
        return Applications.default()
    if isinstance(what, str | Path) and str(what).endswith((".parquet", ".csv", ".csv.gz")):
        return Applications.from_file(what)
    found = repr(str(what)) if isinstance(what, str | Path) else f"rates of type {type(what).__name__}"
    raise ScenarioError("rates", found, "'default', or a .parquet or .csv file of applications: jobs here are adaptive")


def jobs_of(workload: Workload) -> tuple[AdaptiveJob, ...]:
    """The jobs of a workload: applications, batch sizes, and modes from the column `task_role`."""
    for name in (s.WORKLOAD, s.BATCH_SIZE):
        if name not in workload.columns:
            expected = (
                "an application and a batch size for every job, such as those of synth:sia: "
                "a rate alone does not say how a job fares with other GPUs and batch sizes"
            )
            raise InputError(f"{workload.name}: {name}", "no such column", expected)
    table = workload.table()
    roles = table[s.TASK_ROLE].to_pylist() if s.TASK_ROLE in table.column_names else [None] * len(table)
    columns = [table[name].to_pylist() for name in (s.SUBMIT_S, s.WORKLOAD, s.NUM_GPU, s.BATCH_SIZE)]
    jobs = []
    for row, (submit_s, app, num_gpu, batch, role) in enumerate(zip(*columns, roles, strict=True)):
        if app is None or batch is None:
            raise InputError(f"{workload.name}:{row + 1}", f"application {app}, batch size {batch}", "both of them")
        jobs.append(AdaptiveJob(submit_s, app, num_gpu, batch, role or "adaptive"))
    return tuple(jobs)


def _refuse_wide(jobs: Sequence[AdaptiveJob], setting: AdaptiveSetting) -> None:
    """InputError for a job that waits for ever, because it has the GPUs that it asks for or none."""
    most = max(group.gpus for group in setting.groups)
    for number, job in enumerate(jobs):
        if job.num_gpu > most:
            found = f"{job.application} on {job.num_gpu} GPUs"
            do = f"leave such jobs out: {smaller_jobs('drop')}"
            raise InputError(f"job {number}", found, f"at most {most} GPUs of one model", do)


def table_setting(setting: AdaptiveSetting) -> Setting:
    """GPU models and applications for the tables of results; adaptive jobs have no fixed rates."""
    models = tuple(group.gpu_model for group in setting.groups)
    kinds = tuple((name, 1) for name in setting.applications)
    shape = (len(kinds), len(models))
    oracle = Oracle(kinds, models, np.zeros(shape), np.zeros((len(kinds), *shape)), setting.applications.name)
    gpus = np.array([group.gpus for group in setting.groups], np.int64)
    return Setting(models, gpus, oracle, np.full(len(kinds), np.nan), setting.seed)


ENGINE = AdaptiveRun.engine(prepared_adaptive, "adaptive jobs", driven_adaptive)
"""The engine."""

"""Runs of pods under a monitored scheduler: the objects of a scenario, the run of its engine, the result."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastsim.engine.monitored.containers import Containers
from fastsim.engine.monitored.plan import MonitoredPlan
from fastsim.engine.monitored.run import Exporter, MonitoredRun, PodArrival
from fastsim.engine.monitored.step_checks import checked_scheduler
from fastsim.engine.sampling.pod_profiles import PodProfiles
from fastsim.engine.totals.pod_totals import tariff_of
from fastsim.errors import InputError, ScenarioError
from fastsim.scenario.compat import switches_on
from fastsim.simulation.engines.engine import (
    Figures,
    Hooks,
    JobsRun,
    PreparedJobs,
    Progress,
    lasting_inputs,
    records_placements,
    records_timeline,
    refuse_adaptive_jobs,
)
from fastsim.simulation.engines.rounds import compatible
from fastsim.simulation.returned_plans import returned_plan
from fastsim.simulation.uses.columns import UnusedColumns, facts_of
from fastsim.telemetry.reading_model import Device
from fastsim.telemetry.telemetry import Telemetry, telemetry_from
from fastsim.workload import schema as s

if TYPE_CHECKING:
    from fastsim.scenario.scenario import Scenario
    from fastsim.simulation.run_warnings import Message
    from fastsim.workload import Workload
    from fastsim_ext.state.gpu_prices import Tariff

Array = Any
BATCH_ROWS = 8192


@dataclass(frozen=True, kw_only=True)
class PreparedMonitored(PreparedJobs):
    """The objects of a scenario for the engine.

    `gpus` are node and number of every GPU, `tariff` their prices, `unused` the columns that the engine ignores.
    """

    plan: MonitoredPlan
    telemetry: Telemetry
    gpus: list[tuple[int, int]]
    devices: list[Device]
    tariff: Tariff | None
    unused: UnusedColumns

    @property
    def messages(self) -> Sequence[Message]:
        """Warnings about columns without effect, once the pods have been read."""
        return self.unused.messages(self.workload.name)


def prepared_monitored(scenario: Scenario, policy: Any) -> PreparedMonitored:
    """The objects of a scenario for a monitored scheduler."""
    read = lasting_inputs(scenario)
    refuse_adaptive_jobs(read.workload, scenario.policy)
    plan = plan_of(scenario, policy)
    telemetry = watched(plan, telemetry_from(scenario.telemetry))
    nodes = read.cluster.offered.select(["num_gpu", "gpu_model"]).to_pylist()
    gpus = [(position, index) for position, node in enumerate(nodes) for index in range(node["num_gpu"])]
    if not gpus:
        raise ScenarioError("cluster", "no GPUs", "GPUs that pods can share")
    devices = [telemetry.device(nodes[position]["gpu_model"], read.cluster) for position, _ in gpus]
    tariff = tariff_of(read.cluster, scenario.prices)
    unused = UnusedColumns("monitored", facts_of(read.workload, scenario))
    return PreparedMonitored.of(
        scenario, read, plan=plan, telemetry=telemetry, gpus=gpus, devices=devices, tariff=tariff, unused=unused
    )


def plan_of(scenario: Scenario, policy: Any) -> MonitoredPlan:
    """The plan of a policy with the scenario's compat switches."""
    answer = compatible(policy, switches_on(scenario.compat)).watch()
    plan: MonitoredPlan = returned_plan(policy, "watch", answer, (MonitoredPlan,))
    return plan


def watched(plan: MonitoredPlan, telemetry: Telemetry | None) -> Telemetry:
    """The telemetry of a run: devices and refresh gaps of the scenario, else those of the plan."""
    telemetry = telemetry or Telemetry()
    devices = {**plan.devices, **telemetry.devices}
    return dataclasses.replace(telemetry, devices=devices, refresh_s=telemetry.refresh_s or plan.refresh_s)


class MonitoredPodsRun(JobsRun[PreparedMonitored]):
    """A run of pods under a monitored scheduler."""

    def figures(self, hooks: Hooks) -> Figures:
        """Play the pods; what the run leaves."""
        from fastsim.engine.monitored.tables import makers, measured, summary

        inputs = self.inputs
        run = driven(inputs, self.scenario, hooks.progress)
        listed, timed = records_placements(self.scenario), records_timeline(self.scenario)
        measurements = measured(run, inputs.cluster, inputs.typical, inputs.gpus, inputs.tariff)
        tables = makers(measurements, inputs.cluster, inputs.workload, listed, timed)
        return Figures(run.arrived, summary(measurements), tables, {})

    def telemetry(self) -> Telemetry | None:
        """The telemetry that the scheduler saw; None if the result has none."""
        return None if self.scenario.telemetry is None else self.inputs.telemetry

    def origins(self) -> dict[str, Any]:
        """Options, among them the telemetry and the lives of containers."""
        options = {name: getattr(self.scenario, name) for name in ("seed", "record", "until_s")}
        seen = {"telemetry": repr(self.inputs.telemetry), "lives": repr(self.inputs.plan.lifecycle)}
        return {"options": options | seen}


def driven(inputs: PreparedMonitored, scenario: Scenario, progress: Progress | None) -> MonitoredRun:
    """Play the pods."""
    containers = Containers(inputs.devices, inputs.plan.lifecycle)
    pods = pod_arrivals(inputs.workload, inputs.unused)
    first = next(pods, None)
    begin_s = 0.0 if first is None else first.submit_s
    profiles = PodProfiles(inputs.telemetry.profiles, inputs.devices)
    capacity = [int(device.memory_mib) for device in inputs.devices]
    refreshes = inputs.telemetry.refreshes(begin_s, scenario.seed)
    run = MonitoredRun(
        scheduler=checked_scheduler(inputs.plan.scheduler(capacity, begin_s)),
        capacity_mib=capacity,
        containers=containers,
        exporter=Exporter(containers, refreshes, max(inputs.telemetry.refresh_s, default=math.inf)),
        profile_of=lambda pod, gpu: profiles.profile(pod.application, None, pod.request_mib, inputs.devices[gpu]),
        until_s=math.inf if scenario.until_s is None else scenario.until_s,
        progress=progress,
    )
    if first is not None:
        run.play(_again(first, pods))
    return run


def pod_arrivals(workload: Workload, unused: UnusedColumns) -> Iterator[PodArrival]:
    """The pods of a workload; each shares one GPU and declares how much of its memory it may need."""
    names = workload.columns
    for batch in workload.batches(BATCH_ROWS):
        table: Any = batch
        unused.add(batch)
        if s.BOUND_NODE in names and table.column(s.BOUND_NODE).null_count < batch.num_rows:
            raise InputError(f"{workload.name}: {s.BOUND_NODE}", "pods that run already", "pods that all arrive")
        needed = (s.POD_ID, s.SUBMIT_S, s.NUM_GPU, s.GPU_MILLI, s.CPU_MILLI)
        columns = {name: table.column(name).to_pylist() for name in needed}
        some = (s.DURATION_S, s.GPU_MEMORY_MIB, s.WORKLOAD, s.TENANT)
        columns |= {name: table.column(name).to_pylist() if name in names else [None] * batch.num_rows for name in some}
        for pod, submit_s, num_gpu, gpu, cpu, work_s, memory, application, tenant in zip(
            *columns.values(), strict=True
        ):
            if num_gpu != 1:
                expected = "1: a pod here shares one GPU with others"
                raise InputError(f"{workload.name}: pod {pod}: num_gpu", num_gpu, expected)
            lasts_s = math.inf if work_s is None else work_s
            yield PodArrival(
                pod=pod,
                submit_s=submit_s,
                work_s=lasts_s,
                request_mib=memory or 0,
                application=application,
                gpu_milli=gpu,
                cpu_milli=cpu,
                tenant=tenant,
            )


def _again(first: PodArrival, rest: Iterator[PodArrival]) -> Iterator[PodArrival]:
    yield first
    yield from rest


ENGINE = MonitoredPodsRun.engine(prepared_monitored, "pods that share GPUs")
"""The engine, which keeps no checkpoints."""

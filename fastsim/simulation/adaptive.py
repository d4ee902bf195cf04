"""Runs of adaptive jobs: texts become objects, the engine plays the rounds, the result is one like all others."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastsim.engine.adaptive.plan import AdaptiveJob, AdaptivePlan, AdaptiveSetting, NodeGroup
from fastsim.engine.result import Result
from fastsim.engine.rounds.options import Setting
from fastsim.errors import InputError, PolicyError, ScenarioError
from fastsim.performance.applications.application import Applications
from fastsim.performance.oracle import Oracle
from fastsim.scenario import round_texts
from fastsim.simulation.binding_columns import checked_columns
from fastsim.workload import schema as s
from fastsim.workload import texts

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.engine.adaptive.run import AdaptiveRun
    from fastsim.engine.rounds.checkpoint import RoundCheckpoint, RoundKeeping, RoundSaving
    from fastsim.scenario.scenario import Scenario
    from fastsim.simulation.run_warnings import Message
    from fastsim.workload import Workload
    from fastsim.workload.typical_pods import TypicalPods

ROUND_S = 60.0
"""Length of a round if nothing is said, seconds."""
REFUSED = (
    "realloc_s", "restart_s", "window", "prices", "global_queue", "profiling", "references", "ideal", "log", "compat",
)  # fmt: skip
"""Fields of a scenario that mean nothing for adaptive jobs."""


class PreparedAdaptive(NamedTuple):
    """What the texts of a scenario stand for."""

    cluster: Cluster
    workload: Workload
    setting: AdaptiveSetting
    plan: AdaptivePlan
    jobs: tuple[AdaptiveJob, ...]
    typical: TypicalPods
    messages: Sequence[Message] = ()
    """What the user should be told."""


def is_adaptive(policy: Any) -> bool:
    """Whether a policy is for jobs that may change their batch sizes."""
    return bool(getattr(policy, "adaptive", False))


def prepared_adaptive(scenario: Scenario, policy: Any) -> PreparedAdaptive:
    """The objects of a scenario for adaptive jobs."""
    refuse_options(scenario)
    cluster = round_texts.lasting(texts.cluster_from(scenario.cluster), scenario.policy)
    workload, untuned = texts.workload_from(scenario.workload, cluster)
    round_s = ROUND_S if scenario.round_s is None else scenario.round_s
    setting = AdaptiveSetting(groups_of(cluster), applications_from(scenario.rates), round_s, scenario.seed)
    plan = policy.begin(setting)
    if not isinstance(plan, AdaptivePlan):
        raise PolicyError(f"policy {policy}", f"a plan of type {type(plan).__name__}", "an AdaptivePlan")
    typical = texts.typical_from(scenario.typical, untuned, cluster)
    jobs, messages = jobs_of(workload), checked_columns(workload, cluster, by_model=False)
    return PreparedAdaptive(cluster, workload, setting, plan, jobs, typical, messages)


def played_adaptive(
    scenario: Scenario, policy: Any, progress: Callable[[int], None] | None, saving: RoundSaving | None = None
) -> tuple[Result, Sequence[Message]]:
    """One scenario's result and what to tell of it; ``saving`` keeps checkpoints and may have one to begin with."""
    from fastsim.engine.adaptive import tables as adaptive_frames
    from fastsim.engine.tables import LazyFrames

    spent = (0.0, 0.0) if saving is None else saving.spent_s
    began = (time.perf_counter() - spent[0], time.process_time() - spent[1])
    keeping, start = (None, None) if saving is None else (saving.keeping, saving.start)
    made = prepared_adaptive(scenario, policy)
    run = driven_adaptive(scenario, made, progress, keeping, start)
    kept = max(made.typical.kept, 1)
    frames = LazyFrames(
        {"summary": adaptive_frames.summary(run, kept)}, adaptive_frames.makers(run, made.cluster, kept)
    )
    wall_s, cpu_s = time.perf_counter() - began[0], time.process_time() - began[1]
    speed = {"pods_per_s": len(run.jobs) / wall_s, "rounds_per_s": run.rounds / wall_s}
    timing = {"wall_s": wall_s, "cpu_s": cpu_s, "solver_s": run.solver_s, **speed}
    return Result(frames, _provenance(scenario, made), timing), made.messages


def driven_adaptive(
    scenario: Scenario, made: PreparedAdaptive, progress: Callable[[int], None] | None,
    checkpoint: RoundKeeping | None = None, resume: RoundCheckpoint | None = None,
) -> AdaptiveRun:  # fmt: skip
    """Play the jobs."""
    from fastsim.engine.adaptive.run import run_adaptive
    from fastsim.engine.rounds.node_metrics import gauge_of

    told = setting_told(made.setting)
    timeline = scenario.record in ("timeline", "all")
    recorded = scenario.record in ("placements", "all") or scenario.telemetry is not None
    return run_adaptive(
        told, made.setting, made.plan, made.jobs, record_tasks=recorded,
        until_s=float("inf") if scenario.until_s is None else scenario.until_s,
        gauge=gauge_of(made.cluster, made.typical, told.gpu_models, scenario.sample_s or 0.0, timeline),
        progress=progress, checkpoint=checkpoint, resume=resume,
    )  # fmt: skip


def refuse_options(scenario: Scenario) -> None:
    """Refuse options that adaptive jobs would have to ignore."""
    defaults = {item.name: item.default for item in dataclasses.fields(scenario)}
    for name in REFUSED:
        if getattr(scenario, name) != defaults[name]:
            expected = f"nothing: the jobs of policy {scenario.policy} are adaptive"
            raise ScenarioError(name, repr(getattr(scenario, name)), expected)


def groups_of(cluster: Cluster) -> tuple[NodeGroup, ...]:
    """The cluster's nodes with whole GPUs by GPU model, models sorted by name."""
    nodes = cluster.offered.select(["gpu_model", "num_gpu"]).to_pylist()
    found: dict[str, list[tuple[int, int]]] = {}
    for position, node in enumerate(nodes):
        if node["num_gpu"]:
            found.setdefault(node["gpu_model"], []).append((node["num_gpu"], position))
    if not found:
        raise ScenarioError("cluster", "no GPUs", "GPUs that jobs can train on")
    return tuple(NodeGroup(model, *zip(*found[model], strict=True)) for model in sorted(found))


def applications_from(what: Any) -> Applications:
    """The applications a text or an object stands for; those that ship if nothing is said."""
    if isinstance(what, Applications):
        return what
    if what is None or what == "default":
        return Applications.default()
    if isinstance(what, str | Path) and str(what).endswith(".parquet"):
        return Applications.from_parquet(what)
    found = repr(str(what)) if isinstance(what, str | Path) else f"rates of type {type(what).__name__}"
    raise ScenarioError("rates", found, "'default', or a .parquet file of applications: jobs here are adaptive")


def jobs_of(workload: Workload) -> tuple[AdaptiveJob, ...]:
    """The jobs of a workload: applications, batch sizes, and as `task_role` what may change."""
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
    found = []
    for row, (submit_s, app, num_gpu, batch, role) in enumerate(zip(*columns, roles, strict=True)):
        if app is None or batch is None:
            raise InputError(f"{workload.name}:{row + 1}", f"application {app}, batch size {batch}", "both of them")
        found.append(AdaptiveJob(submit_s, app, num_gpu, batch, role or "adaptive"))
    return tuple(found)


def setting_told(setting: AdaptiveSetting) -> Setting:
    """Models and applications as the tables of results name them; jobs here have no rate of their own."""
    models = tuple(group.gpu_model for group in setting.groups)
    kinds = tuple((name, 1) for name in setting.applications)
    shape = (len(kinds), len(models))
    oracle = Oracle(kinds, models, np.zeros(shape), np.zeros((len(kinds), *shape)), setting.applications.name)
    gpus = np.array([group.gpus for group in setting.groups], np.int64)
    return Setting(models, gpus, oracle, np.full(len(kinds), np.nan), setting.seed)


def _provenance(scenario: Scenario, made: PreparedAdaptive) -> dict[str, Any]:
    from fastsim.engine.result import provenance_of_build

    told = {name: getattr(scenario, name) for name in ("seed", "sample_s", "record", "until_s")}
    return {
        "options": {**told, "round_s": made.setting.round_s},
        "cluster": {"nodes": len(made.cluster), "sha256": made.cluster.checksum()},
        "workload": {"name": made.workload.name, "sha256": made.workload.checksum()},
        "applications": {"name": made.setting.applications.name, "known": list(made.setting.applications)},
        "typical_pods": len(made.typical.count), **provenance_of_build(),
    }  # fmt: skip

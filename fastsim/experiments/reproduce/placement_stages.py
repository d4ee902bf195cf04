"""The closing stages of the FGD paper's program, of which no numbers are published: descheduling and inflation.

The first pods of a trace are placed; then pods are evicted and placed again, or clones of pods are placed on top.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fastsim.engine.result import Result
from fastsim.experiments.many_runs import simulate_many
from fastsim.experiments.reproduce.fgd_protocol import trace
from fastsim.experiments.reproduce.placement_figures import FIRST_SEED
from fastsim.experiments.reproduce.reproduction import Cell, Measure, cell
from fastsim.policies.deschedule import DESCHEDULERS
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.run_warnings import PodTooLarge
from fastsim.workload.workload import Workload

DESCHEDULE, INFLATION = "deschedule", "inflation"
FIRST_PODS, EVICTED, INFLATED = 6000, 0.1, 1.2
"""Pods that arrive first, the part of them that may be evicted, and pods with clones over without."""
STAGES: dict[str, dict[str, dict[str, Any]]] = {
    DESCHEDULE: {name: {"deschedule": (f"{name}:{EVICTED}",)} for name in DESCHEDULERS},
    INFLATION: {f"{INFLATED:g} times": {"inflation": INFLATED}},
}
"""Options of runs by figure and case."""
POLICIES = ("best_fit", "fgd")
COLUMNS = {"frag_milli": "fragmented GPUs", "gpu_milli_alloc": "allocated GPUs"}


class StageRun(NamedTuple):
    """One run: figure, case, policy, GPUs of the cluster, result."""

    figure: str
    case: str
    policy: str
    gpus: int
    result: Result


def stage_count(figures: Collection[str], seeds: int) -> int:
    """Number of runs of these figures."""
    return seeds * len(POLICIES) * sum(len(cases) for figure, cases in STAGES.items() if figure in figures)


def stage_runs(
    data: Path | None, name: str, figures: Collection[str], seeds: int, workers: int,
    progress: Callable[[int], None] | None,
) -> list[StageRun]:  # fmt: skip
    """The runs of these figures on a trace."""
    keys, scenarios = [], []
    for seed in range(FIRST_SEED, FIRST_SEED + seeds) if stage_count(figures, 1) else ():
        pods = trace(data, name)
        cluster, offered = pods.offered(seed)
        workload = Workload.from_arrow(offered.table().slice(0, FIRST_PODS), name=f"{name}-{seed}")
        for figure, cases in STAGES.items():
            for case, options in cases.items() if figure in figures else ():
                for policy in POLICIES:
                    keys.append((figure, case, policy, cluster.total_gpus))
                    scenarios.append(
                        Scenario(cluster, workload, policy, seed=seed, typical=pods.typical, record="summary",
                                 **options)
                    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PodTooLarge)
        results = simulate_many(scenarios, workers, progress)
    return [StageRun(*key, result) for key, result in zip(keys, results, strict=True)]


def stage_cells(runs: Sequence[StageRun]) -> list[Cell]:
    """Means over seeds at each stage, per cent of all GPUs."""
    groups: dict[tuple[str, str, str, str, str], list[float]] = {}
    for run in runs:
        for row in run.result.stages.iter_rows(named=True):
            for column in COLUMNS:
                key = (run.figure, run.case, run.policy, row["stage"], column)
                groups.setdefault(key, []).append(float(row[column]) / (10 * run.gpus))
    return [
        cell(Measure(figure, f"{COLUMNS[column]}, {stage}", "% of GPUs", 0.01), case, policy, None, float(np.mean(of)))
        for (figure, case, policy, stage, column), of in groups.items()
    ]

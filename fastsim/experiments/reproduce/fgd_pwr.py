"""Reproductions of the FGD and PWR papers: their matrices of traces, seeds and policies, cell by cell."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from fastsim.errors import ScenarioError
from fastsim.experiments.executors.choice import executor
from fastsim.experiments.reproduce.fgd_protocol import is_recorded, trace_names
from fastsim.experiments.reproduce.placement_cells import (
    DEFAULT,
    PARTS,
    curve_cells,
    fgd_cells,
    mean_curve,
    part_cells,
    pwr_cells,
    recorded_cells,
    traces_of,
)
from fastsim.experiments.reproduce.placement_figures import (
    GRID_STEP,
    LAST_PCT,
    MIXES,
    POLICIES,
    PlacementRun,
    power_saving_pct,
    published,
    published_failures,
    task_runs,
    tasks,
)
from fastsim.experiments.reproduce.placement_stages import stage_cells, stage_count, stage_runs
from fastsim.experiments.reproduce.published_numbers import published_numbers
from fastsim.experiments.reproduce.reproduction import Cell, Measure, Reproduction, cell, cell_table, points
from fastsim.policies import FGD, PWR

SEEDS, QUICK_SEEDS = 10, 2
TRACES = (
    "default", "cpu050", "cpu100", "cpu200", "cpu250", "gpushare40", "gpushare60", "gpushare80", "gpushare100",
    "gpuspec10", "gpuspec20", "gpuspec25", "gpuspec33", "multigpu20", "multigpu30", "multigpu40", "multigpu50",
)  # fmt: skip
"""Traces of the papers; the PWR paper leaves out those named after CPUs."""
ALLOC = Measure("default trace", "alloc_pct", "% of GPUs", 0.01)
GENERATED = "mean of all"

Progress = Callable[[int], None] | None


def fgd_reproduction(
    data: Path | None, quick: bool, workers: int, progress: Progress = None, figures: Sequence[str] = ()
) -> Reproduction:
    """The FGD paper's evaluation: allocation and fragmentation over arrived demand."""
    names, seeds, began = _traces(data, "fgd", quick, figures), QUICK_SEEDS if quick else SEEDS, time.perf_counter()
    runs = _runs(data=data, names=names, seeds=seeds, policies=tuple(POLICIES), workers=workers, progress=progress)
    wanted = figures or [*published_numbers("fgd")["figure"].unique(maintain_order=True), *PARTS]
    groups = _groups(data, runs)
    exact, comparable = _exact(data, names, seeds), data is not None and seeds == SEEDS
    cells = fgd_cells(wanted, groups, exact, comparable, None if data is not None else GENERATED)
    curves_of, failures = published(data), published_failures(data)
    for (name, policy), mine in groups.items():
        own = data is None and name != GENERATED and ALLOC.figure in wanted
        cells += _own_cells(name, policy, mine) if own else []
        cells += curve_cells(wanted, name, policy, mine, curves_of)
        cells += part_cells(wanted, name, policy, mine, failures) if name in (DEFAULT, GENERATED) else []
    first = DEFAULT if DEFAULT in names else names[0]
    later = None if progress is None else lambda count: progress(len(runs) + count)
    staged = stage_runs(data=data, name=first, figures=figures, seeds=seeds, workers=workers, progress=later)
    cells, curves = cells + stage_cells(staged), _fgd_curves(runs, first)
    title = "FGD: fragmentation-aware placement (USENIX ATC 2023)"
    wall_s, cpu_s = time.perf_counter() - began, sum(run.result.timing["cpu_s"] for run in staged)
    made = _reproduction(
        name="fgd",
        title=title,
        data=data,
        traces=names,
        runs=runs,
        cells=cells,
        curves=curves,
        wall_s=wall_s,
        citation=FGD.citation,
    )
    return replace(made, runs=made.runs + len(staged), cpu_s=(made.cpu_s or 0.0) + cpu_s)


def pwr_reproduction(
    data: Path | None, quick: bool, workers: int, progress: Progress = None, figures: Sequence[str] = ()
) -> Reproduction:
    """The PWR paper's evaluation: power saved against FGD, GRAR, power at capacity and failed pods."""
    names, seeds, began = _traces(data, "pwr", quick, figures), QUICK_SEEDS if quick else SEEDS, time.perf_counter()
    runs = _runs(data=data, names=names, seeds=seeds, policies=(*POLICIES, *MIXES), workers=workers, progress=progress)
    wanted = figures or [*published_numbers("pwr")["figure"].unique(maintain_order=True), "failed pods"]
    groups = _groups(data, runs)
    exact, comparable = _exact(data, names, seeds), data is not None and seeds == SEEDS
    cells = pwr_cells(wanted, groups, exact, comparable, None if data is not None else GENERATED)
    for (name, policy), mine in groups.items():
        compared = name in (DEFAULT, GENERATED)
        cells += recorded_cells(
            figures=wanted,
            name=name,
            policy=policy,
            runs=mine,
            base=groups[name, "fgd"],
            exact=name in exact,
            comparable=comparable,
            compared=compared,
        )
    curves = _pwr_curves(groups, DEFAULT if DEFAULT in names else names[0])
    title = "PWR: power- and fragmentation-aware placement (CCGrid 2025)"
    return _reproduction(
        name="pwr",
        title=title,
        data=data,
        traces=names,
        runs=runs,
        cells=cells,
        curves=curves,
        wall_s=time.perf_counter() - began,
        citation=PWR.citation,
    )


def _exact(data: Path | None, names: Sequence[str], seeds: int) -> set[str]:
    """The traces whose orders and seeds are those of the published experiments."""
    return {name for name in names if seeds == SEEDS and is_recorded(data, name)}


def _traces(data: Path | None, name: str, quick: bool, figures: Sequence[str]) -> tuple[str, ...]:
    there = trace_names(data)
    if data is None:
        there = there[:12] if name == "pwr" else there
        return there[:1] if quick else there
    wanted = TRACES if name == "fgd" else tuple(trace for trace in TRACES if not trace.startswith("cpu"))
    if figures:
        panels = published_numbers(name).filter(pl.col("figure").is_in(figures))["panel"].unique()
        needed = {trace for panel in panels for trace in traces_of(panel)} or {DEFAULT}
        wanted = tuple(trace for trace in wanted if trace in needed)
    there = tuple(trace for trace in wanted if trace in there)
    if not there:
        raise ScenarioError(f"--data {data}", "no trace of the paper", f"one of {', '.join(wanted)}")
    return there[:1] if quick else there


def _runs(
    data: Path | None, names: Sequence[str], seeds: int, policies: tuple[str, ...], workers: int, progress: Progress
) -> list[PlacementRun]:
    pending, runs = tasks(data, names, seeds, policies), list[PlacementRun]()
    with executor(workers, len(pending)) as spread:
        for some in spread.map(task_runs, pending):
            runs += some
            if progress is not None:
                progress(len(runs))
    return runs


def run_count(data: Path | None, name: str, quick: bool, figures: Sequence[str] = ()) -> int:
    """Number of runs of a reproduction."""
    policies = len(POLICIES) + (len(MIXES) if name == "pwr" else 0)
    seeds = QUICK_SEEDS if quick else SEEDS
    staged = stage_count(figures, seeds) if name == "fgd" else 0
    return len(_traces(data, name, quick, figures)) * seeds * policies + staged


def _groups(data: Path | None, runs: Sequence[PlacementRun]) -> dict[tuple[str, str], list[PlacementRun]]:
    """Runs by trace and policy; generated traces together, too."""
    groups: dict[tuple[str, str], list[PlacementRun]] = {}
    for run in runs:
        groups.setdefault((run.trace, run.policy), []).append(run)
    for run in runs if data is None else ():
        groups.setdefault((GENERATED, run.policy), []).append(run)
    return groups


def _own_cells(name: str, policy: str, runs: Sequence[PlacementRun]) -> list[Cell]:
    """Allocation of a generated trace."""
    mean = mean_curve(runs, "alloc_pct")
    return [cell(ALLOC, name, policy, at, float(mean[at])) for at in (100, LAST_PCT)]


def _fgd_curves(runs: Sequence[PlacementRun], name: str) -> pl.DataFrame:
    lines = []
    for (trace, policy), mine in _groups(Path(), runs).items():
        if trace == name:
            for curve, title in (("alloc_pct", "GPU allocation (%)"), ("frag_pct", "fragmented GPUs (%)")):
                x = np.arange(LAST_PCT + 1)
                lines.append(
                    points(
                        chart=f"{title[:-4]}, {name}",
                        x_title="arrived demand (%)",
                        y_title=title,
                        policy=policy,
                        x=x,
                        y=mean_curve(mine, curve),
                    )
                )
    return pl.concat(lines)


def _pwr_curves(groups: Mapping[tuple[str, str], list[PlacementRun]], name: str) -> pl.DataFrame:
    lines, base = [], mean_curve(groups[name, "fgd"], "power_w")
    for (trace, policy), mine in groups.items():
        if trace == name:
            x = 100 * GRID_STEP * np.arange(len(base))
            saving = power_saving_pct(base, mean_curve(mine, "power_w"))
            title = "power saved (% of FGD's)"
            lines.append(
                points(
                    chart=f"Power savings, {name}",
                    x_title="arrived demand (%)",
                    y_title=title,
                    policy=policy,
                    x=x[8:],
                    y=saving[8:],
                )
            )
            lines.append(
                points(
                    chart=f"GRAR, {name}",
                    x_title="arrived demand (%)",
                    y_title="GRAR",
                    policy=policy,
                    x=x,
                    y=mean_curve(mine, "grar"),
                )
            )
    return pl.concat(lines)


def _reproduction(
    name: str, title: str, data: Path | None, traces: Sequence[str], runs: Sequence[PlacementRun], cells: list[Cell],
    curves: pl.DataFrame, wall_s: float, citation: str,
) -> Reproduction:  # fmt: skip
    there, cpu_s = trace_names(data), sum(run.cpu_s for run in runs)
    missing = [trace for trace in TRACES if trace not in there and (name == "fgd" or not trace.startswith("cpu"))]
    orders = sum(is_recorded(data, trace) for trace in traces)
    source = f"generated pods like openb's: {_trace_count(traces)}, so published figures are a glance only"
    if data is not None:
        source = f"openb's lists: {_trace_count(traces)}, {orders} in the published orders, the others in our own"
        source += f"; not there: {', '.join(missing)}" if missing else ""
    return Reproduction(
        name=name,
        title=title,
        source=source,
        cells=cell_table(cells),
        curves=curves,
        runs=len(runs),
        wall_s=wall_s,
        citation=citation,
        cpu_s=cpu_s,
    )


def _trace_count(traces: Sequence[object]) -> str:
    return "1 trace" if len(traces) == 1 else f"{len(traces)} traces"

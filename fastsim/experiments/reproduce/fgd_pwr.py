"""Reproductions of the FGD and PWR papers: their matrices of traces, seeds and policies, cell by cell."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fastsim.errors import ScenarioError
from fastsim.experiments.executors.executor import executor
from fastsim.experiments.reproduce.fgd_protocol import is_recorded, trace_names
from fastsim.experiments.reproduce.placement_figures import (
    GRID_STEP,
    LAST_PCT,
    LIMITS,
    MIXES,
    POLICIES,
    PlacementRun,
    Published,
    largest,
    power_saving_pct,
    published,
    task_runs,
    tasks,
)
from fastsim.experiments.reproduce.reproduction import (
    Cell,
    Measure,
    Reproduction,
    cell,
    cell_table,
    points,
    published_table,
)
from fastsim.policies import FGD, PWR

SEEDS, QUICK_SEEDS = 10, 2
TRACES = (
    "default", "cpu050", "cpu100", "cpu200", "cpu250", "gpushare40", "gpushare60", "gpushare80", "gpushare100",
    "gpuspec10", "gpuspec20", "gpuspec25", "gpuspec33", "multigpu20", "multigpu30", "multigpu40", "multigpu50",
)  # fmt: skip
"""Traces of the papers; the PWR paper leaves out those named after CPUs."""
ALLOC = Measure("7, 9a, 11-14", "alloc_pct", "% of GPUs", 0.01)
CURVES = {
    name: Measure("7, 9a", f"largest difference of {name}", "percentage points", 2 * limit)
    for name, limit in LIMITS.items()
}
SAVING = Measure("power savings", "power_saving_pct", "% of FGD's", 0.01)
MEASURES = {
    "power_saving_pct": SAVING, "grar": Measure("GRAR", "grar", "", 0.0001),
    "power_w": Measure("EOPC", "power_w", "W", 1.0), "failed_pods": Measure("failed pods", "failed_pods", "pods", 0.1),
}  # fmt: skip
ELSEWHERE = {("power_saving_pct", 0.14), ("power_saving_pct", 1.0), ("grar", 1.0), ("failed_pods", 1.3)}
"""Quantity and demand of the cells of traces for which the papers print no numbers."""
GENERATED = "mean of all"

Tell = Callable[[int], None] | None


def fgd_reproduction(data: Path | None, quick: bool, workers: int, tell: Tell = None) -> Reproduction:
    """The FGD paper's evaluation: allocation at 100 and 130 per cent of arrived demand, and curves."""
    names, seeds, began = _traces(data, "fgd", quick), QUICK_SEEDS if quick else SEEDS, time.perf_counter()
    runs = _runs(data, names, seeds, tuple(POLICIES), workers, tell)
    curves_of, cells = published(data), list[Cell]()
    for (name, policy), mine in _grouped(runs).items():
        exact = is_recorded(data, name) and seeds == SEEDS and policy != "random"
        cells += _fgd_cells(name, policy, mine, exact, data is not None and seeds == SEEDS)
        cells += _curve_cells(name, policy, mine, curves_of)
    if data is None:
        for policy in POLICIES:
            mine = [run for run in runs if run.policy == policy]
            cells += _fgd_cells(GENERATED, policy, mine, False, False, "default")
    curves = _fgd_curves(runs, "default" if "default" in names else names[0])
    title = "FGD: fragmentation-aware placement (USENIX ATC 2023)"
    return _reproduction("fgd", title, data, names, runs, cells, curves, time.perf_counter() - began, FGD.citation)


def pwr_reproduction(data: Path | None, quick: bool, workers: int, tell: Tell = None) -> Reproduction:
    """The PWR paper's evaluation: power saved against FGD, GRAR, power at capacity and failed pods."""
    names, seeds, began = _traces(data, "pwr", quick), QUICK_SEEDS if quick else SEEDS, time.perf_counter()
    runs = _runs(data, names, seeds, (*POLICIES, *MIXES), workers, tell)
    groups, cells = _grouped(runs), list[Cell]()
    for (name, policy), mine in groups.items():
        exact = is_recorded(data, name) and seeds == SEEDS
        comparable = data is not None and seeds == SEEDS
        cells += _pwr_cells(name, policy, mine, groups[name, "fgd"], exact, comparable)
    if data is None:
        for policy in (*POLICIES, *MIXES):
            mine, base = ([run for run in runs if run.policy == one] for one in (policy, "fgd"))
            cells += _pwr_cells(GENERATED, policy, mine, base, False, False, "default")
    curves = _pwr_curves(groups, "default" if "default" in names else names[0])
    title = "PWR: power- and fragmentation-aware placement (CCGrid 2025)"
    return _reproduction("pwr", title, data, names, runs, cells, curves, time.perf_counter() - began, PWR.citation)


def _traces(data: Path | None, name: str, quick: bool) -> tuple[str, ...]:
    there = trace_names(data)
    if data is not None:
        there = tuple(trace for trace in TRACES if trace in there and (name == "fgd" or not trace.startswith("cpu")))
        if not there:
            raise ScenarioError(f"--data {data}", "no trace of the paper", f"one of {', '.join(TRACES)}")
    elif name == "pwr":
        there = there[:12]
    return there[:1] if quick else there


def _runs(
    data: Path | None, names: Sequence[str], seeds: int, policies: tuple[str, ...], workers: int, tell: Tell
) -> list[PlacementRun]:
    pending, runs = tasks(data, names, seeds, policies), list[PlacementRun]()
    with executor(workers, len(pending)) as spread:
        for some in spread.map(task_runs, pending):
            runs += some
            if tell is not None:
                tell(len(runs))
    return runs


def run_count(data: Path | None, name: str, quick: bool) -> int:
    """Number of runs of a reproduction."""
    policies = len(POLICIES) + (len(MIXES) if name == "pwr" else 0)
    return len(_traces(data, name, quick)) * (QUICK_SEEDS if quick else SEEDS) * policies


def _grouped(runs: Sequence[PlacementRun]) -> dict[tuple[str, str], list[PlacementRun]]:
    groups: dict[tuple[str, str], list[PlacementRun]] = {}
    for run in runs:
        groups.setdefault((run.trace, run.policy), []).append(run)
    return groups


def _mean(runs: Sequence[PlacementRun], name: str) -> Any:
    return np.mean([run.curves[name] for run in runs], axis=0)


def _fgd_cells(
    name: str, policy: str, runs: Sequence[PlacementRun], exact: bool, comparable: bool, row: str | None = None
) -> list[Cell]:
    rows = published_table("fgd").filter((pl.col("trace") == (row or name)) & (pl.col("policy") == policy))
    printed: Mapping[str, Any] = rows.row(0, named=True) if len(rows) else {}
    mean = _mean(runs, "alloc_pct")
    return [
        cell(ALLOC, name, policy, at, float(mean[at]), published=printed.get(f"alloc_at_{at}_pct"), exact=exact,
             bar=3 * printed["sd_pct"] if printed else None, comparable=comparable)
        for at in (100, LAST_PCT)
    ]  # fmt: skip


def _curve_cells(name: str, policy: str, runs: Sequence[PlacementRun], curves_of: Published) -> list[Cell]:
    """The largest difference of each curve over the seeds; not of ``random``, which draws other numbers."""
    tables = [(run, curves_of.get((POLICIES[policy], name, run.seed))) for run in runs]
    pairs = [(run, table) for run, table in tables if table is not None]
    if not pairs or policy == "random":
        return []
    far = {curve: max(largest(run.curves[curve], table[curve]) for run, table in pairs) for curve in CURVES}
    return [cell(measure, name, policy, None, far[curve], published=0.0) for curve, measure in CURVES.items()]


def _pwr_cells(
    name: str, policy: str, runs: Sequence[PlacementRun], base: Sequence[PlacementRun], exact: bool, comparable: bool,
    row: str | None = None,
) -> list[Cell]:  # fmt: skip
    table = published_table("pwr").filter(pl.col("policy") == policy)
    if not len(table):  # random: it draws other numbers, and its power is not published
        table = published_table("pwr").filter(pl.col("policy") == "fgd").with_columns(original=None, published=None)
    cells = []
    for quantity, at, printed, original in table.select("quantity", "demand", "published", "original").iter_rows():
        has_numbers = (row or name) == "default"
        if not has_numbers and (quantity, at) not in ELSEWHERE:
            continue
        values = [_pwr_value(quantity, at, [one], [other]) for one, other in zip(runs, base, strict=True)]
        bar = 3 * float(np.std(values, ddof=1)) if len(values) > 1 else None  # the figure's own spread over seeds
        ours = _pwr_value(quantity, at, runs, base)
        references = {"published": printed, "original": original} if has_numbers else {}
        cells.append(
            cell(MEASURES[quantity], name, policy, at, ours, bar=bar, exact=exact, comparable=comparable, **references)
        )
    return cells


def _pwr_value(quantity: str, at: float, runs: Sequence[PlacementRun], base: Sequence[PlacementRun]) -> float:
    if quantity == "failed_pods":
        return float(np.mean([run.failed for run in runs]))
    step = round(at / GRID_STEP)
    if quantity == "power_saving_pct":
        return float(power_saving_pct(_mean(base, "power_w"), _mean(runs, "power_w"))[step])
    return float(_mean(runs, quantity)[step])


def _fgd_curves(runs: Sequence[PlacementRun], name: str) -> pl.DataFrame:
    lines = []
    for (trace, policy), mine in _grouped(runs).items():
        if trace == name:
            for curve, title in (("alloc_pct", "GPU allocation (%)"), ("frag_pct", "fragmented GPUs (%)")):
                x = np.arange(LAST_PCT + 1)
                lines.append(
                    points(f"{title[:-4]}, {name}", "arrived demand (%)", title, policy, x, _mean(mine, curve))
                )
    return pl.concat(lines)


def _pwr_curves(groups: Mapping[tuple[str, str], list[PlacementRun]], name: str) -> pl.DataFrame:
    lines, base = [], _mean(groups[name, "fgd"], "power_w")
    for (trace, policy), mine in groups.items():
        if trace == name:
            x = 100 * GRID_STEP * np.arange(len(base))
            saving = power_saving_pct(base, _mean(mine, "power_w"))
            title = "power saved (% of FGD's)"
            lines.append(points(f"Power savings, {name}", "arrived demand (%)", title, policy, x[8:], saving[8:]))
            lines.append(points(f"GRAR, {name}", "arrived demand (%)", "GRAR", policy, x, _mean(mine, "grar")))
    return pl.concat(lines)


def _reproduction(
    name: str, title: str, data: Path | None, traces: Sequence[str], runs: Sequence[PlacementRun], cells: list[Cell],
    curves: pl.DataFrame, wall_s: float, citation: str,
) -> Reproduction:  # fmt: skip
    missing = [trace for trace in TRACES if trace not in traces and (name == "fgd" or not trace.startswith("cpu"))]
    orders = sum(is_recorded(data, trace) for trace in traces)
    source = f"generated pods like openb's: {_trace_count(traces)}, so published figures are a glance only"
    if data is not None:
        source = f"openb's lists: {_trace_count(traces)}, {orders} in the published orders, the others in our own"
        source += f"; not there: {', '.join(missing)}" if missing else ""
    return Reproduction(name, title, source, cell_table(cells), curves, len(runs), wall_s, citation)


def _trace_count(traces: Sequence[object]) -> str:
    return "1 trace" if len(traces) == 1 else f"{len(traces)} traces"

"""Cells of the FGD and PWR papers: published numbers, recorded ones, and curves of every seed, beside our runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from fastsim.experiments.reproduce.placement_figures import (
    GRID_STEP,
    LIMITS,
    MIXES,
    POLICIES,
    PlacementRun,
    Published,
    furthest,
    largest,
    power_saving_pct,
)
from fastsim.experiments.reproduce.published_numbers import number_cell, published_numbers, recorded_numbers
from fastsim.experiments.reproduce.reproduction import Cell, Measure, cell
from fastsim.experiments.statistics.curve_statistics import seeds_bar, statistic

DEFAULT = "default"
"""The trace of figures that name none."""
CURVE_OF = {
    "gpu_allocation": "alloc_pct", "gpu_unallocated": "alloc_pct", "fragmented_gpu_share_of_capacity": "frag_pct",
    "fragmentation_ratio_of_idle_gpu": "frag_ratio_pct",
}  # fmt: skip
"""Curve of a run by the beginning of the published metric."""
DIGITS = {"alloc_pct": 1e-4, "frag_pct": 1e-4, "frag_ratio_pct": 2 * LIMITS["frag_ratio_pct"]}
"""Means of ten values of two digits have four; a ratio is rounded for each pod."""
FIGURE_OF_CURVE = {"alloc_pct": "9a", "frag_pct": "7 (amount)", "frag_ratio_pct": "7 (ratio)"}
POWER_CURVES = {"power_cpu": "power_cpu_w", "power_total": "power_w", "grar": "grar"}
MEASURES = {
    "power_saving_pct": Measure("slides 18", "power_saving_vs_fgd", "%", 0.01),
    "grar": Measure("slides 19", "grar", "ratio", 0.0001),
    "power_w": Measure("slides 14 (Fig. 1)", "power_total", "W", 1.0),
    "failed_pods": Measure("failed pods", "failed_pods", "pods", 0.1),
}  # fmt: skip
ELSEWHERE = {("power_saving_pct", 0.14), ("power_saving_pct", 1.0), ("grar", 1.0), ("failed_pods", 1.3)}
"""Quantity and demand of the cells of traces for which the papers print no numbers."""

FAILED = "9c"
PARTS = {
    "8": Measure("8", "free GPUs at 100 % of arrivals", "% of GPUs", 0.01),
    FAILED: Measure(FAILED, "failed pods", "pods", 0.1),
}  # fmt: skip
"""Measures of parts by figure."""
RANGES, CONSTRAINED = "slides, text", ("gpuspec10", "gpuspec20", "gpuspec25", "gpuspec33")
"""Figure of the ranges in words, and the traces of pods that name GPU models."""
STEADY = (0.1, 0.8)
"""Demands over which savings are averaged beside a range in words, which names none: below them few GPUs are in use,
above them all policies fill the cluster."""

Groups = Mapping[tuple[str, str], Sequence[PlacementRun]]
"""Runs by trace and policy."""


def trace_of(panel: str) -> str:
    """The trace of a panel of a figure."""
    name = panel.split(" ")[0]
    return name if name.startswith(("gpushare", "multigpu", "gpuspec", "cpu")) else DEFAULT


def traces_of(panel: str) -> tuple[str, ...]:
    """The traces of a panel, which may name a family of them."""
    return CONSTRAINED if panel.startswith("constrained") else (trace_of(panel),)


def fgd_cells(
    figures: Sequence[str], groups: Groups, exact: Collection[str], comparable: bool, name: str | None
) -> list[Cell]:
    """Published numbers of the FGD paper; traces in ``exact`` have the published orders, and ``name`` is the trace that
    stands for all of them, if there is one."""
    cells = []
    for row in published_numbers("fgd").filter(pl.col("figure").is_in(figures)).iter_rows(named=True):
        trace = name or trace_of(row["panel"])
        runs, drawn = groups.get((trace, row["series"])), row["series"] == "random"
        if runs:
            cells.append(_fgd_cell(row, runs, trace in exact and not drawn, comparable, trace))
    return cells


def _fgd_cell(row: Mapping[str, Any], runs: Sequence[PlacementRun], exact: bool, comparable: bool, trace: str) -> Cell:
    stem, what = next((stem, row["metric"].removeprefix(f"{stem}_")) for stem in CURVE_OF if stem in row["metric"])
    what = what.removesuffix(" (the bar)")
    values = np.array([run.curves[CURVE_OF[stem]][int(row["x"])] for run in runs])
    values = 100 - values if stem == "gpu_unallocated" else values
    return number_cell(
        row, statistic(what, values), case=trace, bar=None if exact else seeds_bar(what, values, row["value"]),
        exact=exact, comparable=comparable, digit=DIGITS[CURVE_OF[stem]],
    )  # fmt: skip


def curve_cells(
    figures: Sequence[str], name: str, policy: str, runs: Sequence[PlacementRun], curves_of: Published
) -> list[Cell]:
    """Each curve at the demand at which it is furthest from the published one, over the seeds; not of ``random``, which
    draws other numbers."""
    tables = [(run, curves_of.get((POLICIES[policy], name, run.seed))) for run in runs]
    pairs = [(run, table) for run, table in tables if table is not None]
    if not pairs or policy == "random":
        return []
    cells = []
    for curve, limit in LIMITS.items():
        figure = FIGURE_OF_CURVE[curve] if name == DEFAULT else figure_of(name)
        if figure in figures:
            run, table = max(pairs, key=lambda pair: largest(pair[0].curves[curve], pair[1][curve]))
            at = furthest(run.curves[curve], table[curve])
            measure = Measure(figure, f"{curve} where it is furthest", "%", 2 * limit)
            cells.append(cell(measure, f"{name}, seed {run.seed}", policy, float(table["arrive_pct"][at]),
                              float(run.curves[curve][at]), published=float(table[curve][at])))  # fmt: skip
    return cells


def part_cells(
    figures: Sequence[str], name: str, policy: str, runs: Sequence[PlacementRun], failures: Mapping[Any, float]
) -> list[Cell]:
    """Parts of free GPUs and failed pods by kind, means over seeds; ``failures`` are the published numbers of pods."""
    kinds = dict.fromkeys(key for run in runs for key in run.parts if key[0] in PARTS and key[0] in figures)
    cells = []
    for figure, kind in kinds:
        values = [run.parts.get((figure, kind), 0.0) for run in runs]
        measure = PARTS[figure]._replace(quantity=f"{PARTS[figure].quantity}, {kind}")
        published = failures.get((POLICIES[policy], name, kind)) if figure == FAILED else None
        cells.append(cell(measure, name, policy, None, float(np.mean(values)), published=published,
                          bar=seeds_bar("mean", np.array(values)), exact=policy != "random"))  # fmt: skip
    return cells


def figure_of(trace: str) -> str:
    """The FGD paper's figure of a trace."""
    figures = {"gpushare": "11", "multigpu": "12", "gpuspec": "13", "cpu": "14"}
    return next((figure for start, figure in figures.items() if trace.startswith(start)), "default trace")


def pwr_cells(
    figures: Sequence[str], groups: Groups, exact: Collection[str], comparable: bool, name: str | None
) -> list[Cell]:
    """Numbers on the PWR paper's slides; most are read from pixels, so each has its own tolerance."""
    cells = []
    for row in published_numbers("pwr").filter(pl.col("figure").is_in(figures)).iter_rows(named=True):
        if row["figure"] == RANGES:
            cells += _range_cells(row, groups, name)
            continue
        trace = name or trace_of(row["panel"])
        runs, base = groups.get((trace, row["series"])), groups.get((trace, "fgd"))
        if runs and base:
            values = [_slide_value(row, [one], [other]) for one, other in zip(runs, base, strict=True)]
            bar = None if trace in exact else seeds_bar("mean", values)
            ours = _slide_value(row, runs, base)
            cells.append(number_cell(row, ours, case=trace, bar=bar, comparable=comparable))
    return cells


def _range_cells(row: Mapping[str, Any], groups: Groups, name: str | None) -> list[Cell]:
    """The least or the largest of the savings of PWR and its mixtures, each averaged over the usual demands."""
    first, last = (round(end / GRID_STEP) for end in STEADY)
    savings = [
        float(power_saving_pct(mean_curve(base, "power_w"), mean_curve(runs, "power_w"))[first : last + 1].mean())
        for trace in ((name,) if name else traces_of(row["panel"])) for policy in MIXES
        if (runs := groups.get((trace, policy))) and (base := groups.get((trace, "fgd")))
    ]  # fmt: skip
    ours = min if row["metric"].endswith("low") else max
    return [number_cell(row, ours(savings), comparable=False)] if savings else []


def _slide_value(row: Mapping[str, Any], runs: Sequence[PlacementRun], base: Sequence[PlacementRun]) -> float:
    if row["metric"] in POWER_CURVES:
        values = mean_curve(runs, POWER_CURVES[row["metric"]])
    else:
        values = power_saving_pct(mean_curve(base, "power_w"), mean_curve(runs, "power_w"))
    return float(np.interp(float(row["x"]), GRID_STEP * np.arange(len(values)), values))


def recorded_cells(
    figures: Sequence[str], name: str, policy: str, runs: Sequence[PlacementRun], base: Sequence[PlacementRun],
    exact: bool, comparable: bool, compared: bool,
) -> list[Cell]:  # fmt: skip
    """Our quantities at round demands, beside those of recorded runs of the original where ``compared``."""
    table = recorded_numbers("pwr").filter(policy=policy)
    if not len(table):  # policies that were not recorded
        table = recorded_numbers("pwr").filter(policy="fgd").with_columns(value=None)
    cells = []
    for quantity, at, recorded in table.select("quantity", "demand", "value").iter_rows():
        measure = _measure(quantity, policy)
        if (not compared and (quantity, at) not in ELSEWHERE) or measure.figure not in figures:
            continue
        values = [pwr_value(quantity, at, [one], [other]) for one, other in zip(runs, base, strict=True)]
        ours, original = pwr_value(quantity, at, runs, base), recorded if compared else None
        bar = seeds_bar("mean", values)
        cells.append(cell(measure, name, policy, at, ours, bar=bar, exact=exact, comparable=comparable,
                          original=original))  # fmt: skip
    return cells


def _measure(quantity: str, policy: str) -> Measure:
    """The measure, on the slide that shows this policy."""
    slides = {"power_saving_pct": "slides 15", "grar": "slides 17"} if policy in MIXES else {}
    return MEASURES[quantity]._replace(figure=slides.get(quantity, MEASURES[quantity].figure))


def pwr_value(quantity: str, at: float, runs: Sequence[PlacementRun], base: Sequence[PlacementRun]) -> float:
    """A quantity at a demand, averaged over seeds; ``base`` are the runs of FGD."""
    if quantity == "failed_pods":
        return float(np.mean([run.failed for run in runs]))
    step = round(at / GRID_STEP)
    if quantity == "power_saving_pct":
        return float(power_saving_pct(mean_curve(base, "power_w"), mean_curve(runs, "power_w"))[step])
    return float(mean_curve(runs, quantity)[step])


def mean_curve(runs: Sequence[PlacementRun], name: str) -> Any:
    """A curve averaged over seeds."""
    return np.mean([run.curves[name] for run in runs], axis=0)

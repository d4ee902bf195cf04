"""The ranking of runs in memory and in folders, by policy or by what else they differ in."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from fastsim.engine.result import Result
from fastsim.experiments.statistics.ranking import winners
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.option_texts import elements
from fastsim.reports.charts.series import candidate_name, series_of
from fastsim.reports.report import RUNS, named_runs

if TYPE_CHECKING:
    from fastsim.reports.report import Runs


@whole_process
def stats(
    runs: Runs, metric: str = "jct_mean_s", *, names: Sequence[str] | None = None, higher: bool | None = None,
    level: float = 0.95, method: str = "t", equivalence: float | None = None,
) -> pl.DataFrame:  # fmt: skip
    """Policies in the order of a figure's mean over seeds, the best first, with intervals and verdicts.

    ``runs`` are results, folders of saved runs, or both. Runs that differ in their seeds only are one candidate, as are
    those of equal ``names``; candidates are compared pair by pair over runs with the same workload and seed.
    Failed runs of a sweep whose folder is given count as failed, under the values of its axes. ``equivalence`` is the
    part of the best mean within which two candidates tie. Columns and verdicts are those of
    :func:`fastsim.experiments.statistics.ranking.winners`.
    """
    return winners(
        run_figures(runs, metric, names), metric, over="run", pairs=KEYS, higher=higher, level=level, method=method,
        equivalence=equivalence,
    )  # fmt: skip


KEYS = ("seed", "workload")
"""Columns that two runs of a pair have in common."""


def run_figures(runs: Runs, metric: str, names: Sequence[str] | None = None) -> pl.DataFrame:
    """A row for each run: its candidate (``run``), seed, the checksum of its workload, and a figure of its summary."""
    results, given = named_runs("stats", runs, names)
    rows = [(one.name, *_key(run), _figure(run, metric)) for one in series_of(results, given) for run in one.runs]
    rows += [(*failed, "", None) for failed in _failed_runs(runs)] if names is None else []
    kinds = {"run": pl.String, "seed": pl.String, "workload": pl.String, metric: pl.Float64}
    return pl.DataFrame(rows, kinds, orient="row")


def _failed_runs(runs: Runs) -> Iterator[tuple[str, str]]:
    """Candidate and seed of each run that failed in the sweeps among these folders."""
    from fastsim.experiments.sweep.run import ERROR, TABLE, sweep_table

    for folder in elements("stats", runs, RUNS, alone=(str, os.PathLike, Result)):
        if isinstance(folder, Result) or not (Path(folder) / TABLE).is_file():
            continue
        table, axes = sweep_table(folder)
        names = [name for name in axes if name != "seed" and table[name].n_unique() > 1]
        for row in table.filter(pl.col(ERROR).is_not_null()).to_dicts() if ERROR in table.columns else ():
            yield candidate_name({name: str(row[name]) for name in axes}, names), str(row.get("seed", ""))


def _key(run: Result) -> tuple[str, str]:
    provenance = run.provenance
    seed, workload = provenance.get("options", {}).get("seed", ""), provenance.get("workload", {})
    return str(seed), str(workload.get("sha256", ""))


def _figure(run: Result, metric: str) -> float | None:
    value = run.summary[metric][0] if metric in run.summary.columns else None
    return None if value is None else float(value)

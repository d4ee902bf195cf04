"""The ranking of runs in memory and in folders, by policy or by what else they differ in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from fastsim.experiments.statistics.ranking import winners
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.reports.charts.series import series_of
from fastsim.reports.report import named_runs

if TYPE_CHECKING:
    from fastsim.engine.result import Result
    from fastsim.reports.report import Runs


@whole_process
def stats(
    runs: Runs, metric: str = "jct_mean_s", *, names: Sequence[str] | None = None, higher: bool | None = None,
    level: float = 0.95, method: str = "t", equivalence: float | None = None,
) -> pl.DataFrame:  # fmt: skip
    """Policies in the order of a figure's mean over seeds, the best first, with intervals and verdicts.

    ``runs`` are results, folders of saved runs, or both. Runs that differ in their seeds only are one candidate, as are
    those of equal ``names``; candidates are compared pair by pair over runs with the same workload and seed.
    ``equivalence`` is the part of the best mean within which two candidates tie. Columns and verdicts are those of
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
    kinds = {"run": pl.String, "seed": pl.String, "workload": pl.String, metric: pl.Float64}
    return pl.DataFrame(rows, kinds, orient="row")


def _key(run: Result) -> tuple[str, str]:
    provenance = run.provenance
    seed, workload = provenance.get("options", {}).get("seed", ""), provenance.get("workload", {})
    return str(seed), str(workload.get("sha256", ""))


def _figure(run: Result, metric: str) -> float | None:
    value = run.summary[metric][0] if metric in run.summary.columns else None
    return None if value is None else float(value)

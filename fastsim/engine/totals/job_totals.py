"""Totals of the jobs of a run: restarts, pauses, slowdown, GPU hours, cost, and evenness between tenants.

Every engine fills a :class:`JobTotals`, and ``summary_row`` makes the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from fastsim.engine.totals.exact_percentiles import ExactPercentiles

FIGURES = (
    "restarts", "paused_mean_s", "slowdown_mean", "slowdown_p50", "slowdown_p99", "gpu_hours", "goodput_pct", "cost",
    "tenant_jain", "tenant_gini",
)  # fmt: skip
"""Columns of the summary, after ``makespan_s``."""
JOB_COLUMNS = ("restarts", "paused_s", "gpu_hours", "ideal_s", "slowdown")
"""Columns of the table ``jobs``."""
HOUR_S = 3600.0
BRIEFEST_S = 1e-9
"""The shortest ideal time with a slowdown: quotients of shorter ones are no numbers to average, and may be infinite."""
ROUNDING = 1e-9
"""Part of a sum by which another order of its parts changes it at most."""

Array = Any


@dataclass(frozen=True)
class JobTotals:
    """Totals of a run; None where an engine or a workload does not have them.

    ``restarts`` starts of stays other than a job's first · ``paused_mean_s`` seconds without GPUs between first start
    and end, mean over finished jobs · ``slowdown`` completion over ideal time of finished jobs · ``gpu_s`` GPU seconds
    held · ``wasted_gpu_s`` those of restart delays and of work thrown away · ``cost`` $ · ``tenant_gpu_s`` GPU seconds
    of each tenant that had a job.
    """

    restarts: int | None = None
    paused_mean_s: float | None = None
    slowdown: ExactPercentiles | None = None
    gpu_s: float | None = None
    wasted_gpu_s: float | None = None
    cost: float | None = None
    tenant_gpu_s: Array | None = None

    @classmethod
    def of_jobs(
        cls, *, restarts: Array | None = None, paused_s: Array | None = None, slowdown: Array | None = None,
        gpu_s: float | None = None, wasted_gpu_s: float | None = None, cost: float | None = None,
        tenant_gpu_s: Array | None = None,
    ) -> JobTotals:  # fmt: skip
        """Totals from columns of jobs: ``restarts`` of those that count, ``paused_s`` and ``slowdown`` of finished
        ones, NaN where there is none.
        """
        paused = None if paused_s is None else known(paused_s)
        ratios = None
        if slowdown is not None:
            ratios = ExactPercentiles()
            ratios.add(known(slowdown))
        return cls(
            None if restarts is None else int(np.sum(restarts)),
            None if paused is None or not len(paused) else float(paused.mean()),
            ratios, gpu_s, wasted_gpu_s, cost, tenant_gpu_s,
        )  # fmt: skip

    def figures(self) -> dict[str, Any]:
        """The columns of the summary."""
        hours = None if self.gpu_s is None else self.gpu_s / HOUR_S
        tenants = self.tenant_gpu_s
        values = (
            self.restarts, self.paused_mean_s, *self._slowdown(), hours, self._goodput_pct(), self.cost,
            None if tenants is None else evenness(tenants), None if tenants is None else inequality(tenants),
        )  # fmt: skip
        return dict(zip(FIGURES, values, strict=True))

    def _slowdown(self) -> tuple[float | None, float | None, float | None]:
        """Mean, median and 99th percentile."""
        if self.slowdown is None or not self.slowdown.count:
            return None, None, None
        half, most = self.slowdown.percentiles((50, 99))
        return self.slowdown.total() / self.slowdown.count, half, most

    def _goodput_pct(self) -> float | None:
        """The part of the GPU time held in which work was done that was not thrown away, percent."""
        if not self.gpu_s or self.wasted_gpu_s is None:
            return None
        useful_s = self.gpu_s - self.wasted_gpu_s
        # All of it was in vain where sums in two orders differ by rounding.
        return 0.0 if -ROUNDING * self.gpu_s < useful_s < 0 else 100 * useful_s / self.gpu_s


UNKNOWN = JobTotals()
"""No totals."""


def evenness(parts: Array) -> float | None:
    """Jain's index, (sum x)^2 / (n sum x^2): 1 if all have the same, 1/n if one has all; None if all are 0."""
    squares = float(np.dot(parts, parts))
    return float(np.sum(parts)) ** 2 / (len(parts) * squares) if squares else None


def inequality(parts: Array) -> float | None:
    """Gini's coefficient: 0 if all have the same, 1 - 1/n if one has all; None if all are 0."""
    ordered, total, n = np.sort(parts), float(np.sum(parts)), len(parts)
    if not total:
        return None
    return float(np.dot(np.arange(1 - n, n + 1, 2), ordered)) / (n * total)


def slowdowns(jct_s: Array, ideal_s: Array) -> Array:
    """Completion over ideal time; NaN without an end, and where the ideal time is below `BRIEFEST_S` or unknown."""
    jct, ideal = np.asarray(jct_s, np.float64), np.asarray(ideal_s, np.float64)
    return np.divide(jct, ideal, out=np.full(len(jct), np.nan), where=ideal >= BRIEFEST_S)


def job_columns(
    restarts: Array | Sequence[int], paused_s: Array | Sequence[float], gpu_s: Array | Sequence[float],
    ideal_s: Array | Sequence[float], jct_s: Array | Sequence[float],
) -> dict[str, pl.Series]:  # fmt: skip
    """The columns of ``jobs`` by name; seconds are NaN where there are none, ``gpu_s`` are GPU seconds."""
    ratios = slowdowns(np.asarray(jct_s, np.float64), np.asarray(ideal_s, np.float64))
    values = (np.asarray(paused_s, np.float64), np.asarray(gpu_s, np.float64) / HOUR_S, ideal_s, ratios)
    columns = [pl.Series(np.asarray(restarts, np.int32))]
    columns += [pl.Series(np.asarray(value, np.float64), nan_to_null=True) for value in values]
    return {name: column.alias(name) for name, column in zip(JOB_COLUMNS, columns, strict=True)}


def known(values: Array) -> Array:
    """The values that are not NaN."""
    numbers = np.asarray(values, np.float64)
    return np.ascontiguousarray(numbers[~np.isnan(numbers)])

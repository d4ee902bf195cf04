"""The training curve of an application: epochs, iterations, and the noise of its gradients.

Recorded at some batch sizes, one row an epoch; between two of them every quantity is linear in the batch size. Progress
counts iterations as if the batch had kept its initial size, and all batch sizes share one axis of it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fastsim.errors import InputError

Floats = npt.NDArray[np.float64]


class EpochRow(NamedTuple):
    """The end of one epoch (from 0) at one batch size: progress and iterations so far, a metric, gradients."""

    batch_size: int
    epoch: int
    progress: float
    iteration: float
    metric: float
    grad_sqr: float
    grad_var: float


class TrainingCurve:
    """Recorded training of one application; epochs count from 0."""

    def __init__(self, name: str, rows: Iterable[EpochRow]) -> None:
        self.name, self.rows = name, tuple(rows)
        by_batch: dict[int, list[EpochRow]] = {}
        for row in self.rows:
            by_batch.setdefault(row.batch_size, []).append(row)
        if not by_batch:
            raise InputError(name, "no recorded epoch", "one or more")
        self.batches = tuple(sorted(by_batch))
        """Recorded batch sizes, samples."""
        self.epochs = len(by_batch[self.batches[0]])
        """Epochs that make a finished job."""
        for batch, part in by_batch.items():
            part.sort(key=lambda row: row.epoch)
            _check(f"{name}: batch size {batch}", part, self.epochs)
        columns = list(zip(*([row[2:] for row in by_batch[batch]] for batch in self.batches), strict=True))
        table: Floats = np.array(columns, np.float64)  # epoch, batch size, quantity
        self._progress_e: list[float] = [0.0, *table[:, :, 0].min(axis=1).tolist()]
        self._iteration_eb, self._metric_eb, self._sqr_eb, self._var_eb = (table[:, :, q].tolist() for q in range(1, 5))

    @property
    def init_batch(self) -> int:
        """Smallest recorded batch size, with which users would start, samples."""
        return self.batches[0]

    @property
    def max_batch(self) -> int:
        """Largest recorded batch size, samples."""
        return self.batches[-1]

    def progress(self, epochs: int) -> float:
        """Progress after so many epochs, in iterations of the initial batch size."""
        return self._progress_e[epochs]

    def epoch_of(self, progress: float) -> int:
        """Epochs that are over at this progress."""
        return min(bisect_right(self._progress_e, progress) - 1, self.epochs)

    def gradients(self, batch: float, epoch: int) -> tuple[float, float]:
        """Squared norm and variance of gradients in an epoch."""
        lo, hi = self._around(batch)
        return self._between(self._sqr_eb[epoch], batch, lo, hi), self._between(self._var_eb[epoch], batch, lo, hi)

    def iteration(self, batch: float, epoch: int) -> float:
        """Iterations at the end of an epoch."""
        return self._between(self._iteration_eb[epoch], batch, *self._around(batch))

    def iteration_at(self, batch: float, epoch: int, progress: float) -> int:
        """Whole iterations at some progress within an epoch."""
        before = self.iteration(batch, epoch - 1) if epoch else 0.0
        after = self.iteration(batch, epoch)
        start, end = self._progress_e[epoch], self._progress_e[epoch + 1]
        return round(before + (after - before) * (progress - start) / (end - start))

    def best_metric(self, batch: float, epochs: int) -> float | None:
        """Best metric within so many epochs; None before the first."""
        if not epochs:
            return None
        first = [at[0] for at in self._metric_eb]
        best = max if first[-1] > first[0] else min
        running = [best(column) for column in zip(*self._metric_eb[:epochs], strict=True)]
        return self._between(running, batch, *self._around(batch))

    def _around(self, batch: float) -> tuple[int, int]:
        """Positions of the recorded batch sizes on both sides, equal where it was recorded itself."""
        if not self.init_batch <= batch <= self.max_batch:
            expected = f"{self.init_batch} to {self.max_batch} samples"
            raise InputError(f"{self.name}: batch size", f"{batch:g}", expected)
        hi = bisect_left(self.batches, batch)
        return (hi, hi) if self.batches[hi] == batch else (hi - 1, hi)

    def _between(self, values: list[float], batch: float, lo: int, hi: int) -> float:
        if lo == hi:
            return values[lo]
        low, high = self.batches[lo], self.batches[hi]
        return ((batch - low) * values[hi] + (high - batch) * values[lo]) / (high - low)


def _check(where: str, rows: list[EpochRow], epochs: int) -> None:
    if rows[0].batch_size < 1:
        raise InputError(where, rows[0].batch_size, "1 sample or more")
    if [row.epoch for row in rows] != list(range(epochs)):
        raise InputError(where, f"{len(rows)} epochs", f"{epochs}, each of them once, as at every batch size")
    before = 0.0, 0.0
    for row in rows:
        at = f"{where}: epoch {row.epoch}"
        if not (before[0] < row.progress < np.inf and before[1] < row.iteration < np.inf):
            raise InputError(at, f"progress {row.progress}, iteration {row.iteration}", f"more than {before}")
        if not (0 <= row.grad_sqr < np.inf and 0 <= row.grad_var < np.inf and np.isfinite(row.metric)):
            raise InputError(at, row[4:], "a metric, and a norm and a variance of 0 or more")
        before = row.progress, row.iteration

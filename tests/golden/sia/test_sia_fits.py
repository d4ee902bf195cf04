"""The recorded fits of the Sia simulator, to the last bit.

A search that stops as early as these stops where last bits let it: with slopes that are wrong in them, one in four ends
elsewhere. So the loss takes its sums as recorded and the search its products, and what is left is the C library's
logarithms and powers.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from fastsim.performance.goodput import Perf
from fastsim.performance.step_time_fit import Observation, fitted, loss
from tests.golden.sia.sia import SIA, lines, recorded
from tests.reference.rounds import goodput as by_hand

FITS = sorted(path.name for form in ("fit_*", "perf_fit*") for path in (SIA / "functions").glob(form))
GRID = [(1, 1), (1, 2), (1, 4), (2, 8), (4, 16)]
"""Nodes and GPUs at which predictions are compared."""
pytestmark = pytest.mark.skipif(not FITS, reason="reference data not found (set FASTSIM_SHARED)")

Recorded = tuple[list[Observation], Perf]


@cache
def fits(path: Path) -> list[Recorded]:
    """Observations and fitted parameters."""
    if path.suffix == ".jsonl":
        names = ("num_nodes", "num_replicas", "atomic_bsz", "accum_step_time", "optim_step_time")
        rows = [([row[name] for name in names], Perf(*row["params"])) for row in lines(path)]
    else:
        names = ("num_nodes", "num_replicas", "atomic_bsz", "step_time", "sync_time")
        rows = []
        for row in recorded(path).iter_rows(named=True):
            *sizes, step_s, sync_s = (row[name] for name in names)
            turn_s = [step - sync for step, sync in zip(step_s, sync_s, strict=True)]
            rows.append(([*sizes, turn_s, step_s], Perf(*(row[name] for name in Perf._fields))))
    some = rows[::10] if os.environ.get("FASTSIM_QUICK") and len(rows) > 1000 else rows
    return [([Observation(*at) for at in zip(*columns, strict=True)], perf) for columns, perf in some]


def off(found: Perf, perf: Perf, configurations: list[tuple[int, int, int]]) -> list[float]:
    """Relative differences of predicted step times."""
    rates = [[by_hand.throughput(p, n, k, m, 0) for n, k, m in configurations] for p in (found, perf)]
    return [abs(one / other - 1) for one, other in zip(*rates, strict=True)]


@pytest.mark.parametrize("name", FITS)
def test_every_fit_is_the_recorded_one(name: str, shared: Callable[[str], Path]) -> None:
    rows = fits(shared("golden/sia/functions") / name)
    other = [row for row, (observed, perf) in enumerate(rows) if fitted(observed) != perf]
    assert rows and other == []


@pytest.mark.parametrize("name", FITS)
def test_losses(name: str, shared: Callable[[str], Path]) -> None:
    rows = fits(shared("golden/sia/functions") / name)
    excess = np.array([loss(observed, fitted(observed)) - loss(observed, perf) for observed, perf in rows])
    assert np.percentile(excess, 99) <= 1e-5  # the recordings' own bars
    assert excess.max() <= 1e-3


@pytest.mark.parametrize("name", FITS)
def test_predicted_step_times(name: str, shared: Callable[[str], Path]) -> None:
    seen, grid = [], []
    for observed, perf in fits(shared("golden/sia/functions") / name):
        found = fitted(observed)
        seen += off(found, perf, [at[:3] for at in observed])
        grid += off(found, perf, [(n, k, m) for n, k in GRID for m in sorted({at.atomic for at in observed})])
    for differences in (seen, grid):
        assert np.percentile(differences, 95) <= 1e-5  # the recordings' own bars
        assert np.percentile(differences, 99) <= 1e-3
    assert max(seen) <= 0.02

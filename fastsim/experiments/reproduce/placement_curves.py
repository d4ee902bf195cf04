"""The curves of the two placement papers, with their own rounding and interpolation rules.

The FGD paper tabulates allocation and fragmentation at whole per cents of arrived GPU demand
(:func:`discrete_table`); the PWR paper interpolates power and GRAR on a grid of arrived demand
(:func:`interpolated`). Inputs are the columns of a result's timeline, one value for each pod.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Numbers = npt.ArrayLike

LAST_PCT = 130
"""Arrived demand at the end of the FGD protocol, in per cent of the cluster's GPU capacity."""

GRID_STEP = 0.005
"""Distance of the PWR paper's grid points, as a fraction of the cluster's GPU capacity."""


def discrete_table(
    arrived_gpu_milli: Numbers, gpu_milli_alloc: Numbers, frag_milli: Numbers, idle_milli: Numbers, total_gpus: int
) -> dict[str, npt.NDArray[np.generic]]:
    """FGD-paper table: one row for each whole per cent of arrived demand, 0 to 130.

    ``idle_milli`` is all free milli-GPU (the sum of the seven fragmentation classes). Columns:
    ``arrive_pct``, ``alloc_pct`` and ``frag_pct`` (of the cluster's GPUs) and ``frag_ratio_pct`` (of the
    idle milli-GPU). A per cent no step falls on takes the steps one per cent around it; without any, NaN.
    """
    capacity_pct = total_gpus * 10.0
    arrive = np.rint(_floats(arrived_gpu_milli) / capacity_pct).astype(np.int64)
    alloc: Floats = np.round(_floats(gpu_milli_alloc) / capacity_pct, 2)
    frag, idle = _floats(frag_milli), _floats(idle_milli)
    ratio = np.round(100 * np.divide(frag, idle, out=np.zeros_like(frag), where=idle > 0), 2)
    percents = np.arange(LAST_PCT + 1)
    frag_mean = _means(np.round(frag, 2), arrive, percents)
    return {
        "arrive_pct": percents,
        "alloc_pct": np.round(_means(alloc, arrive, percents), 2),
        "frag_pct": np.round(100 * frag_mean / 1000 / total_gpus, 2),
        "frag_ratio_pct": _means(ratio, arrive, percents),
    }


def interpolated(
    arrived_gpu_milli: Numbers, values: Numbers, capacity_milli: int, last: float = 1.0
) -> tuple[Floats, Floats]:
    """PWR-paper curve: ``values`` over arrived demand (fraction of capacity) on the grid 0, 0.005, … ``last``.

    Interpolation is linear by position among grid points and steps, not by distance, as in the paper's
    notebook; the first of several equal demands counts.
    """
    x, first = np.unique(_floats(arrived_gpu_milli) / capacity_milli, return_index=True)
    y = _floats(values)[first]
    grid: Floats = np.arange(round(last / GRID_STEP) + 1, dtype=np.float64) * GRID_STEP
    union = np.union1d(x, grid)
    known = np.searchsorted(union, x)
    by_position = np.interp(np.arange(len(union)), known, y)
    return grid, by_position[np.searchsorted(union, grid)]


def power_saving_pct(reference_w: Numbers, power_w: Numbers) -> Floats:
    """How much less power is drawn than by the reference (FGD in the paper), in per cent of the reference."""
    reference = _floats(reference_w)
    saving: Floats = 100 * (reference - _floats(power_w)) / reference
    return saving


def grar(gpu_milli_alloc: Numbers, arrived_gpu_milli: Numbers) -> Floats:
    """GPU resource allocation ratio: allocated over arrived milli-GPU; 1 before any demand has arrived."""
    alloc, arrived = _floats(gpu_milli_alloc), _floats(arrived_gpu_milli)
    ratio: Floats = np.divide(alloc, arrived, out=np.ones_like(alloc), where=arrived > 0)
    return ratio


def averaged(curves: Sequence[Mapping[str, Numbers]]) -> dict[str, Floats]:
    """Mean of tables with the same columns over seeds."""
    return {name: np.mean([_floats(curve[name]) for curve in curves], axis=0) for name in curves[0]}


def _floats(values: Numbers) -> Floats:
    return np.asarray(values, dtype=np.float64)


def _means(values: Floats, arrive: npt.NDArray[np.int64], percents: npt.NDArray[np.int64]) -> Floats:
    """Mean of the values at each per cent, or around it where there is none."""
    means: Floats = np.full(len(percents), np.nan)
    order = np.argsort(arrive, kind="stable")
    ranked = arrive[order]
    edges = np.arange(percents[0] - 1, percents[-1] + 3)
    first = np.searchsorted(ranked, edges).tolist()  # of each whole per cent, from the one below the first
    for i in range(len(percents)):
        below, here, after, above = first[i : i + 4]
        # Values are added in their own order: the last bits of a sum depend on it.
        chosen = values[order[here:after]] if here < after else values[np.sort(order[below:above])]
        if len(chosen):
            means[i] = np.add.reduce(chosen) / len(chosen)
    return means

"""The one row that sums up a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fastsim.engine.checkpoints.state import SPANS
from fastsim.engine.tables import FRAG_COLUMNS
from fastsim.engine.totals.exact_percentiles import ExactPercentiles
from fastsim.engine.totals.job_totals import UNKNOWN, JobTotals
from fastsim.errors import ResultError
from fastsim_ext.state.pod_outcomes import spans_of

WHOLE = ("preemptions", "restarts")
"""Figures that are integers even where they are null."""

ROUNDING = 1e-6
"""How far below 0 the difference of two rounded sums may lie."""

Row = Any


class Waits:
    """Values of pods, in the order of their ends: waiting, completion, and the cost of stopping pods.

    ``wait`` of pods that started · ``jct``, ``slowdown`` and ``paused`` (those above 0) of pods that finished ·
    ``lost`` seconds of work discarded by stops · ``wasted`` GPU seconds of that and of restart delays. ``preemptions``
    counts stops for more important pods, ``restarts`` later starts.
    """

    def __init__(self, folder: Path | None = None, counts: Mapping[str, int] | None = None) -> None:
        """In memory and temporary files, or in ``folder`` after the ``counts`` values of an earlier start."""
        self.spans = {
            name: ExactPercentiles(
                None if folder is None else folder / f"{name}.f8", None if counts is None else counts[name]
            )
            for name in SPANS
        }
        self.wait, self.jct, self.lost, self.slowdown, self.paused, self.wasted = self.spans.values()
        self.preemptions: int | None = None if counts is None else counts["preemptions"]
        self.restarts: int | None = None if counts is None else counts["restarts"]

    def add(self, out: Any) -> None:
        """Add outcome rows, in the order in which the loop wrote them."""
        room = self.room(len(out))
        self.take(room, *spans_of(np.ascontiguousarray(out).view(np.uint8), room))

    def room(self, count: int) -> Any:
        """An empty array for the values of so many outcome rows."""
        return np.empty((len(SPANS), count))

    def take(self, room: Any, counts: Sequence[int], preemptions: int, restarts: int) -> None:
        """Add the first ``counts`` values of each row, in the order of ``SPANS``, and counts of stops."""
        for spans, values, count in zip(self.spans.values(), room, counts, strict=True):
            spans.add(values[:count].copy())
        self.preemptions = (self.preemptions or 0) + preemptions
        self.restarts = (self.restarts or 0) + restarts

    def durable(self) -> dict[str, int]:
        """Flush all values to the files; the number of values of each, and counts of stops."""
        for spans in self.spans.values():
            spans.secure()
        counts = {name: spans.count for name, spans in self.spans.items()}
        return counts | {"preemptions": self.preemptions or 0, "restarts": self.restarts or 0}

    def figures(self) -> dict[str, float | None]:
        """Mean, percentiles and maximum of waits and completion times; None without a pod."""
        return {
            **self.wait.figures("wait"), **self.jct.figures("jct"), "preemptions": self.preemptions,
            "lost_work_s": None if self.preemptions is None else self.lost.total(),
        }  # fmt: skip

    def totals(self, gpu_s: float) -> JobTotals:
        """Totals of the pods, which held so many GPU seconds."""
        if self.restarts is None:
            return JobTotals(gpu_s=gpu_s)
        paused_mean_s = self.paused.total() / self.jct.count if self.jct.count else None
        return JobTotals(self.restarts, paused_mean_s, self.slowdown, gpu_s, self.wasted.total())

    def close(self) -> None:
        """Release memory and files."""
        for spans in self.spans.values():
            spans.close()


def summary_frame(
    final: Row, at_capacity: Row, areas: dict[str, float], seconds: float,
    typical_counts: tuple[int, int], waits: Waits, totals: JobTotals = UNKNOWN,
) -> pl.DataFrame:  # fmt: skip
    """Counts, state at the end, state when arrived demand reached the GPU capacity, means over time, waits, totals.

    ``seconds`` is the time from the first arrival to the last event, ``areas["seconds"]`` that from the first event;
    means over time are null without it.
    ``typical_count`` is the typical pods' total count at the end and during the main run.
    """
    return row_frame(
        summary_row(
            final=final,
            at_capacity=at_capacity,
            areas=areas,
            seconds=seconds,
            typical_counts=typical_counts,
            waits=waits,
            totals=totals,
        )
    )


def summary_row(
    final: Row, at_capacity: Row, areas: dict[str, float], seconds: float,
    typical_counts: tuple[int, int], waits: Waits, totals: JobTotals = UNKNOWN,
) -> dict[str, Any]:  # fmt: skip
    """The row of ``summary_frame``."""
    at_end, during = typical_counts
    return {
        **_counts(final), **_state(final, at_end),
        **{f"at_capacity_{key}": value for key, value in _at_capacity(at_capacity, during).items()},
        **_means(areas, during), **waits.figures(), "makespan_s": seconds,
        **totals.figures(),
    }  # fmt: skip


def row_frame(row: dict[str, Any]) -> pl.DataFrame:
    """One row; a figure that is not known is a null among numbers, never a column of its own type."""
    whole = {name for name, value in row.items() if isinstance(value, int)} | set(WHOLE)
    kinds = {name: pl.Int64 if name in whole else pl.Float64 for name in row}
    return pl.DataFrame([row], schema=kinds)


def refuse_impossible(summary: pl.DataFrame) -> None:
    """ResultError if a figure is negative or not finite: all of them are counts, shares, times, watts or costs."""
    for name, value in summary.row(0, named=True).items():
        if isinstance(value, int | float) and not -ROUNDING <= value < math.inf:
            raise ResultError(
                f"summary: {name}: found {value}, expected a finite number of 0 or more; amounts or times of the run "
                "are beyond what its numbers can hold, or fastsim is wrong"
            )


def _counts(row: Row) -> dict[str, int]:
    names = ("running", "pending", "finished", "unplaced", "lost")
    counts = {f"pods_{name}": int(row[name]) for name in names}
    arrived = sum(counts.values())
    return {
        "pods": arrived, **counts,
        "arrived_gpu_milli": int(row["arrived_gpu"]), "arrived_cpu_milli": int(row["arrived_cpu"]),
        "failed_gpu_milli": int(row["unplaced_gpu"]), "failed_cpu_milli": int(row["unplaced_cpu"]),
    }  # fmt: skip


def frag_milli(row: Row, typical_count: int) -> float:
    """Fragmented milli-GPU of a timeline row."""
    return sum(int(row[name]) for name in FRAG_COLUMNS if name != "q3_satisfied") / typical_count


def _percent(part: float, whole: float) -> float | None:
    return 100 * part / whole if whole else None


def _state(row: Row, typical_count: int) -> dict[str, Any]:
    frag, free = frag_milli(row, typical_count), int(row["gpu_cap"] - row["gpu_alloc"])
    return {
        "active_nodes": int(row["nodes_used"]), "active_gpus": int(row["gpus_used"]),
        "gpu_milli_alloc": int(row["gpu_alloc"]), "cpu_milli_alloc": int(row["cpu_alloc"]),
        "memory_mib_alloc": int(row["mem_alloc"]),
        "gpu_alloc_pct": _percent(row["gpu_alloc"], row["gpu_cap"]),
        "cpu_alloc_pct": _percent(row["cpu_alloc"], row["cpu_cap"]),
        "memory_alloc_pct": _percent(row["mem_alloc"], row["mem_cap"]),
        "frag_milli": frag, "frag_pct": _percent(frag, row["gpu_cap"]), "frag_ratio_pct": _percent(frag, free),
        "power_cpu_w": row["cpu_mw"] / 1000, "power_gpu_w": row["gpu_mw"] / 1000,
        "eopc_w": (row["cpu_mw"] + row["gpu_mw"]) / 1000,
        "grar": row["gpu_alloc"] / row["arrived_gpu"] if row["arrived_gpu"] else None,
    }  # fmt: skip


def _at_capacity(row: Row, typical_count: int) -> dict[str, Any]:
    """The state after the last arrival with which arrived demand was still within the GPU capacity."""
    frag = frag_milli(row, typical_count)
    return {
        "gpu_alloc_pct": _percent(row["gpu_alloc"], row["gpu_cap"]), "frag_pct": _percent(frag, row["gpu_cap"]),
        "eopc_w": (row["cpu_mw"] + row["gpu_mw"]) / 1000,
        "grar": row["gpu_alloc"] / row["arrived_gpu"] if row["arrived_gpu"] else None,
    }  # fmt: skip


def _means(areas: dict[str, float], typical_count: int) -> dict[str, float | None]:
    """Means over time; allocation is measured against the capacity there was at the time."""
    seconds = areas["seconds"]
    frag, power, pending = (areas[name] / seconds if seconds else None for name in ("frag", "power_mw", "pods_pending"))
    return {
        "mean_gpu_alloc_pct": _percent(areas["gpu_milli_alloc"], areas["gpu_milli_capacity"]),
        "mean_cpu_alloc_pct": _percent(areas["cpu_milli_alloc"], areas["cpu_milli_capacity"]),
        "mean_frag_milli": None if frag is None else frag / typical_count,
        "mean_power_w": None if power is None else power / 1000,
        "mean_pods_pending": pending,
        "energy_kwh": areas["power_mw"] / 3.6e9 if seconds else None,
        "co2_kg": None,  # follows from the intensity of the grid, which no engine takes
    }

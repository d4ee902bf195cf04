"""The one row that sums up a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fastsim.frames import FRAG_COLUMNS
from fastsim.spans import Spans
from fastsim_ext.work import spans_of

Row = Any


class Waits:
    """Waiting and completion times in seconds, of pods that started and of pods that finished, as they come.

    Also how often pods were stopped for more important ones, and the work that stopping pods threw away, in seconds.
    """

    def __init__(self, folder: Path | None = None, counts: Mapping[str, int] | None = None) -> None:
        """In memory and a file of its own, or in ``folder`` after the ``counts`` values of an earlier start."""
        self.wait, self.jct, self.lost = (
            Spans(None if folder is None else folder / f"{name}.f8", None if counts is None else counts[name])
            for name in ("wait", "jct", "lost")
        )
        self.preemptions: int | None = None if counts is None else counts["preemptions"]

    def add(self, out: Any) -> None:
        """Take note of outcome rows, in the order in which the loop wrote them."""
        room = np.empty((3, len(out)))
        *counts, preemptions = spans_of(np.ascontiguousarray(out).view(np.uint8), room)
        wait, jct, lost = (values[:count].copy() for values, count in zip(room, counts, strict=True))
        self.take(wait, jct, lost, preemptions)

    def take(self, wait: Any, jct: Any, lost: Any, preemptions: int) -> None:
        """Take note of seconds by kind, and of more preemptions."""
        self.wait.add(wait)
        self.jct.add(jct)
        self.lost.add(lost)
        self.preemptions = (self.preemptions or 0) + preemptions

    def durable(self) -> dict[str, int]:
        """Put everything in the files; how many values of each there are."""
        for spans in (self.wait, self.jct, self.lost):
            spans.secure()
        counts = {name: spans.count for name, spans in (("wait", self.wait), ("jct", self.jct), ("lost", self.lost))}
        return counts | {"preemptions": self.preemptions or 0}

    def figures(self) -> dict[str, float | None]:
        """Mean, percentiles and largest of both; None where there is no pod to speak of."""
        nothing = None if self.preemptions is None else 0.0
        return {
            **self.wait.figures("wait"), **self.jct.figures("jct"), "preemptions": self.preemptions,
            "lost_work_s": self.lost.total() if self.lost.count else nothing,
        }  # fmt: skip

    def close(self) -> None:
        """Give back what held the values."""
        self.wait.close()
        self.jct.close()
        self.lost.close()


def summary_frame(
    final: Row, at_capacity: Row, areas: dict[str, float], seconds: float, kept: tuple[int, int], waits: Waits
) -> pl.DataFrame:
    """Counts, state at the end, state when arrived demand reached the GPU capacity, means over time, waits.

    ``seconds`` is the time from the first arrival to the last event, ``areas["seconds"]`` that from the first event;
    means over time are null without it.
    ``kept`` is the typical pods' total count at the end and during the main run.
    """
    return row_frame(summary_row(final, at_capacity, areas, seconds, kept, waits))


def summary_row(
    final: Row, at_capacity: Row, areas: dict[str, float], seconds: float, kept: tuple[int, int], waits: Waits
) -> dict[str, Any]:
    """The row of ``summary_frame``."""
    at_end, during = kept
    return {
        **_counts(final), **_state(final, at_end),
        **{f"at_capacity_{key}": value for key, value in _at_capacity(at_capacity, during).items()},
        **_means(areas, during), **waits.figures(), "makespan_s": seconds,
    }  # fmt: skip


def row_frame(row: dict[str, Any]) -> pl.DataFrame:
    """One row; a figure that is not known is a null among floats, never a column of its own type."""
    kinds = {name: pl.Int64 if isinstance(value, int) else pl.Float64 for name, value in row.items()}
    return pl.DataFrame([row], schema=kinds)


def _counts(row: Row) -> dict[str, int]:
    names = ("running", "pending", "finished", "unplaced", "lost")
    counts = {f"pods_{name}": int(row[name]) for name in names}
    arrived = sum(counts.values())
    return {
        "pods": arrived, **counts,
        "arrived_gpu_milli": int(row["arrived_gpu"]), "arrived_cpu_milli": int(row["arrived_cpu"]),
        "failed_gpu_milli": int(row["unplaced_gpu"]), "failed_cpu_milli": int(row["unplaced_cpu"]),
    }  # fmt: skip


def frag_milli(row: Row, kept: int) -> float:
    """Fragmented milli-GPU of a timeline row."""
    return sum(int(row[name]) for name in FRAG_COLUMNS if name != "q3_satisfied") / kept


def _percent(part: float, whole: float) -> float | None:
    return 100 * part / whole if whole else None


def _state(row: Row, kept: int) -> dict[str, Any]:
    frag, free = frag_milli(row, kept), int(row["gpu_cap"] - row["gpu_alloc"])
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


def _at_capacity(row: Row, kept: int) -> dict[str, Any]:
    """The state after the last arrival with which arrived demand was still within the GPU capacity."""
    frag = frag_milli(row, kept)
    return {
        "gpu_alloc_pct": _percent(row["gpu_alloc"], row["gpu_cap"]), "frag_pct": _percent(frag, row["gpu_cap"]),
        "eopc_w": (row["cpu_mw"] + row["gpu_mw"]) / 1000,
        "grar": row["gpu_alloc"] / row["arrived_gpu"] if row["arrived_gpu"] else None,
    }  # fmt: skip


def _means(areas: dict[str, float], kept: int) -> dict[str, float | None]:
    """Means over time; allocation is measured against the capacity there was at the time."""
    seconds = areas["seconds"]
    frag, power, pending = (areas[name] / seconds if seconds else None for name in ("frag", "power_mw", "pods_pending"))
    return {
        "mean_gpu_alloc_pct": _percent(areas["gpu_milli_alloc"], areas["gpu_milli_capacity"]),
        "mean_cpu_alloc_pct": _percent(areas["cpu_milli_alloc"], areas["cpu_milli_capacity"]),
        "mean_frag_milli": None if frag is None else frag / kept,
        "mean_power_w": None if power is None else power / 1000,
        "mean_pods_pending": pending,
        "energy_kwh": areas["power_mw"] / 3.6e9 if seconds else None,
    }

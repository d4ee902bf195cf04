"""The one row that sums up a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from fastsim.frames import FRAG_COLUMNS, REASONS

Row = Any


def summary_frame(
    final: Row, at_capacity: Row, areas: dict[str, float], seconds: float, kept: tuple[int, int], out: Any
) -> pl.DataFrame:
    """Counts, state at the end, state when arrived demand reached the GPU capacity, means over time, waits.

    ``seconds`` is the time between the first and the last event; means over time are null without it.
    ``kept`` is the typical pods' total count during the main run and at the end, after any retargeting.
    """
    main_kept, final_kept = kept
    row = {
        **_counts(final), **_state(final, final_kept),
        **{f"at_capacity_{key}": value for key, value in _at_capacity(at_capacity, main_kept).items()},
        **_means(areas, seconds, main_kept, final), **_waits(out), "makespan_s": seconds,
    }  # fmt: skip
    # A figure that is not known is a null among floats, never a column of its own type.
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


def _means(areas: dict[str, float], seconds: float, kept: int, row: Row) -> dict[str, float | None]:
    mean = {name: area / seconds if seconds > 0 else None for name, area in areas.items()}
    power, frag, gpu, cpu = mean["power_mw"], mean["frag"], mean["gpu_milli_alloc"], mean["cpu_milli_alloc"]
    return {
        "mean_gpu_alloc_pct": None if gpu is None else _percent(gpu, row["gpu_cap"]),
        "mean_cpu_alloc_pct": None if cpu is None else _percent(cpu, row["cpu_cap"]),
        "mean_frag_milli": None if frag is None else frag / kept,
        "mean_power_w": None if power is None else power / 1000,
        "mean_pods_pending": mean["pods_pending"],
        "energy_kwh": areas["power_mw"] / 3.6e9 if seconds > 0 else None,
    }


def _waits(out: Any) -> dict[str, float | None]:
    """Waiting and completion times in seconds, of pods that started and of pods that finished."""
    started = out[(out["attempt"] == 0) & (out["node"] >= 0)]
    ended = out[out["reason"] == REASONS.index("finished")]
    wait, jct = started["start"] - started["submit"], ended["end"] - ended["submit"]
    figures: dict[str, float | None] = {}
    for name, values in (("wait", wait), ("jct", jct)):
        figures[f"{name}_mean_s"] = float(values.mean()) if len(values) else None
        for q in (50, 95, 99):
            figures[f"{name}_p{q}_s"] = float(np.percentile(values, q)) if len(values) else None
        figures[f"{name}_max_s"] = float(values.max()) if len(values) else None
    return figures

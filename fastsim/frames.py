"""From what the compiled loop wrote to the frames users read."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

EVENTS = ("node", "departure", "retry", "sample", "deschedule", "arrival", "end")
"""Kinds of timeline rows, by their number in the engine."""
REASONS = (
    "finished", "running", "node_lost", "evicted", "preempted", "pending", "too_large", "gang", "over_quota",
    "no_node", "no_match", "no_gpu_model", "no_gpu", "no_cpu", "no_memory", "no_extra", "no_pod_slot", "pod_limit",
)  # fmt: skip
"""How an interval of a pod ended, or why it never began, by their number in the engine."""
FRAG_COLUMNS = (
    "q1_lack_both", "q2_lack_gpu", "q3_satisfied", "q4_lack_cpu", "xl_satisfied", "xr_lack_cpu", "no_access",
)  # fmt: skip
"""Free milli-GPU by what a typical pod finds there; all but ``q3_satisfied`` is fragmented."""
COUNTS = ("running", "pending", "finished", "unplaced", "lost", "arrived_cpu", "arrived_gpu", "unplaced_cpu",
          "unplaced_gpu")  # fmt: skip
TOTALS = ("nodes_used", "gpus_of_used_nodes", "gpus_used", "cpu_alloc", "mem_alloc", "gpu_alloc", "cpu_cap", "mem_cap",
          "gpu_cap", *FRAG_COLUMNS, "cpu_mw", "gpu_mw")  # fmt: skip
ROW = np.dtype([("t", "f8"), ("seq", "i8"), ("kind", "i8"), ("pod", "i8"), *((name, "i8") for name in COUNTS + TOTALS)])
"""One timeline row as the compiled loop writes it."""
OUTCOME = np.dtype([("seq", "i8"), ("node", "i8"), ("attempt", "i8"), ("reason", "i8"), ("gpus", "u8"),
                    ("submit", "f8"), ("start", "f8"), ("end", "f8"), ("lost", "f8")])  # fmt: skip
"""One outcome row as the compiled loop writes it; ``lost`` sums up the pod's lost work so far."""

Array = Any


def timeline_frame(rows: Array, kept: Array, pod_ids: Array) -> pl.DataFrame:
    """The timeline; ``kept`` is the typical pods' total count that was in force at each row."""
    pods = pl.Series("pod_id", pod_ids[rows["pod"]] if len(pod_ids) else rows["pod"], pl.Int64)
    shares = {name: rows[name] / kept for name in FRAG_COLUMNS}
    frag = sum(rows[name] for name in FRAG_COLUMNS if name != "q3_satisfied") / kept
    frame = pl.DataFrame({
        "t_s": rows["t"], "event_seq": rows["seq"],
        "event": pl.Series(np.array(EVENTS, object)[rows["kind"]], dtype=pl.Enum(EVENTS), strict=True),
        "pod_id": pods,
        "pods_running": rows["running"], "pods_pending": rows["pending"], "pods_finished": rows["finished"],
        "pods_unplaced": rows["unplaced"], "pods_lost": rows["lost"],
        "active_nodes": rows["nodes_used"], "active_node_gpus": rows["gpus_of_used_nodes"],
        "active_gpus": rows["gpus_used"],
        "cpu_milli_alloc": rows["cpu_alloc"], "memory_mib_alloc": rows["mem_alloc"],
        "gpu_milli_alloc": rows["gpu_alloc"],
        "cpu_milli_capacity": rows["cpu_cap"], "gpu_milli_capacity": rows["gpu_cap"],
        "arrived_cpu_milli": rows["arrived_cpu"], "arrived_gpu_milli": rows["arrived_gpu"],
        **shares, "frag_milli": frag,
        "power_cpu_w": rows["cpu_mw"] / 1000, "power_gpu_w": rows["gpu_mw"] / 1000,
        "power_w": (rows["cpu_mw"] + rows["gpu_mw"]) / 1000,
    })  # fmt: skip
    return frame.with_columns(pl.when(pl.Series(rows["pod"] >= 0)).then(pl.col("pod_id")).alias("pod_id"))


def placements_frame(out: Array, pod_ids: Array, natives: pl.Series | None, names: list[str]) -> pl.DataFrame:
    """One row for every interval a pod held a node, and one for every pod that never did."""
    out = out[np.lexsort((out["attempt"], out["seq"]))]
    placed = pl.Series(out["node"] >= 0)
    where = np.maximum(out["node"], 0)
    frame = pl.DataFrame({
        "pod_id": pod_ids[out["seq"]],
        "native_id": _natives(natives, out["seq"]),
        "attempt": out["attempt"].astype(np.int16),
        "node_id": out["node"],
        "node": pl.Series(names or [None], dtype=pl.String).gather(where),
        "gpu_ids": pl.Series(device_lists(out["gpus"])),
        "start_s": pl.Series(out["start"]).fill_nan(None),
        "end_s": pl.Series(out["end"]).fill_nan(None),
        "reason": pl.Series(np.array(REASONS, object)[out["reason"]], dtype=pl.Enum(REASONS)),
    })  # fmt: skip
    return frame.with_columns(pl.when(placed).then(pl.col(name)).alias(name) for name in ("node_id", "node"))


def jobs_frame(out: Array, pod_ids: Array, natives: pl.Series | None) -> pl.DataFrame:
    """One row for every pod: its first start, its last end, how long it waited and what became of it."""
    out = out[np.lexsort((out["attempt"], out["seq"]))]
    first = np.flatnonzero(np.diff(out["seq"], prepend=-1))
    last = np.append(first[1:], len(out))[: len(first)] - 1
    head, tail = out[first], out[last]
    reason = np.array(REASONS, object)[tail["reason"]]
    states = ("finished", "running", "pending", "unplaced", "node_lost", "evicted", "preempted")
    preempted = out["reason"] == REASONS.index("preempted")
    state = np.where(tail["reason"] >= REASONS.index("too_large"), "unplaced", reason)
    return pl.DataFrame({
        "pod_id": pod_ids[head["seq"]],
        "native_id": _natives(natives, head["seq"]),
        "submit_s": head["submit"],
        "start_s": head["start"], "end_s": tail["end"],
        "wait_s": head["start"] - head["submit"],
        "jct_s": np.where(tail["reason"] == 0, tail["end"] - head["submit"], np.nan),
        "state": pl.Series(state.astype(object), dtype=pl.Enum(states)),
        "reason": pl.Series(reason, dtype=pl.Enum(REASONS)),
        "attempts": (tail["attempt"] + (tail["node"] >= 0)).astype(np.int16),
        "preemptions": np.bincount(np.cumsum(np.diff(out["seq"], prepend=-1) != 0) - 1, preempted).astype(np.int16),
        "lost_work_s": tail["lost"],
    }).with_columns(pl.col("start_s", "end_s", "wait_s", "jct_s").fill_nan(None))  # fmt: skip


def device_lists(masks: Array) -> pa.Array:
    """Device numbers, ascending, of every 64-bit mask."""
    distinct, which = np.unique(masks, return_inverse=True)
    lists = [[g for g in range(64) if int(mask) >> g & 1] for mask in distinct]
    return pa.array(lists, pa.list_(pa.int16())).take(pa.array(which))


def _natives(natives: pl.Series | None, seq: Array) -> pl.Series:
    if natives is None:
        return pl.Series([None] * len(seq), dtype=pl.String)
    return natives.gather(pl.Series(seq))

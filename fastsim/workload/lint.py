"""Faults and oddities of a trace, found before anything runs.

========  ==============================================================================================
error     a run refuses the row, or the pod can never run on the cluster
warning   a run takes it, but its unit, order or demand is probably not what was meant
note      worth knowing, nothing to correct
========  ==============================================================================================

All rows that break a rule are listed, where a run stops at the first one. A workload whose rows have `total_work` or
`workload` is of jobs, which may take GPUs of several nodes; others are pods, each on one node.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from fastsim.workload import schema as s
from fastsim.workload.pod_rows import BATCH_ROWS
from fastsim.workload.row_checks import Fault, RowOrder, conformed, request_faults

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.workload import Workload

LEVELS = ("error", "warning", "note")
DAY_S, YEAR_S = 86_400.0, 31_557_600.0
UNIX_S, UNIX_MS = 1e9, 1e12
"""Times from here on look like dates: seconds and milliseconds since 1970."""
SMALL_CPU, SMALL_MEMORY_MIB, HUGE_MEMORY_MIB, SMALL_GPU = 256, 512, 2**26, 100
"""Largest requests that look like whole CPUs, GiB, KiB or bytes, and per cent of a GPU."""


class Finding(NamedTuple):
    """One thing about a trace. ``rows`` is how many rows it is about, ``row`` the first of them, counted from 1."""

    level: str
    column: str
    rows: int | None
    row: int | None
    text: str


def finding_text(one: Finding) -> str:
    """A finding as one line."""
    rows = "" if one.rows is None else f" ({one.rows:,} row{'s' if one.rows != 1 else ''})"
    at = f" row {one.row:,}" if one.row is not None else ""
    return f"{one.level:<7} {one.column}{at}{rows}: {one.text}"


def trace_findings(workload: Workload, cluster: Cluster | None = None) -> list[Finding]:
    """All findings about a workload, errors first; those that depend on a cluster only if there is one."""
    broken, frame = _read(workload)
    findings = [*broken, *_units(frame), *_times(frame), *_gangs(frame), *_names(frame)]
    if cluster is not None and len(frame):
        findings += [*_impossible(workload, frame, cluster, bool(broken)), *_demand(frame, cluster)]
    return sorted(findings, key=lambda one: LEVELS.index(one.level))


def of_jobs(columns: list[str]) -> bool:
    """Whether rows are jobs, for rounds, rather than pods."""
    return s.TOTAL_WORK in columns or s.WORKLOAD in columns


def worst(findings: list[Finding]) -> str:
    """The gravest level, or nothing."""
    return next((level for level in LEVELS if any(one.level == level for one in findings)), "")


def _read(workload: Workload) -> tuple[list[Finding], pl.DataFrame]:
    """Broken rules, each once with its first row, and all rows that are readable."""
    faults: dict[tuple[str, str], tuple[int, Fault]] = {}
    order, done, frames = RowOrder(partial(workload.source, BATCH_ROWS)), 0, []
    for batch in workload.source(BATCH_ROWS):
        good = conformed(batch)
        batch_faults: list[Fault] = [good] if isinstance(good, Fault) else request_faults(good)
        if not isinstance(good, Fault):
            batch_faults += [fault for fault in [order.fault(good)] if fault is not None]
            frames.append(pl.from_arrow(good))
        else:
            order.rows += batch.num_rows
        for fault in batch_faults:
            faults.setdefault((fault.column, fault.expected), (done + fault.row + 1, fault))
        done += batch.num_rows
    broken = [
        Finding("error", fault.column, None, row, f"found {fault.found}, expected {fault.expected}")
        for row, fault in faults.values()
    ]
    if not done:
        broken.append(Finding("error", s.POD_ID, 0, None, "there is no row"))
    return broken, pl.concat([pl.DataFrame(one) for one in frames]) if frames else pl.DataFrame()


def _rows(frame: pl.DataFrame, column: str, mask: pl.Expr, text: str, level: str = "warning") -> Iterator[Finding]:
    """A finding about the rows of a mask, if there are any."""
    if column in frame.columns:
        where = frame.select(mask.fill_null(False).arg_true()).to_series()
        if len(where):
            yield Finding(level, column, len(where), int(where[0]) + 1, text)


def _units(frame: pl.DataFrame) -> Iterator[Finding]:
    """Columns whose every value looks like another unit's."""
    if not len(frame):
        return
    large = {name: frame[name].max() or 0 for name in (s.CPU_MILLI, s.MEMORY_MIB, s.SUBMIT_S)}
    shared = frame.filter(pl.col(s.NUM_GPU) == 1)[s.GPU_MILLI].max()
    tests: tuple[tuple[str, Any, Any, Any, str], ...] = (
        (s.CPU_MILLI, 1, large[s.CPU_MILLI], SMALL_CPU, "no pod asks for more: are these whole CPUs, not thousandths?"),
        (s.MEMORY_MIB, 1, large[s.MEMORY_MIB], SMALL_MEMORY_MIB, "no pod asks for more: are these GiB, not MiB?"),
        (s.GPU_MILLI, 1, shared or 0, SMALL_GPU, "no pod asks for more of a GPU: are these per cent, not thousandths?"),
        (s.MEMORY_MIB, HUGE_MEMORY_MIB, large[s.MEMORY_MIB], float("inf"), "are these KiB or bytes, not MiB?"),
        (s.SUBMIT_S, UNIX_MS, large[s.SUBMIT_S], float("inf"), "are these milliseconds since 1970?"),
        (s.SUBMIT_S, UNIX_S, large[s.SUBMIT_S], UNIX_MS, "are these dates? Begin the trace near 0"),
    )
    for name, low, value, high, text in tests:
        if low <= value < high:
            yield Finding("warning", name, len(frame), None, f"largest value {value:,}: {text}")
    if s.DURATION_S in frame.columns:
        middle = frame[s.DURATION_S].median()
        if isinstance(middle, float) and middle > 100 * DAY_S:
            text = f"median {middle / DAY_S:,.0f} days: are these milliseconds?"
            yield Finding("warning", s.DURATION_S, len(frame), None, text)


def _times(frame: pl.DataFrame) -> Iterator[Finding]:
    """Rows whose times contradict each other."""
    ends, names = pl.col(s.SUBMIT_S) + pl.col(s.DURATION_S), set(frame.columns)
    yield from _rows(frame, s.DURATION_S, pl.col(s.DURATION_S) == 0, "ends as it begins")
    yield from _rows(frame, s.DURATION_S, pl.col(s.DURATION_S) > 10 * YEAR_S, "runs longer than ten years")
    yield from _rows(frame, s.DURATION_S, pl.col(s.DURATION_S).is_null(), "runs for ever", "note")
    if {s.DEADLINE_S, s.DURATION_S} <= names:
        yield from _rows(frame, s.DEADLINE_S, pl.col(s.DEADLINE_S) < ends, "due before it could end")
    elif s.DEADLINE_S in names:
        yield from _rows(frame, s.DEADLINE_S, pl.col(s.DEADLINE_S) < pl.col(s.SUBMIT_S), "due before it arrives")
    if {s.ORIG_START_S, s.ORIG_END_S} <= names:
        yield from _rows(frame, s.ORIG_END_S, pl.col(s.ORIG_END_S) < pl.col(s.ORIG_START_S), "ended before it began")
    if {s.MIN_REPLICAS, s.MAX_REPLICAS} <= names:
        more = pl.col(s.MIN_REPLICAS) > pl.col(s.MAX_REPLICAS)
        yield from _rows(frame, s.MIN_REPLICAS, more, "more workers at least than at most")
    if int((frame[s.SUBMIT_S] <= 0).sum() if len(frame) else 0) > 1:
        yield from _rows(frame, s.SUBMIT_S, pl.col(s.SUBMIT_S) <= 0, "there when the run begins", "note")


def _gangs(frame: pl.DataFrame) -> Iterator[Finding]:
    """Gangs that never become complete."""
    if not {s.GANG_SIZE, s.JOB_ID} <= set(frame.columns):
        return
    short = pl.col(s.GANG_SIZE) > pl.len().over(s.JOB_ID)
    yield from _rows(
        frame, s.GANG_SIZE, short & (pl.col(s.GANG_SIZE) > 1), "its job has fewer pods, so it never starts"
    )


def _names(frame: pl.DataFrame) -> Iterator[Finding]:
    """Names that pods of several jobs, or several pods without one, have in the source."""
    job = pl.col(s.JOB_ID) if s.JOB_ID in frame.columns else pl.lit(None, pl.Int64)
    if s.NATIVE_ID in frame.columns:
        named = frame.select(pl.row_index().alias("row"), s.NATIVE_ID, job=job)
        own = pl.coalesce(pl.format("job {}", "job"), pl.format("row {}", "row"))
        several = pl.col(s.NATIVE_ID).is_not_null() & (own.n_unique().over(s.NATIVE_ID) > 1)
        rows = named.filter(several)["row"]
        if len(rows):
            text = "has the name of another pod, so join results on pod_id"
            yield Finding("note", s.NATIVE_ID, len(rows), int(rows[0]) + 1, text)


def _impossible(workload: Workload, frame: pl.DataFrame, cluster: Cluster, broken: bool) -> Iterator[Finding]:
    """Rows that no state of the cluster could run."""
    devices = pl.from_arrow(cluster.offered.select(["gpu_model", "num_gpu"]))
    assert isinstance(devices, pl.DataFrame)
    models = dict(devices.group_by("gpu_model", maintain_order=True).agg(pl.col("num_gpu").sum()).iter_rows())
    if s.GPU_MODELS in frame.columns and cluster.total_gpus:
        known = pl.col(s.GPU_MODELS).list.eval(pl.element().is_in(list(models))).list.any()
        text = (
            f"none of its GPU models is in the cluster, which has {', '.join(sorted(map(str, filter(None, models))))}"
        )
        yield from _rows(frame, s.GPU_MODELS, ~known & (pl.col(s.NUM_GPU) > 0), text, "error")
    if s.PINNED_NODE in frame.columns and "name" in cluster.offered.column_names:
        present = pl.col(s.PINNED_NODE).is_in(cluster.offered["name"].to_pylist())
        yield from _rows(frame, s.PINNED_NODE, ~present, "the only node it may use is not in the cluster", "error")
    if of_jobs(workload.columns):
        most = max(models.values(), default=0) if s.GPU_MODELS not in frame.columns else cluster.total_gpus
        yield from _rows(frame, s.NUM_GPU, pl.col(s.NUM_GPU) > most, f"more GPUs than the cluster's {most}", "error")
    elif not broken:
        absent = 0 if s.PINNED_NODE not in frame.columns else int((frame.select(~present).to_series()).sum())
        yield from _never_hosted(workload, cluster, absent)


COLUMN_OF = {"too_large": s.NUM_GPU, "no_gpu": s.NUM_GPU, "no_gpu_memory": s.GPU_MEMORY_MIB,
             "no_extra": s.EXTRA_RESOURCES, "no_match": s.CONSTRAINTS}  # fmt: skip
"""The column that an obstacle is about; models have a finding of their own."""


def _never_hosted(workload: Workload, cluster: Cluster, absent: int) -> Iterator[Finding]:
    """Pods that no empty node hosts, by obstacle; ``absent`` of them are pinned to nodes that are not there."""
    from fastsim.workload.oversized_pods import Oversized, obstacle_text
    from fastsim.workload.pod_classes import PodClasses

    classes, oversized = PodClasses(), Oversized(cluster)
    for batch in workload.batches():
        oversized.add(classes, classes.intern(batch))
    for reason, column in COLUMN_OF.items():
        kept = oversized.kept.get(reason)
        count = 0 if kept is None else kept.count - (absent if reason == "no_match" else 0)
        if kept is not None and count > 0:
            text = obstacle_text(reason, kept, oversized.models)
            if reason == "too_large":
                text = f"larger than any node, for example {kept.example}"
            yield Finding("error", column, count, None, text)


def _demand(frame: pl.DataFrame, cluster: Cluster) -> Iterator[Finding]:
    """Demand beyond the cluster, over the time in which pods arrive."""
    from fastsim.workload.load_statistics import mean_load_pct

    load = mean_load_pct(frame, cluster)
    if load is None:
        requested = float((frame[s.NUM_GPU].cast(pl.Int64) * frame[s.GPU_MILLI]).sum())
        share = 100 * requested / cluster.total_gpu_milli if cluster.total_gpu_milli else 0.0
        text = f"all pods together ask for {share:,.0f} % of the cluster's GPUs"
        yield Finding("note", s.NUM_GPU, len(frame), None, text)
    elif load > 100:
        text = f"{load:,.0f} % of the cluster's GPUs are asked for while pods arrive: queues grow"
        yield Finding("warning", s.DURATION_S, len(frame), None, text)

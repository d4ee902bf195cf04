"""The reference engine's inputs as plain values and its outputs as frames."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from fastsim.engine.online.plan import PodRequest
from fastsim.hardware.node_constraints import conditions_of, node_labels
from fastsim.workload.typical_pods import PodStream
from tests.reference.online.frag import CLASSES, Q3, Fragmentation, cpu_power, gpu_power
from tests.reference.online.nodes import WHOLE, Node, Shape, demand_with_instances

if TYPE_CHECKING:
    import polars as pl

    from fastsim.cluster.cluster import Cluster

EVENTS = ("node", "departure", "retry", "sample", "deschedule", "arrival", "end")
"""Kinds of timeline rows; at equal times events happen in this order."""
STATES = ("finished", "running", "pending", "unplaced", "node_lost", "evicted", "preempted")
"""Final states of a pod."""
REASONS = (
    "finished", "running", "node_lost", "evicted", "preempted", "pending", "too_large", "gang", "over_quota",
    "no_node", "no_match", "no_gpu_model", "no_gpu", "no_cpu", "no_memory", "no_extra", "no_pod_slot",
    "spread", "pod_limit",
    "out_of_memory", "gang_too_large", "no_gpu_memory", "pod_affinity",
)  # fmt: skip
"""Reasons for the end of an interval of a pod, or why it never began."""
STAGE = (
    "pods_running", "gpu_milli_alloc", "cpu_milli_alloc", "memory_mib_alloc", "active_nodes", "active_gpus",
    "frag_milli", "power_w",
)  # fmt: skip
"""Columns of a timeline row that describe a stage."""


@dataclass
class Outcome:
    """One pod and its outcome; ``node`` and ``start_s`` are None if it never ran.

    ``earlier`` has the intervals before the last one. ``left_s`` is the remaining work (None: endless), ``est_left_s``
    the scheduler's estimate of it and ``est_s`` that of all work; ``attained_s`` are seconds on nodes in intervals that
    ended in another wait. ``began_s`` is the begin of the present work, after ``restart_s`` seconds of restarting.
    ``bound`` is the node of a pod that arrives bound, and its devices there, empty if not known.
    """

    pod_id: int
    native_id: str | None
    request: PodRequest
    submit_s: float
    duration_s: float | None
    priority: int
    sequence: int
    reason: str = "pending"
    node: int | None = None
    devices: tuple[int, ...] = ()
    start_s: float | None = None
    end_s: float | None = None
    earlier: tuple[Outcome, ...] = ()
    job: tuple[int, int] | None = None
    after: int | None = None
    """The job of which a gang starts first."""
    tenant: str | None = None
    group: str | None = None
    preemptible: bool = True
    preempts: bool = True
    left_s: float | None = None
    est_left_s: float | None = None
    est_s: float | None = None
    attained_s: float = 0.0
    began_s: float = 0.0
    restart_s: float = 0.0
    turn: int = 0
    lost_work_s: float = 0.0
    mates: tuple[Outcome, ...] = ()
    bound: tuple[str, tuple[int, ...]] | None = None
    row: dict[str, Any] = field(default_factory=dict, repr=False)
    """All columns of the pod."""

    @property
    def est_end_s(self) -> float:
        """Estimated end of a running pod, seconds."""
        return math.inf if self.est_left_s is None else self.began_s + (self.est_left_s + self.restart_s)

    @property
    def intervals(self) -> tuple[Outcome, ...]:
        """Every interval on a node, or the one that never began."""
        return (*self.earlier, self)

    @property
    def state(self) -> str:
        """Final state of the pod, ``unplaced`` for any reason of refusal."""
        return self.reason if self.reason in STATES else "unplaced"


@dataclass
class Tally:
    """Running counts of a run: pods by state and demand that has arrived."""

    running: int = 0
    pending: int = 0
    finished: int = 0
    unplaced: int = 0
    lost: int = 0
    arrived_cpu_milli: int = 0
    arrived_gpu_milli: int = 0


@dataclass
class ReferenceRun:
    """Result of the reference engine: rows of the result tables, and their frames."""

    timeline_rows: list[dict[str, Any]] = field(default_factory=list)
    placement_rows: list[dict[str, Any]] = field(default_factory=list)
    job_rows: list[dict[str, Any]] = field(default_factory=list)
    stage_rows: list[dict[str, Any]] = field(default_factory=list)

    @property
    def timeline(self) -> pl.DataFrame:
        """One row per event or sample."""
        import polars as pl

        kinds: dict[str, Any] = {"t_s": pl.Float64, "event": pl.Enum(EVENTS), "frag_milli": pl.Float64}
        kinds |= dict.fromkeys((*CLASSES, "power_cpu_w", "power_gpu_w", "power_w"), pl.Float64)
        schema = {name: kinds.get(name, pl.Int64) for name in self.timeline_rows[0]}
        return pl.DataFrame(self.timeline_rows, schema=schema)

    @property
    def placements(self) -> pl.DataFrame:
        """One row per interval on a node, and one per pod that never had any."""
        import polars as pl

        return pl.DataFrame(self.placement_rows, schema={
            "pod_id": pl.Int64, "native_id": pl.String, "attempt": pl.Int16, "node_id": pl.Int64, "node": pl.String,
            "gpu_ids": pl.List(pl.Int16), "start_s": pl.Float64, "end_s": pl.Float64, "reason": pl.Enum(REASONS),
        })  # fmt: skip

    @property
    def jobs(self) -> pl.DataFrame:
        """One row per pod: waiting time, completion time and final state."""
        import polars as pl

        return pl.DataFrame(self.job_rows, schema={
            "pod_id": pl.Int64, "native_id": pl.String, "submit_s": pl.Float64, "start_s": pl.Float64,
            "end_s": pl.Float64, "wait_s": pl.Float64, "jct_s": pl.Float64, "state": pl.Enum(STATES),
            "reason": pl.Enum(REASONS), "attempts": pl.Int16, "preemptions": pl.Int16, "lost_work_s": pl.Float64,
            "restarts": pl.Int32, "paused_s": pl.Float64, "gpu_hours": pl.Float64, "ideal_s": pl.Float64,
            "slowdown": pl.Float64, "cost": pl.Float64,
        })  # fmt: skip

    @property
    def stages(self) -> pl.DataFrame:
        """One row per snapshot of the cluster at a closing stage or interruption of the run."""
        import polars as pl

        kinds: dict[str, Any] = {"stage": pl.String, "frag_milli": pl.Float64, "power_w": pl.Float64}
        return pl.DataFrame(self.stage_rows, schema={name: kinds.get(name, pl.Int64) for name in ("stage", *STAGE)})


def shapes(cluster: Cluster) -> list[Shape]:
    """The nodes in position order; a node's own power goes before the catalogue entry of its models."""
    rows, partitioned = cluster.offered.to_pylist(), cluster.partitioned_gpus.tolist()
    return [_shape(row, cluster, gpus) for row, gpus in zip(rows, partitioned, strict=True)]


def _shape(row: dict[str, Any], cluster: Cluster, mig_gpus: int) -> Shape:
    def milliwatts(column: str, model: Any, name: str) -> int:
        watts = row[column] if row[column] is not None else getattr(model, name) if model else 0.0
        return round(1000 * watts)

    gpu = cluster.catalog.gpu.get(row["gpu_model"])
    cpu = cluster.catalog.cpu.get(row["cpu_model"] or "", cluster.catalog.cpu[""])
    return Shape(
        cpu_milli=row["cpu_milli"], memory_mib=row["memory_mib"], num_gpu=row["num_gpu"],
        gpu_model=row["gpu_model"], max_pods=row["max_pods"],
        gpu_idle_mw=milliwatts("gpu_idle_w", gpu, "idle_w"), gpu_peak_mw=milliwatts("gpu_peak_w", gpu, "peak_w"),
        cpu_idle_mw=milliwatts("cpu_idle_w", cpu, "idle_w"), cpu_peak_mw=milliwatts("cpu_peak_w", cpu, "peak_w"),
        cpu_cores_per_socket=row["cpu_cores_per_socket"] or cpu.cores_per_socket,
        labels=tuple(node_labels(row).items()), gpu_memory_mib=row["gpu_memory_mib"],
        extra=tuple(row["extra_resources"] or ()), mig_gpus=mig_gpus,
    )  # fmt: skip


def pods(workload: PodStream) -> list[Outcome]:
    """The pods in submission order, each with an outcome still to be filled in."""
    rows = [row for batch in workload.batches() for row in batch.to_pylist()]
    return [_pod(sequence, row) for sequence, row in enumerate(rows)]


def _pod(sequence: int, row: dict[str, Any]) -> Outcome:
    request = PodRequest(
        row["cpu_milli"], row["memory_mib"], row["num_gpu"], row["gpu_milli"], tuple(row.get("gpu_models") or ()),
        conditions_of(row),
    )  # fmt: skip
    duration, estimate = _seconds(row.get("duration_s")), _seconds(row.get("est_duration_s"))
    size = row.get("gang_size") or 1
    return Outcome(
        row["pod_id"], row.get("native_id"), request, row["submit_s"], duration, row.get("priority") or 0, sequence,
        job=(row["job_id"], size) if size > 1 else None,
        after=row["job_id"] if row.get("after_gang") and size == 1 else None,
        tenant=row.get("tenant"), group=row.get("group"),
        preemptible=row.get("preemptible") is not False, preempts=row.get("preempts") is not False, left_s=duration,
        est_left_s=duration if estimate is None else estimate,
        est_s=duration if estimate is None else estimate, bound=_bound(row), row=row,
    )  # fmt: skip


def _bound(row: dict[str, Any]) -> tuple[str, tuple[int, ...]] | None:
    node = row.get("bound_node")
    return None if node is None else (node, tuple(sorted(row.get("bound_gpus") or ())))


def _seconds(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


def timeline_row(
    t_s: float, sequence: int, event: str, pod_id: int | None, tally: Tally, nodes: Sequence[Node], frag: Fragmentation
) -> dict[str, Any]:
    """State of the cluster after one event; ``nodes`` are those present."""
    classes = [sum(column) for column in zip(*map(frag.counted, nodes), strict=True)] or [0] * len(CLASSES)
    kept = max(frag.typical.kept, 1)
    cpu_mw, gpu_mw = sum(map(cpu_power, nodes)), sum(map(gpu_power, nodes))
    used = [node for node in nodes if _active_gpus(node) or node.cpu_free < node.shape.cpu_milli]
    return {
        "t_s": t_s, "event_seq": sequence, "event": event, "pod_id": pod_id,
        "pods_running": tally.running, "pods_pending": tally.pending, "pods_finished": tally.finished,
        "pods_unplaced": tally.unplaced, "pods_lost": tally.lost,
        "active_nodes": len(used), "active_node_gpus": sum(node.shape.num_gpu + node.shape.mig_gpus for node in used),
        "active_gpus": sum(map(_active_gpus, nodes)),
        "cpu_milli_alloc": sum(node.shape.cpu_milli - node.cpu_free for node in nodes),
        "memory_mib_alloc": sum(node.shape.memory_mib - node.memory_free for node in nodes),
        "gpu_milli_alloc": sum(node.shape.num_gpu * WHOLE - node.gpu_total + node.mig_used for node in nodes),
        "cpu_milli_capacity": sum(node.shape.cpu_milli for node in nodes),
        "gpu_milli_capacity": sum((node.shape.num_gpu + node.shape.mig_gpus) * WHOLE for node in nodes),
        "arrived_cpu_milli": tally.arrived_cpu_milli, "arrived_gpu_milli": tally.arrived_gpu_milli,
        **{name: milli / kept for name, milli in zip(CLASSES, classes, strict=True)},
        "frag_milli": (sum(classes) - classes[Q3]) / kept,
        "power_cpu_w": cpu_mw / 1000, "power_gpu_w": gpu_mw / 1000, "power_w": (cpu_mw + gpu_mw) / 1000,
    }  # fmt: skip


def _active_gpus(node: Node) -> int:
    """Devices in use, and as many partitioned GPUs as the instances in use would fill."""
    return len(node.gpu_free) - len(node.idle_devices) - (-node.mig_used // WHOLE)


def placement_rows(pod: Outcome, names: Sequence[str]) -> list[dict[str, Any]]:
    """The intervals a pod held a node, or an empty one."""
    return [
        {
            "pod_id": pod.pod_id, "native_id": pod.native_id, "attempt": attempt,
            "node_id": held.node, "node": None if held.node is None else names[held.node],
            "gpu_ids": list(held.devices), "start_s": held.start_s, "end_s": held.end_s, "reason": held.reason,
        }
        for attempt, held in enumerate(pod.intervals)
    ]  # fmt: skip


def job_row(pod: Outcome, now_s: float) -> dict[str, Any]:
    """Times in seconds, from the first start to the last end; a pod that did not finish has no completion time."""
    start_s, finished = pod.intervals[0].start_s, pod.reason == "finished"
    jct_s = pod.end_s - pod.submit_s if finished and pod.end_s is not None else None
    stays = [held for held in pod.intervals if held.node is not None]
    return {
        "pod_id": pod.pod_id, "native_id": pod.native_id, "submit_s": pod.submit_s,
        "start_s": start_s, "end_s": pod.end_s,
        "wait_s": None if start_s is None else start_s - pod.submit_s, "jct_s": jct_s,
        "state": pod.state, "reason": pod.reason, "attempts": len(stays),
        "preemptions": sum(held.reason == "preempted" for held in stays), "lost_work_s": pod.lost_work_s,
        "restarts": max(0, len(stays) - 1), "paused_s": paused_s(pod, now_s) if stays else None,
        "gpu_hours": held_milli_s(pod, now_s) / WHOLE / 3600,
        "ideal_s": pod.duration_s, "slowdown": jct_s / pod.duration_s if jct_s is not None and pod.duration_s else None,
        "cost": None,
    }  # fmt: skip


def paused_s(pod: Outcome, now_s: float) -> float:
    """Seconds between the stays of a pod, and after the last one if it waits again."""
    stays = [held for held in pod.intervals if held.node is not None]
    starts = [held.start_s for held in stays[1:]] + ([now_s] if pod.reason == "pending" else [])
    return reduce(add, ((after or 0.0) - (held.end_s or 0.0) for held, after in zip(stays, starts, strict=False)), 0.0)


def held_milli_s(pod: Outcome, now_s: float) -> float:
    """Milli-GPU seconds of the stays of a pod; a stay that still runs counts until now."""
    milli, held = demand_with_instances(pod.request), [stay for stay in pod.intervals if stay.node is not None]
    return reduce(
        add, (((now_s if stay.end_s is None else stay.end_s) - (stay.start_s or 0.0)) * milli for stay in held), 0.0
    )


def stage_row(stage: str, row: dict[str, Any]) -> dict[str, Any]:
    """The columns of a timeline row that describe a stage."""
    return {"stage": stage, **{name: row[name] for name in STAGE}}


def arrived(tally: Tally, request: PodRequest) -> None:
    """Count the demand of a pod that has arrived, placed or not."""
    tally.arrived_cpu_milli += request.cpu_milli
    tally.arrived_gpu_milli += demand_with_instances(request)

"""A node's part of every total of the timeline, by the number of its GPUs in use."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastsim.cluster.cluster import Cluster
from fastsim.engine.tables import FRAG_COLUMNS, TOTALS
from fastsim.hardware.mig import WHOLE
from fastsim.workload.typical_pods import TypicalPods
from fastsim_ext.rounds.cluster_metrics import ClusterMetrics

CORE = 2 * WHOLE
"""Milli-CPU of a core: two virtual CPUs."""


class NodeKind(NamedTuple):
    """Nodes alike: capacities, GPU model, milliwatts of a device and of a socket, partitioned GPUs."""

    num_gpu: int
    gpu_model: str | None
    cpu_milli: int
    memory_mib: int
    gpu_idle_mw: int
    gpu_peak_mw: int
    cpu_idle_mw: int
    cpu_peak_mw: int
    cores_per_socket: int
    mig_gpus: int


def cluster_metrics_of(
    cluster: Cluster, typical: TypicalPods, gpu_models: tuple[str, ...], sample_s: float, recorded: bool
) -> ClusterMetrics:
    """The metrics of rounds on this cluster; GPUs are numbered model by model and, within a model, node by node."""
    listed = node_kinds(cluster)
    distinct = list(dict.fromkeys(listed))
    index = {kind: number for number, kind in enumerate(distinct)}
    nodes = node_of_gpu(cluster, gpu_models)
    kinds = np.array([index[kind] for kind in listed], np.int32)
    return ClusterMetrics(nodes, kinds, _totals(distinct, typical), sample_s, recorded)


def totals_by_node(cluster: Cluster, typical: TypicalPods) -> list[npt.NDArray[np.int64]]:
    """Of every node in position order: by GPUs in use, each quantity of ``TOTALS``."""
    listed = node_kinds(cluster)
    known = {kind: _totals([kind], typical)[0] for kind in dict.fromkeys(listed)}
    return [known[kind] for kind in listed]


def node_kinds(cluster: Cluster) -> list[NodeKind]:
    """The kind of every node, in position order."""
    table, watts = cluster.offered, cluster.watts
    capacities = [table[name].to_pylist() for name in NodeKind._fields[:4]]
    draws = [
        np.rint(1000 * watts[f"{name.removesuffix('_mw')}_w"].to_numpy()).astype(np.int64).tolist()
        for name in NodeKind._fields[4:8]
    ]
    cores = watts["cpu_cores_per_socket"].to_pylist()
    return list(map(NodeKind, *capacities, *draws, cores, cluster.partitioned_gpus.tolist()))


def node_of_gpu(cluster: Cluster, gpu_models: tuple[str, ...]) -> npt.NDArray[np.int32]:
    """Position of the node of every whole GPU."""
    nodes = cluster.offered.select(["gpu_model", "num_gpu"]).to_pylist()
    position__u = [
        position
        for model in gpu_models
        for position, node in enumerate(nodes)
        if node["gpu_model"] == model
        for _ in range(node["num_gpu"])
    ]
    return np.array(position__u, np.int32)


def _totals(distinct: list[NodeKind], typical: TypicalPods) -> npt.NDArray[np.int64]:
    """By kind of node, GPUs in use and quantity."""
    most = max((kind.num_gpu for kind in distinct), default=0)
    table = np.zeros((max(len(distinct), 1), most + 1, len(TOTALS)), np.int64)
    for k, kind in enumerate(distinct):
        for used in range(kind.num_gpu + 1):
            table[k, used] = list(quantities(kind, used, typical).values())
    return table


def quantities(kind: NodeKind, used: int, typical: TypicalPods) -> dict[str, Any]:
    """The node's part of each total while ``used`` of its GPUs are held, each as a whole; no CPU is."""
    return {
        "nodes_used": int(used > 0), "gpus_of_used_nodes": kind.num_gpu if used else 0, "gpus_used": used,
        "cpu_alloc": 0, "mem_alloc": 0, "gpu_alloc": WHOLE * used,
        "cpu_cap": kind.cpu_milli, "mem_cap": kind.memory_mib, "gpu_cap": WHOLE * kind.num_gpu,
        **dict(zip(FRAG_COLUMNS, free_by_class(kind, kind.num_gpu - used, typical), strict=True)),
        "cpu_mw": cpu_draw(kind), "gpu_mw": gpu_draw(kind, used),
    }  # fmt: skip


def free_by_class(kind: NodeKind, free_gpus: int, typical: TypicalPods) -> tuple[int, ...]:
    """Milli-GPU of the free GPUs by class of fragmentation, summed over typical pods with their counts as weights."""
    weights = dict.fromkeys(FRAG_COLUMNS, 0)
    rows = zip(typical.cpu_milli, typical.gpu_milli, typical.num_gpu, typical.gpu_models, typical.count, strict=True)
    for cpu_milli, gpu_milli, num_gpu, models, count in rows:
        enough_cpu, enough_gpus = cpu_milli <= kind.cpu_milli, num_gpu <= free_gpus
        if gpu_milli == 0:
            name = "xl_satisfied" if enough_cpu else "xr_lack_cpu"
        elif models and kind.gpu_model not in models:
            name = "no_access"
        elif enough_gpus:  # a free GPU is wholly free, so nothing of it is too small
            name = "q3_satisfied" if enough_cpu else "q4_lack_cpu"
        else:
            name = "q2_lack_gpu" if enough_cpu else "q1_lack_both"
        weights[name] += count
    return tuple(WHOLE * free_gpus * weight for weight in weights.values())


def cpu_draw(kind: NodeKind) -> int:
    """Milliwatts of the sockets of a node without CPUs in use; a core that the node has in part counts as in use."""
    cores, started = -(-kind.cpu_milli // CORE), int(kind.cpu_milli % CORE > 0)
    sockets = -(-cores // kind.cores_per_socket)
    return kind.cpu_idle_mw * sockets + (kind.cpu_peak_mw - kind.cpu_idle_mw) * started


def gpu_draw(kind: NodeKind, used: int) -> int:
    """Milliwatts of the GPUs; those that are partitioned are never used in rounds."""
    return kind.gpu_peak_mw * used + kind.gpu_idle_mw * (kind.num_gpu - used + kind.mig_gpus)

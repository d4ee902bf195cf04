"""Fragmentation and power of each node after every change, from stays: the terms whose sums over nodes are a timeline.

All changes of all nodes are one array here, as a cluster may have tens of thousands; the audit itself goes through
nodes one by one, in integers.
"""

from __future__ import annotations

from operator import itemgetter

import numpy as np
import numpy.typing as npt
import polars as pl

from fastsim.engine.audit.inputs import WHOLE, Evidence
from fastsim.engine.audit.nodes import CORE, changes_by_node, milliwatts

Integers = npt.NDArray[np.int64]


def node_series(run: Evidence) -> pl.DataFrame:
    """``node_id``, ``begin_s``, ``end_s`` (infinite for the last), ``frag_milli``, ``power_w`` of each state."""
    node, t_s, there, cpu, used = _changes(run)
    gpus = np.array([row["num_gpu"] for row in run.nodes], np.int64)[node]
    free = np.where(np.arange(used.shape[1]) < gpus[:, None], WHOLE - used, 0)
    states = pl.DataFrame({
        "node_id": node, "begin_s": t_s, "frag_milli": there * _fragmented(run, node, cpu, free),
        "power_w": there * _watts(run, node, cpu, (used > 0).sum(axis=1)),
    })  # fmt: skip
    states = states.group_by("node_id", "begin_s", maintain_order=True).last().filter(pl.col("begin_s") < np.inf)
    end_s = pl.col("begin_s").shift(-1).over("node_id").fill_null(np.inf)
    return states.select("node_id", "begin_s", end_s.alias("end_s"), "frag_milli", "power_w")


def _changes(run: Evidence) -> tuple[Integers, npt.NDArray[np.float64], npt.NDArray[np.bool_], Integers, Integers]:
    """Node, second, presence, milli-CPU in use and milli-GPU in use by device, after each change of each node."""
    by_node = changes_by_node(run)
    listed = [(node, change) for node in sorted(by_node) for change in sorted(by_node[node], key=itemgetter(0))]
    width = max((row["num_gpu"] for row in run.nodes), default=0)
    used, cpu = np.zeros((len(listed), width), np.int64), np.zeros(len(listed), np.int64)
    for place, (_, (_, sign, cpu_milli, _, devices, milli, _)) in enumerate(listed):
        cpu[place] = sign * cpu_milli
        for gpu in devices:
            used[place, gpu] += sign * milli
    # Each stay ends, if only at infinity: sums over all nodes begin at zero for each.
    used, cpu = used.cumsum(axis=0), cpu.cumsum()
    if run.allocates_gpus_alone:
        used = WHOLE * (used > 0)
    tells = np.array([change[1] == 0 for _, change in listed])
    comes = np.array([change[6] > 0 for _, change in listed])
    there = comes[np.maximum.accumulate(np.where(tells, np.arange(len(listed)), 0))]
    nodes = np.array([node for node, _ in listed], np.int64)
    return nodes, np.array([change[0] for _, change in listed]), there, cpu, used


def _fragmented(run: Evidence, node: Integers, cpu: Integers, free: Integers) -> npt.NDArray[np.float64]:
    """Milli-GPU that a typical pod, drawn by its count, cannot use."""
    typical, total = run.typical, free.sum(axis=1)
    cpu_free = np.array([row["cpu_milli"] for row in run.nodes], np.int64)[node] - cpu
    useful = np.zeros(len(node), np.int64)
    rows = zip(typical.cpu_milli, typical.gpu_milli, typical.num_gpu, typical.gpu_models, typical.count, strict=True)
    for cpu_milli, milli, gpus, models, count in rows:
        if not milli:
            continue
        fits = free >= milli
        taken = np.array([not models or row["gpu_model"] in models for row in run.nodes])[node]
        satisfied = taken & (cpu_milli <= cpu_free) & (fits.sum(axis=1) >= gpus)
        useful += count * satisfied * (free * fits).sum(axis=1)
    kept = typical.kept
    unused: npt.NDArray[np.float64] = (kept * total - useful) / max(kept, 1)
    return unused


def _watts(run: Evidence, node: Integers, cpu: Integers, busy: Integers) -> npt.NDArray[np.float64]:
    """Draw of sockets and GPUs: those in use their peak, others their idle power."""

    def column(name: str) -> Integers:
        return np.array([int(row[name]) for row in run.nodes], np.int64)[node]

    def draw(name: str) -> Integers:
        return np.array([milliwatts(row, name) for row in run.nodes], np.int64)[node]

    capacity, per_socket = column("cpu_milli"), column("cpu_cores_per_socket")
    cores = -(-capacity // CORE)
    sockets = -(-cores // per_socket)
    awake = -(-(cores - (capacity - cpu) // CORE) // per_socket)
    milli = draw("cpu_peak_w") * awake + draw("cpu_idle_w") * (sockets - awake)
    milli += draw("gpu_peak_w") * busy + draw("gpu_idle_w") * (column("num_gpu") - busy)
    return milli / 1000

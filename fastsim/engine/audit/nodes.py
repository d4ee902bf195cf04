"""The state of nodes under stays: GPUs, CPUs and memory held, fragmentation and power after every change.

The changes of each node are applied instant by instant; the cluster's state is the sum over its nodes.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np
import polars as pl

from fastsim.engine.audit.inputs import WHOLE, Evidence

CLASSES = (
    "q1_lack_both", "q2_lack_gpu", "q3_satisfied", "q4_lack_cpu", "xl_satisfied", "xr_lack_cpu", "no_access",
)  # fmt: skip
QUANTITIES = (
    "active_nodes", "active_node_gpus", "active_gpus", "cpu_milli_alloc", "memory_mib_alloc", "gpu_milli_alloc",
    "cpu_milli_capacity", "memory_mib_capacity", "gpu_milli_capacity", *CLASSES, "power_cpu_mw", "power_gpu_mw",
)  # fmt: skip
"""Integers of a node and of a cluster; classes are weighted with counts of typical pods, power is in milliwatts."""
ABSENT = (0,) * len(QUANTITIES)
CORE = 2 * WHOLE
"""Milli-CPU of a physical core."""

Change = tuple[float, int, int, int, tuple[int, ...], int, int]
"""Time, change of stays (1, -1 or 0), milli-CPU, MiB, devices, milli-GPU of each; for 0, whether the node is added."""


@dataclass
class NodeUse:
    """Resources in use on a node: milli-CPU, MiB, milli-GPU of each device; and whether the node is present."""

    devices: list[int]
    cpu: int = 0
    memory: int = 0
    present: bool = True
    most: dict[str, int] = field(default_factory=dict)

    def take(self, change: Change) -> None:
        """Apply a change."""
        _, sign, cpu, memory, gpus, milli, comes = change
        if not sign:
            self.present = comes > 0
        self.cpu += sign * cpu
        self.memory += sign * memory
        for gpu in gpus:
            self.devices[gpu] += sign * milli


def states(run: Evidence) -> tuple[pl.DataFrame, list[tuple[str, float, str]]]:
    """The cluster after each instant at which it changes: ``t_s`` and ``QUANTITIES``, first before all of them.

    And overcommitted nodes: name, time, resources.
    """
    changes = changes_by_node(run)
    amounts = [np.array([-np.inf, *ABSENT])]
    overcommitted: list[tuple[str, float, str]] = []
    quantities_of: dict[Any, tuple[int, ...]] = {}
    for position, node in enumerate(run.nodes):
        held = NodeUse([0] * node["num_gpu"], present=run.in_rounds or node["add_s"] is None)
        before = ABSENT
        shape = tuple(node[name] for name in node if name not in ("node_id", "name", "labels", "extra_resources"))
        for t_s, together in _by_instant(changes.get(position, [])):
            for change in together:
                held.take(change)
            key = (shape, held.present, held.cpu, held.memory, tuple(held.devices))
            if key not in quantities_of:
                quantities_of[key] = quantities(run, node, held)
            amounts.append(np.array([t_s, *np.subtract(quantities_of[key], before)]))
            before = quantities_of[key]
            if (resources := _overcommitted(node, held)) and held.present:
                overcommitted.append((node["name"], t_s, resources))
    frame = pl.DataFrame(np.array(amounts), schema=["t_s", *QUANTITIES]).cast(dict.fromkeys(QUANTITIES, pl.Int64))
    summed = frame.group_by("t_s", maintain_order=True).agg(pl.col(QUANTITIES).sum()).sort("t_s")
    return summed.with_columns(pl.col(QUANTITIES).cum_sum()), overcommitted


def changes_by_node(run: Evidence) -> dict[int, list[Change]]:
    """Changes of each node, by position: starts and ends of stays, additions and removals.

    In rounds a job has its GPUs until the round ends, also on a node that is removed, so nodes are there all the time.
    """
    changes: dict[int, list[Change]] = defaultdict(list)
    columns = ("node_id", "start_s", "end_s", "cpu_milli", "memory_mib", "gpu_ids", "milli")
    for node, start_s, end_s, cpu, memory, gpus, milli in run.stays.select(columns).iter_rows():
        amounts = (cpu, memory, tuple(gpus), milli, 0)
        if end_s > start_s:
            changes[node] += [(start_s, 1, *amounts), (end_s, -1, *amounts)]
    for position, node in enumerate(run.nodes):
        seconds = () if run.in_rounds else ((node["add_s"], 1), (node["remove_s"], 0))
        begins = int(run.in_rounds or node["add_s"] is None)
        changes[position].append((-np.inf, 0, 0, 0, (), 0, begins))
        changes[position] += [(t_s, 0, 0, 0, (), 0, comes) for t_s, comes in seconds if t_s is not None]
    return changes


def quantities(run: Evidence, node: dict[str, Any], held: NodeUse) -> tuple[int, ...]:
    """The node's part of each quantity."""
    if not held.present:
        return ABSENT
    # In rounds and under containers, a GPU is in use as a whole, however many jobs share it.
    used = [WHOLE * (milli > 0) if run.allocates_gpus_alone else milli for milli in held.devices]
    busy = sum(milli > 0 for milli in used)
    active = busy > 0 or held.cpu > 0
    return (
        int(active), node["num_gpu"] * active, busy, held.cpu, held.memory, sum(used),
        node["cpu_milli"], node["memory_mib"], WHOLE * node["num_gpu"],
        *free_by_class(run, node["gpu_model"], node["cpu_milli"] - held.cpu, [WHOLE - milli for milli in used]),
        cpu_milliwatts(node, held.cpu), gpu_milliwatts(node, busy),
    )  # fmt: skip


def free_by_class(run: Evidence, model: str | None, cpu_free: int, free: list[int]) -> tuple[int, ...]:
    """Free milli-GPU by class of fragmentation, summed over typical pods with their counts as weights."""
    typical, total = run.typical, sum(free)
    sums = dict.fromkeys(CLASSES, 0)
    rows = zip(typical.cpu_milli, typical.gpu_milli, typical.num_gpu, typical.gpu_models, typical.count, strict=True)
    for cpu, milli, gpus, models, count in rows:
        enough_cpu = cpu <= cpu_free
        enough_gpu = sum(one >= milli for one in free) >= gpus
        if not milli:
            sums["xl_satisfied" if enough_cpu else "xr_lack_cpu"] += count * total
        elif models and model not in models:
            sums["no_access"] += count * total
        elif enough_gpu and enough_cpu:
            fitting = sum(one for one in free if one >= milli)
            sums["q3_satisfied"] += count * fitting
            sums["q2_lack_gpu"] += count * (total - fitting)
        else:
            lack = "q4_lack_cpu" if enough_gpu else "q2_lack_gpu" if enough_cpu else "q1_lack_both"
            sums[lack] += count * total
    return tuple(sums.values())


def cpu_milliwatts(node: dict[str, Any], cpu_milli: int) -> int:
    """Draw of the sockets, mW: a socket with a core in use draws its peak; two threads share a core."""
    capacity = int(node["cpu_milli"])
    cores = -(-capacity // CORE)
    working = cores - (capacity - cpu_milli) // CORE
    per_socket = int(node["cpu_cores_per_socket"])
    sockets, awake = -(-cores // per_socket), -(-working // per_socket)
    peak, idle = milliwatts(node, "cpu_peak_w"), milliwatts(node, "cpu_idle_w")
    return peak * awake + idle * (sockets - awake)


def gpu_milliwatts(node: dict[str, Any], busy: int) -> int:
    """Draw of the GPUs, mW: one in use draws its peak, others their idle power."""
    unused: int = node["num_gpu"] - busy
    return milliwatts(node, "gpu_peak_w") * busy + milliwatts(node, "gpu_idle_w") * unused


def milliwatts(node: dict[str, Any], column: str) -> int:
    """A column in watts as whole milliwatts."""
    return round(1000 * float(node[column]))


def _overcommitted(node: dict[str, Any], held: NodeUse) -> str:
    """The resources of which more is in use than the node has; "" if there are none."""
    full = [f"GPU {gpu} {milli} milli" for gpu, milli in enumerate(held.devices) if milli > WHOLE]
    for name, amount in (("cpu_milli", held.cpu), ("memory_mib", held.memory)):
        full += [f"{name} {amount}"] if amount > node[name] else []
    return ", ".join(full)


def _by_instant(changes: list[Change]) -> list[tuple[float, list[Change]]]:
    """Changes in order, those of one instant together."""
    by_instant: dict[float, list[Change]] = defaultdict(list)
    for change in sorted(changes, key=itemgetter(0)):
        by_instant[change[0]].append(change)
    return [(t_s, together) for t_s, together in by_instant.items() if t_s < np.inf]

"""Columns of the compiled tables, from a cluster, a target workload and a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce, wraps
from operator import add
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fastsim.engine.online.plan import DIMS, GPU_PICKS, KERNELS, NORMALISERS, NORMS, OnlinePlan
from fastsim.errors import InputError
from fastsim.foundation.columns.content_equality import ValueByObject
from fastsim.hardware.node_constraints import MAX_GPUS

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.workload.typical_pods import TypicalPods

Columns = dict[str, Any]
WHOLE = 1000
"""Milli-GPU of a whole device."""
LARGEST_CPU, LARGEST_GPU = 128_000, 8000
"""Milli-CPU and milli-GPU of the largest node that the formulas cover."""
CACHE_LINE = 64
"""Bytes."""
TOGETHER = ("frag_classes", "before", "frag", "cpu_mw", "gpu_mw", "mig_used", "gpu_left", "tags", "free", "listed")
"""Columns that change with every pod of a node, widest numbers first."""
LANES = 8
"""Device rows are padded to a multiple of this; the kernels' loops rely on it."""
COLUMN_SETTINGS = {
    "window_changes": 4096, "long_window_changes": 32768, "drop_changes": 4096,
    "upkeep_ns": 70, "look_ns": 40, "search_ns": 1000, "miss_ns": 20, "worth_ns": 150, "near_nodes": 20_000,
    "few_classes": 192, "columns_bytes": 96 * 2**20, "least_columns": 16, "memo_bytes": 64 * 2**20,
    "memo_node_bytes": 1536, "most_gaps": 8, "pack_changes": 250_000,
}  # fmt: skip
"""Costs and limits that decide which scores are kept between decisions; no result depends on them.

After ``window_changes`` changes of nodes the requests of a pod class count half, after ``long_window_changes`` those
of a bound; every ``drop_changes`` columns that no longer pay are given up. A column costs about ``upkeep_ns`` at each
change; it saves a look at all nodes, ``look_ns`` each, or a search below a bound, ``search_ns`` and ``worth_ns``
(``miss_ns``) for each node it comes across that can (cannot) host the pod, and as much again for every ``near_nodes``
nodes of the cluster, because their data is further away in memory. Up to ``few_classes`` pod classes may each
have a place in the memo, which takes up to ``memo_bytes`` and ``memo_node_bytes`` for each node; all columns
together take up to ``columns_bytes``, but ``least_columns`` are always allowed. Columns are moved together when
given-up ones left more than ``most_gaps`` gaps, but at most once every ``pack_changes``.
"""
CACHED_KERNELS = ("fgd", "dot_product")
"""Kernels whose points are cheaper to look up than to compute."""
MOST_TYPICAL = 2**53 // (MAX_GPUS * WHOLE)
"""Typical pods count no more than this together, so that floats hold count times milli-GPU of a node exactly."""
KIND = np.dtype([("level", np.int32), ("num", np.int32), ("models", np.uint64)])
"""A distinct request for devices, as the compiled tables hold it."""
UNUSABLE = 4
"""Classes of fragmentation that are summed for requests of devices: all of theirs but the satisfied one."""
STRIP, STRIPS = 128, 1024
"""CPU ranks are value by strips of so many milli-CPU, as in fastsim_ext.scores.frag_grouped."""
MAX_MODELS = 63
"""Distinct GPU models of one cluster; the 64th bit of a mask means a model the cluster lacks."""


MAX_TERMS = 8
LARGEST_TOTAL = 2**29
"""Totals, and the points that are stretched, stay below this and above its negative where they are kept."""


class ModelIds:
    """GPU model names of one cluster as small numbers, and sets of them as 64-bit masks."""

    def __init__(self, names: Iterable[str | None]) -> None:
        self.number = {name: i for i, name in enumerate(dict.fromkeys(n for n in names if n is not None))}
        if len(self.number) > MAX_MODELS:
            raise InputError("cluster: gpu_model", f"{len(self.number)} distinct models", f"at most {MAX_MODELS}")

    def mask(self, models: Iterable[str]) -> int:
        """Bits of the models; 0 for an empty list (any model)."""
        bits = 0
        for model in models:
            bits |= 1 << self.number.get(model, MAX_MODELS)
        return bits


Value = TypeVar("Value")


def once_each(look: Callable[[Cluster], Value]) -> Callable[[Cluster], Value]:
    """Cache the value of ``look`` for as long as its cluster exists; the value must not be changed."""
    known: ValueByObject[Cluster, Value] = ValueByObject()

    @wraps(look)
    def cached(cluster: Cluster) -> Value:
        value = known.get(cluster)
        if value is None:
            value = known[cluster] = look(cluster)
        return value

    return cached


_empty: ValueByObject[Cluster, tuple[list[str], Columns]] = ValueByObject()
"""For clusters that still exist: model names and the columns of their empty nodes."""
_SCRATCH = ("fit", "small", "unusable")


def node_columns(cluster: Cluster, ids: ModelIds) -> Columns:
    """Capacity, power and an empty state for every node, in position order."""
    models, cached = list(ids.number), _empty.get(cluster)
    if cached is None or cached[0] != models:
        cached = _empty[cluster] = models, _empty_nodes(cluster, ids)
    return side_by_side({name: column.copy() for name, column in cached[1].items()})


def side_by_side(columns: Columns) -> Columns:
    """The same columns, of which those that change together and are never searched lie in one row for each node.

    In large clusters most rows are not in the cache, and a change fetches few lines instead of one for each column.
    """
    fields: list[Any] = [(name, columns[name].dtype, columns[name].shape[1:]) for name in TOGETHER]
    gap, count = -np.dtype(fields).itemsize % CACHE_LINE, len(columns["present"])
    row = np.dtype([*fields, ("gap", np.uint8, (gap,))])
    memory = np.empty(count * row.itemsize + CACHE_LINE, np.uint8)
    first = -memory.ctypes.data % CACHE_LINE
    rows = memory[first : first + count * row.itemsize].view(row)
    for name in TOGETHER:
        rows[name][...] = columns[name]
    return columns | {name: rows[name] for name in TOGETHER}


def fresh_target(columns: Columns) -> Columns:
    """The columns of a target workload with scratch of their own, for tables that write to it."""
    groups = columns["groups"]
    own = {name: columns[name].copy() for name in _SCRATCH}
    return columns | own | {"groups": groups | {"scratch": groups["scratch"].copy()}}


def _empty_nodes(cluster: Cluster, ids: ModelIds) -> Columns:
    table = cluster.offered
    n = table.num_rows
    num_gpu = _ints(table, "num_gpu", np.int32)
    width = max(LANES, -(-int(num_gpu.max(initial=0)) // LANES) * LANES)
    cap = np.where(np.arange(width) < num_gpu[:, None], 1000, 0).astype(np.int32)
    present = table["add_s"].is_null().to_numpy(zero_copy_only=False) if n else np.zeros(0, bool)
    cpu, mem = _ints(table, "cpu_milli", np.int64), _ints(table, "memory_mib", np.int64)
    return {
        "cpu_cap": cpu, "mem_cap": mem, "num_gpu": num_gpu,
        "mig_gpus": cluster.partitioned_gpus, "mig_used": np.zeros(n, np.int64),
        "model": _model_numbers(table, ids),
        "max_pods": _ints(table, "max_pods", np.int32, missing=np.iinfo(np.int32).max),
        **power_columns(cluster),
        "cpu_left": cpu.copy(), "mem_left": mem.copy(), "pods": np.zeros(n, np.int32),
        "gpu_left": cap, "tags": np.zeros((n, int(num_gpu.max(initial=0)) + 1), np.int32),
        "present": present.astype(np.uint8),
        "frag": np.zeros(n), "frag_classes": np.zeros((n, 7), np.int64),
        "cpu_mw": np.zeros(n, np.int64), "gpu_mw": np.zeros(n, np.int64),
        "changed": np.zeros(n, np.int32), "listed": np.zeros(n, np.uint8),
        "before": np.zeros(n), "free": np.zeros(n, np.int32), "spare": np.zeros(n, np.int32),
    }  # fmt: skip


def node_kinds(columns: Columns) -> tuple[Any, Any]:
    """(distinct rows of node properties, kind of every node); nodes with equal properties are of one kind."""
    names = ("cpu_cap", "mem_cap", "num_gpu", "model", "gpu_idle_mw", "gpu_peak_mw", "cpu_idle_mw", "cpu_peak_mw",
             "cores")  # fmt: skip
    table = np.column_stack([columns[name].astype(np.int64) for name in names])
    order = np.lexsort(table.T[::-1])
    rows = table[order]
    new = np.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    kind = np.empty(len(rows), np.int32)
    kind[order] = np.cumsum(new) - 1
    return rows[new], kind


@once_each
def largest_points(cluster: Cluster) -> dict[str, float]:
    """Bounds of the absolute points of kernels on any node; kernels without bounds are absent."""
    columns = _empty_nodes(cluster, ModelIds(cluster.nodes["gpu_model"].unique().to_pylist()))

    def most(values: Any) -> float:
        return float(np.max(values, initial=0))

    cpu, gpus = columns["cpu_cap"], columns["num_gpu"]
    sockets = -(-cpu // 2000 // columns["cores"]) + 1
    watts = gpus * (columns["gpu_peak_mw"] - columns["gpu_idle_mw"]) / 1000
    watts += sockets * (columns["cpu_peak_mw"] - columns["cpu_idle_mw"]) / 1000
    large_cpu, large_gpu = most(cpu) / LARGEST_CPU, most(gpus) * WHOLE / LARGEST_GPU
    return {
        "fgd": 100, "gpu_packing": 100, "gpu_clustering": 100 * (1 + large_gpu),
        "best_fit": 100 * (1 + large_cpu + large_gpu), "dot_product": 100 * (1 + large_cpu**2 + large_gpu**2),
        "pwr": most(watts) + 1, "simon": 100 * (most(cpu) + most(columns["mem_cap"]) + 1),
    }  # fmt: skip


def power_columns(cluster: Cluster) -> Columns:
    """Milliwatts of one device and one CPU socket, and cores of a socket, for every node."""
    watts = cluster.watts
    columns = {
        f"{name}_mw": np.rint(1000 * watts[f"{name}_w"].to_numpy()).astype(np.int64)
        for name in ("gpu_idle", "gpu_peak", "cpu_idle", "cpu_peak")
    }
    return {**columns, "cores": watts["cpu_cores_per_socket"].to_numpy().astype(np.int32)}


@once_each
def change_columns(cluster: Cluster) -> Columns:
    """Nodes that appear or disappear during the run, by (time in s, position, appearance first)."""
    at_s = [cluster.nodes[name].to_numpy() for name in ("add_s", "remove_s")]  # NaN = never
    nodes = [np.flatnonzero(~np.isnan(times)) for times in at_s]
    time_s = np.concatenate([times[n] for times, n in zip(at_s, nodes, strict=True)])
    node, kind = np.concatenate(nodes), np.repeat([0, 1], [len(n) for n in nodes])
    order = np.lexsort((kind, node, time_s))
    return {
        "change_t": time_s[order].astype(np.float64),
        "change_node": node[order].astype(np.int32),
        "change_adds": (1 - kind[order]).astype(np.int32),
    }


def typical_columns(typical: TypicalPods, ids: ModelIds) -> Columns:
    """The target workload with its distinct device requests numbered: pods with devices first, else in given order.

    No class of fragmentation has pods of both sorts, so each is still summed in the given order.
    """
    levels = np.unique(np.array([milli for milli in typical.gpu_milli if milli > 0], np.int32))
    requests = [request if request[0] > 0 else (0, 0, 0) for request in _device_requests(typical, ids)]
    number = {request: k for k, request in enumerate(sorted(set(requests)))}
    kinds = [(int(np.searchsorted(levels, milli)) if milli > 0 else -1, num, models) for milli, num, models in number]
    bare = np.array([milli == 0 for milli, _, _ in requests], bool)
    order = np.argsort(bare, kind="stable")
    return {
        "cpu": np.array(typical.cpu_milli, np.int64)[order], "count": np.array(typical.count, np.int64)[order],
        "freq": np.array(typical.frequency, np.float64)[order], "n_gpu": int(len(bare) - bare.sum()),
        "kind": np.array([number[request] for request in requests], np.int32)[order], "kinds": np.array(kinds, KIND),
        "level_milli": levels, "fit": np.zeros(len(levels), np.int32), "small": np.zeros(len(levels), np.int64),
        "unusable": np.zeros((2 * len(kinds), UNUSABLE)), "groups": group_columns(typical, ids),
    }  # fmt: skip


def _device_requests(typical: TypicalPods, ids: ModelIds) -> list[tuple[int, int, int]]:
    """Milli of each device, devices and allowed models as bits, by typical pod."""
    models = (ids.mask(models) for models in typical.gpu_models)
    return list(zip(typical.gpu_milli, typical.num_gpu, models, strict=True))


def group_columns(typical: TypicalPods, ids: ModelIds) -> Columns:
    """The target workload by device request: sums of shares and counts over rising CPU requests.

    A row of the two sums belongs to a CPU rank, the number of distinct CPU requests that are satisfied. Groups are
    padded to a multiple of four with some that no node can serve.
    """
    if typical.kept > MOST_TYPICAL:
        raise InputError("typical pods: count", f"{typical.kept} together", f"at most {MOST_TYPICAL}")
    cpus = sorted(set(typical.cpu_milli))
    requests = _device_requests(typical, ids)
    groups = sorted({request for request in requests if request[0] > 0})
    n = max(4, -(-len(groups) // 4) * 4)
    share, count = np.zeros((len(cpus) + 1, n)), np.zeros((len(cpus) + 1, n), np.int64)
    cpu_only = np.zeros(len(cpus) + 1, np.int64)
    for request, cpu, weight, frequency in zip(
        requests, typical.cpu_milli, typical.count, typical.frequency, strict=True
    ):
        above = slice(cpus.index(cpu) + 1, None)
        if request[0] == 0:
            cpu_only[above] += weight
        else:
            share[above, groups.index(request)] += frequency
            count[above, groups.index(request)] += weight
    padding = [(WHOLE + 1, 127, 0)] * (n - len(groups))
    least, num, masks = zip(*groups, *padding, strict=True)
    left, milli = np.arange(WHOLE + 1)[:, None], np.array(least)
    models = [0, *(1 << model for model in range(len(ids.number)))]
    open_ = [[-(mask == 0 or mask & model != 0) for mask in masks] for model in models]
    return {
        "cpu": np.array(cpus, np.int64), "num": np.array(num, np.int32),
        "strip": np.searchsorted(cpus, STRIP * np.arange(STRIPS), side="right").astype(np.int32),
        "fits": (left >= milli).astype(np.int32), "small": np.where(left < milli, left, 0).astype(np.int32),
        "open": np.array(open_, np.int32), "share": share, "count": count.astype(np.float64), "cpu_only": cpu_only,
        "opens": -np.array(open_, np.int64) @ count.T, "with_gpu": int(count[-1].sum()),
        "all": reduce(add, typical.frequency, 0.0), "scratch": np.zeros((MAX_GPUS, n), np.int32),
    }  # fmt: skip


def indexable(plan: OnlinePlan, cluster: Cluster) -> bool:
    """Whether scores may be kept under the plan: points of a node must follow from its state and the pod alone."""
    points, terms = largest_points(cluster), plan.node_terms
    if len(terms) > MAX_TERMS or any(points.get(term.kernel, LARGEST_TOTAL) >= LARGEST_TOTAL for term in terms):
        return False
    several = len(terms) > 1
    totals = [
        abs(term.weight) * (100 if several and term.normalise != "none" else points[term.kernel]) for term in terms
    ]
    return sum(totals) < LARGEST_TOTAL


def plan_columns(plan: OnlinePlan, nodes: int) -> Columns:
    """The plan's terms as parallel columns, and the scratch a decision over ``nodes`` nodes needs.

    Scores of preferences are not among them: whoever decides about pods that have any adds those.
    """
    terms = plan.node_terms

    def code(names: tuple[str, ...], field: str) -> Any:
        return np.array([names.index(getattr(term, field)) for term in terms], np.int32)

    cached = np.array([term.kernel in CACHED_KERNELS for term in terms], bool)
    return {
        "figure": np.where(cached, np.cumsum(cached) - 1, -1).astype(np.int32),
        "kernel": code(KERNELS, "kernel"), "normalise": code(NORMALISERS, "normalise"),
        "dim": code(DIMS, "dim"), "norm": code(NORMS, "norm"),
        "weight": np.array([term.weight for term in terms], np.int64),
        "gpu_pick": GPU_PICKS.index(plan.gpu_pick),
        "gpu_dim": DIMS.index(plan.gpu_dim), "gpu_norm": NORMS.index(plan.gpu_norm),
        "column_settings": dict(COLUMN_SETTINGS),
        "feasible": np.zeros(nodes, np.int32), "raw": np.zeros(nodes, np.int64), "total": np.zeros(nodes, np.int64),
    }  # fmt: skip


def read_only(columns: Mapping[str, Any]) -> Columns:
    """Read-only views of the columns, for code outside the engine."""
    views = {}
    for name, column in columns.items():
        views[name] = column.view()
        views[name].flags.writeable = False
    return views


def _ints(table: Any, name: str, kind: type, missing: int = 0) -> Any:
    return table[name].fill_null(missing).to_numpy().astype(kind)


def _model_numbers(table: Any, ids: ModelIds) -> Any:
    """The number of every node's GPU model; -1 without GPUs."""
    models = table["gpu_model"].combine_chunks().dictionary_encode()
    numbers = np.array([*(ids.number[name] for name in models.dictionary.to_pylist()), -1], np.int32)
    return numbers[models.indices.fill_null(len(models.dictionary)).to_numpy()]

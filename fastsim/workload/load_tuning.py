"""The workload protocol of the FGD experiments: order or shuffle the pods, then add or drop some to reach a load.

Pods keep their ids, and clones have later ones. They have no times here: every result arrives at 0, 1, 2, ... s and
never ends. Shuffling and tuning draw as the original simulator does, one after the other from one generator: a seed
gives its pods in its order. Only here the clones of an inflation have a seed; they come from a stream of fastsim's own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastsim.errors import ScenarioError
from fastsim.foundation.draws.go_random import DRAWN, GoRandom
from fastsim.foundation.draws.random_streams import Ints, Stream
from fastsim.foundation.limits.knobs import INFLATED, TUNE
from fastsim.hardware.mig import gpu_milli
from fastsim.hardware.node_constraints import further
from fastsim.workload import schema as s
from fastsim.workload.pod_rows import Held, PodRows
from fastsim_ext.random import rows_taken

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster

NO_DRAWS: Mapping[str, str] = {}
_TIMED = (s.DURATION_S, s.DEADLINE_S, s.EST_DURATION_S, s.ORIG_START_S, s.ORIG_END_S, s.CENSORED)


def ordered(workload: PodRows) -> PodRows:
    """The pods sorted by name as text (by position where there are no names)."""
    table = workload.table()
    return _order_only(workload, table.take(pa.array(_by_name(table))), {"order": "name"})


def shuffled(workload: PodRows, seed: int = 0) -> PodRows:
    """The pods sorted by name and then shuffled, as the original does with ``--shuffle-pod true -tuneseed SEED``."""
    table, draws = workload.table(), GoRandom.of_run(seed)
    order = _by_name(table)
    draws.shuffle(order)
    note = {"order": "shuffled", "seed": seed}
    return _order_only(workload, table.take(pa.array(order)), note, _drawn(seed, draws))


def tuned(workload: PodRows, ratio: float, cluster_gpu_milli: int, seed: int = 0) -> PodRows:
    """Pods dropped or cloned until the GPU request is about `ratio` times the cluster's; 0 changes nothing.

    Clones follow the pods, are drawn from all of them with equal chance and are named `<name>-tuned-<k>`. The draws
    follow those of `shuffled` if that had the same seed.
    """
    table, draws = workload.table(), GoRandom.of_run(seed, workload)
    note = {"ratio": ratio, "cluster_gpu_milli": cluster_gpu_milli, "seed": seed}
    if not 0 <= ratio < math.inf:
        raise ScenarioError("workload.tune: ratio", ratio, "a finite number of 0 or more")
    if ratio == 0:
        return _order_only(workload, table, note, _drawn(seed, draws))
    rows, clones = tune_rows(
        gpu_milli=table[s.GPU_MILLI].to_numpy(), num_gpu=table[s.NUM_GPU].to_numpy(), target=ratio * cluster_gpu_milli,
        draws=draws, source=_by_name(table), instances_milli=_instances_milli(table),
    )  # fmt: skip
    return _order_only(workload, _with_clones(table, rows, clones, "tuned"), note, _drawn(seed, draws))


def _drawn(seed: int, draws: GoRandom) -> dict[str, str]:
    return {DRAWN: f"{seed}:{draws.used}"}


def tune_rows(
    gpu_milli: Sequence[int] | np.ndarray[Any, Any],
    num_gpu: Sequence[int] | np.ndarray[Any, Any],
    target: float,
    draws: GoRandom,
    source: Ints | None = None,
    instances_milli: Ints | int = 0,
) -> tuple[Ints, Ints]:
    """Rows kept, in order, and rows cloned after them, so that the GPU request of all comes to about `target` milli.

    Too much: random rows go until the sum is no longer above the target; the others keep their order.
    Too little: random rows of `source` (default: all, in order) are cloned. The first candidate with which the sum
    plus the share on ONE of its devices would pass the target ends it, so the last pod with several devices may
    take the sum past the target; a CPU-only candidate always passes. ``instances_milli`` of partitioned GPUs count
    like a share of one device.
    """
    demand = np.asarray(gpu_milli, np.int64) * np.asarray(num_gpu, np.int64) + instances_milli
    per_device = np.asarray(gpu_milli, np.int64) + instances_milli
    all_rows = np.arange(len(demand))
    total = int(demand.sum())
    if total > target:
        return _thinned(demand, total, target, draws), all_rows[:0]
    if total < target and not total:
        raise ScenarioError("workload.tune", "no pod that asks for a GPU", "some GPU request to scale up")
    if total < target:
        pool = all_rows if source is None else source
        TUNE.refuse(len(demand), target, total)
        return all_rows, _cloned(
            per_device=per_device, demand=demand, total=total, target=target, draws=draws, pool=pool
        )
    return all_rows, all_rows[:0]


AT_ONCE = 1024
"""Draws that are looked at before the rows that they name go or are cloned."""


def _thinned(demand: Ints, total: int, target: float, draws: GoRandom) -> Ints:
    """The rows that stay when rows drawn one by one go, until the others ask for no more than the target."""
    left, stays = len(demand), np.ones(len(demand), bool)
    nodes = np.arange(left + 1, dtype=np.int32)
    counts = nodes & -nodes  # of the rows below each node of a Fenwick tree
    while left and total > target:
        expected = int((total - target) * left / total) + 1
        places = draws.look_ahead(np.arange(left, left - min(expected, AT_ONCE, left), -1))
        gone = np.empty_like(places)
        rows_taken(counts, places, gone)
        totals = total - np.cumsum(demand[gone])
        enough = totals <= target
        count = int(enough.argmax()) + 1 if enough.any() else len(gone)
        draws.skip(count)
        stays[gone[:count]] = False
        left, total = left - count, int(totals[count - 1])
    return np.flatnonzero(stays)


def _cloned(per_device: Ints, demand: Ints, total: int, target: float, draws: GoRandom, pool: Ints) -> Ints:
    """Rows of the pool drawn one by one, until one device of the next would take the sum past the target."""
    clones: list[Ints] = []
    bounds = np.full(AT_ONCE, len(pool))
    while True:
        rows = pool[draws.look_ahead(bounds)]
        before = total + np.cumsum(demand[rows]) - demand[rows]
        past = before + per_device[rows] > target
        if past.any():
            count = int(past.argmax())
            draws.skip(count + 1)  # the row that ends it is drawn, too
            return np.concatenate((*clones, rows[:count]))
        draws.skip(len(rows))
        clones.append(rows)
        total += int(demand[rows].sum())


def inflated(workload: PodRows, ratio: float, cluster: Cluster, seed: int = 0) -> PodRows:
    """The pods followed by ceil(n x ratio) - n clones of random ones, named `<name>-clone-<k>`.

    The first clone with which all requests together would exceed the cluster's CPU or GPU capacity ends it.
    """
    table = workload.table()
    if not (math.isfinite(ratio) and ratio >= 1):
        raise ScenarioError("workload.inflated: ratio", ratio, "1 or more")
    cpu = table[s.CPU_MILLI].to_numpy()
    gpu = table[s.GPU_MILLI].to_numpy().astype(np.int64) * table[s.NUM_GPU].to_numpy() + _instances_milli(table)
    room = (cluster.total_cpu_milli - int(cpu.sum()), cluster.total_gpu_milli - int(gpu.sum()))
    INFLATED.refuse(len(table), ratio)
    most = math.ceil(len(table) * ratio) - len(table)
    drawn = _by_name(table)[Stream(seed, "tune.inflate").below(len(table), most)] if most else np.zeros(0, np.int64)
    over = (np.cumsum(cpu[drawn]) > room[0]) | (np.cumsum(gpu[drawn]) > room[1])
    clones = drawn[: int(np.argmax(over))] if over.any() else drawn
    all_rows = np.arange(len(table))
    note = {"inflation": ratio, "seed": seed}
    noted = {name: text for name, text in workload.metadata.items() if name == DRAWN}
    return _order_only(workload, _with_clones(table, all_rows, clones, "clone"), note, noted)


# ---------------------------------------------------------------------- tables


def _instances_milli(table: pa.Table) -> Ints:
    """Milli-GPU that each pod requests as instances of partitioned GPUs."""
    milli = np.zeros(len(table), np.int64)
    columns = [name for name in (s.EXTRA_RESOURCES, s.MIG) if name in table.column_names]
    for row, cells in enumerate(table.select(columns).to_pylist() if columns else ()):
        milli[row] = gpu_milli(further(cells.get(s.EXTRA_RESOURCES), cells.get(s.MIG)))
    return milli


def _names(table: pa.Table) -> pa.Array:
    ids = table[s.POD_ID].cast(pa.string()).combine_chunks()
    if s.NATIVE_ID not in table.column_names:
        return ids
    return pc.coalesce(table[s.NATIVE_ID].combine_chunks(), ids)


def _by_name(table: pa.Table) -> Ints:
    """Row order by name as text (bytes of UTF-8); rows without names keep their positions."""
    if s.NATIVE_ID not in table.column_names:
        return np.arange(len(table))
    keyed = pa.table({"name": _names(table), "row": np.arange(len(table))})
    order: Ints = pc.sort_indices(keyed, [("name", "ascending"), ("row", "ascending")]).to_numpy().astype(np.int64)
    return order


def _with_clones(table: pa.Table, kept: Ints, clones: Ints, tag: str) -> pa.Table:
    names = _names(table)
    numbers = pa.array(np.arange(len(clones))).cast(pa.string())
    cloned = pc.binary_join_element_wise(names.take(pa.array(clones)), tag, numbers, "-")
    rows = table.take(pa.array(np.concatenate((kept, clones))))
    ids = table[s.POD_ID].to_numpy()
    fresh = ids.max(initial=-1) + 1 + np.arange(len(clones))
    rows = rows.set_column(
        rows.column_names.index(s.POD_ID), rows.schema.field(s.POD_ID), pa.array(np.concatenate((ids[kept], fresh)))
    )
    named = pa.concat_arrays([names.take(pa.array(kept)), cloned])
    if s.NATIVE_ID in rows.column_names:
        return rows.set_column(rows.column_names.index(s.NATIVE_ID), s.NATIVE_ID, named)
    return rows.append_column(s.NATIVE_ID, named)


def _order_only(
    workload: PodRows, table: pa.Table, note: Mapping[str, Any], drawn: Mapping[str, str] = NO_DRAWS
) -> PodRows:
    """Arrivals at 0, 1, 2, ... s in row order; no durations nor anything else that had a time."""
    rows = len(table)
    submit = pa.array(np.arange(float(rows)))
    keep = [name for name in table.column_names if name not in _TIMED]
    plain = pa.table({name: submit if name == s.SUBMIT_S else table[name] for name in keep}).combine_chunks()
    steps = ",".join(f"{key}={value}" for key, value in note.items())
    kept = {name: text for name, text in workload.metadata.items() if name != DRAWN}
    metadata = {**kept, **drawn, "fastsim.protocol": f"{kept.get('fastsim.protocol', '')}[{steps}]"}
    return PodRows(Held(plain), keep, name=workload.name, rows=rows, metadata=metadata)

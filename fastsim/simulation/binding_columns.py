"""Columns that restrict where a job may run: honoured by rounds, refused, or ignored with a warning.

Rounds give out whole GPUs by model. So ``gpu_models`` is honoured; requests for a part of a GPU, for a certain node or
for further resources are refused. CPU and memory must fit empty nodes; rounds that do not count them give a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastsim.engine.rounds.accepted_kinds import accepted_models
from fastsim.errors import InputError, PolicyError
from fastsim.foundation.columns.physical_types import cell_text
from fastsim.hardware.node_constraints import further
from fastsim.simulation.run_warnings import Message, unknown_memory
from fastsim.simulation.uses.columns import UnusedColumns, asks
from fastsim.workload import schema as s

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.workload import Workload

Flags = npt.NDArray[np.bool_]
WHOLE = 1000
"""Milli-GPU of a whole device."""
FREE = "nothing: rounds have GPUs by model, not nodes"


def _valid(batch: pa.RecordBatch, name: str) -> Flags:
    valid: Flags = batch[name].is_valid().to_numpy(zero_copy_only=False)
    return valid


def _shared(batch: pa.RecordBatch, name: str) -> Flags:
    parts: Flags = (batch[s.NUM_GPU].to_numpy() > 0) & (batch[name].to_numpy() < WHOLE)
    return parts


def _amounts(batch: pa.RecordBatch, name: str) -> Flags:
    return _of_values(batch, name, lambda value: bool(further(value, None)))


def _some(batch: pa.RecordBatch, name: str) -> Flags:
    return _of_values(batch, name, bool)


def _of_values(batch: pa.RecordBatch, name: str, demands: Callable[[Any], bool]) -> Flags:
    if batch[name].null_count == batch.num_rows:
        return np.zeros(batch.num_rows, bool)
    return np.array([value is not None and demands(value) for value in batch[name].to_pylist()], bool)


def _grouped(batch: pa.RecordBatch, name: str) -> Flags:
    if s.GROUP not in batch.schema.names:
        return np.zeros(batch.num_rows, bool)
    return _valid(batch, name) & _valid(batch, s.GROUP)


def _several(batch: pa.RecordBatch, name: str) -> Flags:
    return np.asarray(pc.fill_null(pc.greater(batch[name], 1), False).to_numpy(zero_copy_only=False))


REFUSED: tuple[tuple[str, Callable[[pa.RecordBatch, str], Flags], str], ...] = (
    (s.PINNED_NODE, _valid, FREE),
    (s.BOUND_NODE, _valid, f"{FREE}, and begin with empty ones"),
    (s.CONSTRAINTS, _some, FREE),
    (s.MAX_PER_NODE, _grouped, FREE),
    (s.SPREAD, _some, FREE),
    (s.NEAR, _some, FREE),
    (s.GPU_MILLI, _shared, f"{WHOLE}: rounds give out whole GPUs"),
    (s.MIG, _some, "nothing: rounds give out whole GPUs"),
    (s.EXTRA_RESOURCES, _amounts, "nothing: rounds give out GPUs, CPU and memory only"),
    (s.GANG_SIZE, _several, "1: a gang in rounds is one row with all its GPUs as num_gpu"),
)
"""Column, function of the rows of a batch that request something with it, and the value that rounds expect."""


def checked_columns(
    workload: Workload, cluster: Cluster, unused: UnusedColumns, *, by_model: bool = True
) -> list[Message]:
    """The warning about ``unused`` columns; InputError for the first job that requests what rounds lack.

    ``by_model``: rounds keep jobs on the models that they accept; otherwise every job must accept all models of the
    cluster.
    """
    if workload.endless() is not None:
        return []  # generated jobs request whole GPUs alone
    nodes, start, asks_memory = _Nodes(cluster), 0, False
    for batch in workload.batches():
        for name, wrong, expected in _faults(batch, nodes, by_model):
            row = int(np.flatnonzero(wrong)[0])
            raise InputError(f"{workload.name}:{start + row + 1}: {name}", _text(batch[name], row), expected)
        unused.add(batch)
        asks_memory = asks_memory or (s.GPU_MEMORY_MIB in batch.schema.names and asks(batch, s.GPU_MEMORY_MIB))
        start += batch.num_rows
    more = unknown_memory(cluster, workload.name) if asks_memory else []
    return [*unused.messages(workload.name), *more]


def check_gangs(workload: Workload, most: int, policy: Any) -> None:
    """PolicyError for the first job on more GPUs than the policy takes; jobs without end are looked at as they come."""
    for batch in workload.batches() if workload.endless() is None else ():
        wide = np.flatnonzero(batch[s.NUM_GPU].to_numpy() > most)
        if len(wide):
            row = int(wide[0])
            found = f"job {cell_text(batch[s.POD_ID], row)} on {cell_text(batch[s.NUM_GPU], row)} GPUs"
            expected = f"jobs on {'1 GPU' if most == 1 else f'at most {most} GPUs'}"
            raise PolicyError(f"policy {policy}", found, expected, "choose another policy for this workload")


def check_entities(workload: Workload, entities: Collection[str]) -> None:
    """InputError unless the tenants of the jobs are these entities."""
    tenants: set[str | None] = {None}
    if s.TENANT in workload.columns:
        tenants = {name for batch in workload.batches() for name in pc.unique(batch[s.TENANT]).to_pylist()}
    named = f"the entities of the policy, {', '.join(sorted(entities))}"
    for name in sorted(tenants - set(entities), key=str):
        raise InputError(f"{workload.name}: {s.TENANT}", "none" if name is None else repr(name), f"one of {named}")
    for missing in sorted(set(entities) - tenants):
        raise InputError(f"{workload.name}: {s.TENANT}", f"no job of {missing!r}", f"jobs of {named}")


def _faults(batch: pa.RecordBatch, nodes: _Nodes, by_model: bool) -> list[tuple[str, Flags, str]]:
    """Column, rows and expected value of every request in a batch that these nodes or rounds cannot satisfy."""
    faults = [(name, rows(batch, name), expected) for name, rows, expected in REFUSED if name in batch.schema.names]
    accepted = accepted_models(batch, nodes.models)
    known = ", ".join(nodes.models)
    wrong: Flags = np.logical_not(accepted.any(axis=1) if by_model else accepted.all(axis=1))
    expected = f"one of {known}" if by_model else f"null or all of {known}: adaptive jobs may be moved to each of them"
    if s.GPU_MODELS in batch.schema.names:
        faults.append((s.GPU_MODELS, wrong, expected))
    for name in (s.CPU_MILLI, s.MEMORY_MIB):
        most = nodes.most(name, batch[s.NUM_GPU].to_numpy(), accepted)
        faults.append((name, batch[name].to_numpy() > most, "no more than nodes with its GPUs have"))
    if s.GPU_MEMORY_MIB in batch.schema.names:
        memory = pc.fill_null(batch[s.GPU_MEMORY_MIB], 0).to_numpy(zero_copy_only=False)
        small = (memory > nodes.gpu_memory_mib) & (batch[s.NUM_GPU].to_numpy() > 0)
        faults.append((s.GPU_MEMORY_MIB, small, f"at most {nodes.gpu_memory_mib:g}, so that every GPU will do"))
    return [(name, rows, expected) for name, rows, expected in faults if rows.any()]


class _Nodes:
    """The nodes with GPUs, and their resources by GPU model."""

    def __init__(self, cluster: Cluster) -> None:
        names = [s.CPU_MILLI, s.MEMORY_MIB, "num_gpu", "gpu_model"]
        self.rows = [row for row in cluster.offered.select(names).to_pylist() if row["num_gpu"]]
        self.models = tuple(sorted({row["gpu_model"] for row in self.rows}))
        counts = cluster.offered["num_gpu"].to_pylist()
        memory = [mib for mib, gpus in zip(cluster.device_memory_mib, counts, strict=True) if gpus and mib is not None]
        self.gpu_memory_mib = float(min(memory, default=np.inf))
        """Of the smallest device that has a limit."""

    def most(self, name: str, num_gpu: npt.NDArray[Any], accepted: Flags) -> npt.NDArray[Any]:
        """The most a job could hold of a resource on the models it accepts: on a node for each of its GPUs."""
        most = np.zeros(len(num_gpu), np.int64)
        for g, model in enumerate(self.models):
            sizes = sorted((row[name] for row in self.rows if row["gpu_model"] == model), reverse=True)
            sums = np.cumsum(sizes)
            here = sums[np.clip(num_gpu, 1, len(sums)) - 1]
            most = np.where(accepted[:, g], np.maximum(most, here), most)
        return most


def _text(column: pa.Array, row: int) -> str:
    return f"{int(column[row].as_py()):,}" if pa.types.is_integer(column.type) else cell_text(column, row)

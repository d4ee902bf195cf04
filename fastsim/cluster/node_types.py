"""Named node types and the number of each in the openb cluster; mixes of them, and of other shapes, in any size."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any

import pyarrow as pa

from fastsim.cluster.node_table import NODE_SCHEMA, Nodes
from fastsim.errors import InputError, plain_name, suggestion
from fastsim.foundation.draws.random_streams import shuffled_order
from fastsim.foundation.limits.knobs import NODES
from fastsim.hardware import mig
from fastsim.hardware.model_catalog import Catalog

TABLES = Path(__file__).parent / "tables"

OPENB_MAX_PODS = 1001
"""Most pods on one node of the openb cluster."""


@dataclass(frozen=True, slots=True)
class NodeType:
    """One shape of node: devices, CPU in milli, memory in MiB, its number in the openb cluster and its name there."""

    gpu_model: str | None
    num_gpu: int
    cpu_milli: int
    memory_mib: int
    openb: int
    openb_name: str

    def row(self) -> dict[str, Any]:
        """The shape as columns of a node table."""
        shape = {"gpu_model": self.gpu_model, "num_gpu": self.num_gpu}
        return {**shape, "cpu_milli": self.cpu_milli, "memory_mib": self.memory_mib}


@cache
def node_types() -> Mapping[str, NodeType]:
    """All named node types in table order; a bare model name is the commonest node with that model.

    `k80`, `p100` and `v100` are cloud instances with one GPU of Gavel's experiments: p2.xlarge, NC6s v2 and p3.2xlarge.
    The commonest node with openb's P100 is `p100x2`. Types outside openb are public servers, which the table names
    under `source`; a thread of their CPUs is a virtual CPU.
    """
    with open(TABLES / "node_types.csv", encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    return {
        row["node_type"]: NodeType(
            gpu_model=row["gpu_model"] or None,
            num_gpu=int(row["num_gpu"]),
            cpu_milli=int(row["cpu_milli"]),
            memory_mib=int(row["memory_mib"]),
            openb=int(row["openb"]),
            openb_name=row["openb_name"] or row["node_type"],
        )
        for row in rows
    }


def openb_types() -> dict[str, NodeType]:
    """The node types of the openb cluster, with GPUs or without."""
    return {name: kind for name, kind in node_types().items() if kind.openb}


def openb_counts(cpu_only: bool) -> dict[str, int]:
    """Nodes per type in the openb cluster, with or without the nodes that have no GPU."""
    return {name: kind.openb for name, kind in openb_types().items() if kind.num_gpu or cpu_only}


def openb_parts(counts: Mapping[str, int]) -> list[tuple[int, dict[str, Any]]]:
    """(count, columns) for each node type of the openb cluster, under the names its nodes have there."""
    known = openb_types()
    return [(count, {"name": known[name].openb_name, **known[name].row()}) for name, count in counts.items()]


@cache
def _names_by_spelling() -> Mapping[str, str]:
    """The name of each node type by what its spellings have in common."""
    return {plain_name(name): name for name in node_types()}


def named_parts(counts: Mapping[str, int]) -> list[tuple[int, dict[str, Any]]]:
    """(count, columns) for each named node type, however it is spelled (H100, a-100); others are an InputError."""
    known = node_types()
    spelled = _names_by_spelling()
    parts = []
    for name, count in counts.items():
        kind = spelled.get(plain_name(name))
        if kind is None:
            where, listed = f"cluster.mix.{name}", f"one of: {', '.join(known)}"
            raise InputError(where, "an unknown node type", listed, suggestion(name, known))
        parts.append((count, {"name": kind, **known[kind].row()}))
    return parts


def apportioned(counts: Mapping[str, int], total: int) -> dict[str, int]:
    """`total` nodes split in proportion to `counts`; leftovers go to the largest remainders, ties to the first."""
    whole = sum(counts.values())
    shares = {name: divmod(count * total, whole) for name, count in counts.items()}
    left = total - sum(floor for floor, _ in shares.values())
    favoured = sorted(shares, key=lambda name: -shares[name][1])[:left]
    return {name: floor + (name in favoured) for name, (floor, _) in shares.items()}


def expanded(parts: Iterable[tuple[int, Mapping[str, Any]]], seed: int | None) -> dict[str, list[Any]]:
    """One row per node, named `<name>-0000`, ...; in the order given, or interleaved by a seeded shuffle."""
    rows: list[dict[str, Any]] = []
    parts = list(parts)
    for index, (count, _) in enumerate(parts):
        if count < 0:
            raise InputError(f"cluster.mix[{index}]", f"{count} nodes", "0 or more")
    NODES.refuse(sum(count for count, _ in parts))
    for index, (count, shape) in enumerate(parts):
        stem = shape.get("name") or f"type{index}"
        rows += [{**shape, "name": f"{stem}-{i:04d}"} for i in range(count)]
    if seed is not None:
        rows = [rows[i] for i in shuffled_order(seed, "cluster.order", len(rows))]
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def mixed(
    parts: Iterable[tuple[int, Mapping[str, Any]]], *, seed: int | None = None, name: str = "mix",
    catalog: Catalog | None = None, max_pods: int | None = None,
) -> Nodes:  # fmt: skip
    """Nodes of several shapes, (count, columns) each, in the order given or interleaved by a seeded shuffle."""
    rows = expanded(parts, seed)
    if max_pods is not None and "max_pods" not in rows:
        rows["max_pods"] = [max_pods] * len(rows.get("name", ()))
    table = pa.table({key: _typed(f"cluster.{name}.{key}", key, values) for key, values in rows.items()})
    return Nodes(table, catalog or Catalog.default(), name)


PLAIN = {pa.string(): str, pa.float64(): float, pa.int64(): int, pa.int32(): int, pa.int16(): int}
"""Values that become these types as they are, or are refused; to find out the type of values takes longer."""


def _typed(where: str, column: str, values: list[Any]) -> pa.Array:
    if column not in NODE_SCHEMA.names:
        as_keywords = "write columns as keywords: gpu_idle_w=50.0" if column == "columns" else ""
        do = as_keywords or suggestion(column, NODE_SCHEMA.names)
        raise InputError(where, "an unknown column", f"one of: {', '.join(NODE_SCHEMA.names)}", do)
    kind = NODE_SCHEMA.field(column).type
    try:
        if column == "mig":
            return pa.array([mig.layout_text(layout) for layout in values], kind)
        if pa.types.is_map(kind) or {type(value) for value in values} <= {PLAIN.get(kind), NoneType}:
            return pa.array(values, kind)
        # Through the natural type first: only a cast refuses to cut 1.5 down to 1.
        return pa.array(values).cast(kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        odd = next((value for value in values if not isinstance(value, int | None)), values[0])
        raise InputError(where, repr(odd), f"a value of type {kind}") from None

"""Named node types and the number of each in the openb cluster; mixes of them in any size."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fastsim.errors import InputError, plain_name, suggestion
from fastsim.foundation.draws.random_streams import shuffled_order
from fastsim.foundation.limits.knobs import NODES

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

"""Nodes of published traces by name: their lists of nodes, in the file's order.

GPUs whose watts the catalogue lacks draw 0 W.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from fastsim.cluster.importers import nodes_of
from fastsim.cluster.node_table import Nodes
from fastsim.cluster.table_sources import source_of
from fastsim.errors import InputError, ScenarioError, reading
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.limits.packed_file import opened_text
from fastsim.hardware.gpu_products import with_products
from fastsim.hardware.model_catalog import Catalog


class _NodeList(NamedTuple):
    """Columns of a node table, the column of GPU models, and the header of files that have none."""

    columns: Mapping[str, str]
    models: str
    header: tuple[str, ...] = ()


NODE_LISTS = {
    "pai": _NodeList({
        "name": "machine", "num_gpu": "cap_gpu", "gpu_model": "NULLIF(gpu_type, 'CPU')", "cpu_milli": "1000 * cap_cpu",
        "memory_mib": "1024 * cap_mem",
    }, "gpu_type", ("machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu")),
    "alibaba": _NodeList({
        "name": "node_name", "num_gpu": "gpu_capacity_num", "gpu_model": "gpu_model", "cpu_milli": "1000 * cpu_num",
        "memory_mib": "0",
    }, "gpu_model"),
}  # fmt: skip
"""Traces whose nodes are published, too: PAI's machines, and the nodes of v2026, whose memory is not recorded."""


@whole_process
def import_nodes(kind: str, path: str | os.PathLike[str]) -> Nodes:
    """The nodes of a published trace, one of `NODE_LISTS`."""
    if kind not in NODE_LISTS:
        raise ScenarioError(f"nodes of {kind}", "no list of nodes", f"one of: {', '.join(NODE_LISTS)}")
    layout = NODE_LISTS[kind]
    with reading(f"{kind} {path}", "a trace that can be read"):
        headed = not layout.header or headed_by(path, layout.header[0])
        source = source_of(path, header=None if headed else layout.header)
        if layout.models not in source.frame.columns:
            have = ", ".join(source.frame.columns)
            raise InputError(f"{source.name}: {layout.models}", f"columns {have}", "this required column")
        names = [str(name) for name in source.frame[layout.models].drop_nulls().unique(maintain_order=True)]
        catalog, _ = with_products(Catalog.default(), names)
        return nodes_of(source, layout.columns, catalog=catalog, identity=False)


def headed_by(path: str | os.PathLike[str], name: str) -> bool:
    """Whether a file begins with a header that has this name."""
    try:
        with opened_text(path) as text:
            return name in text.readline(1000).strip().split(",")
    except (OSError, UnicodeDecodeError):
        return False

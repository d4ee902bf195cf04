"""What each number of GPUs in use means for a node, for every quantity that the timeline has."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fastsim.cluster import Cluster
from fastsim.frames import TOTALS
from fastsim.reference_frag import Fragmentation, cpu_power, gpu_power
from fastsim.reference_nodes import WHOLE, Node, Shape, empty_node
from fastsim.reference_tables import shapes
from fastsim.typical import TypicalPods
from fastsim_ext.gauge import Gauge


def gauge_of(
    cluster: Cluster, typical: TypicalPods, gpu_models: tuple[str, ...], sample_s: float, recorded: bool
) -> Gauge:
    """Measures rounds on this cluster; GPUs are numbered model by model and, within a model, node by node."""
    listed = shapes(cluster)
    distinct = list(dict.fromkeys(listed))
    index = {shape: number for number, shape in enumerate(distinct)}
    nodes = node_of_gpu(cluster, gpu_models)
    kinds = np.array([index[shape] for shape in listed], np.int32)
    return Gauge(nodes, kinds, _totals(distinct, Fragmentation(typical)), sample_s, recorded)


def totals_by_node(cluster: Cluster, typical: TypicalPods) -> list[npt.NDArray[np.int64]]:
    """Of every node in position order: by GPUs in use, each quantity of ``TOTALS``."""
    listed, frag = shapes(cluster), Fragmentation(typical)
    known = {shape: _totals([shape], frag)[0] for shape in dict.fromkeys(listed)}
    return [known[shape] for shape in listed]


def node_of_gpu(cluster: Cluster, gpu_models: tuple[str, ...]) -> npt.NDArray[np.int32]:
    """Position of the node of every whole GPU."""
    nodes = cluster.offered.select(["gpu_model", "num_gpu"]).to_pylist()
    found = [
        position
        for model in gpu_models
        for position, node in enumerate(nodes)
        if node["gpu_model"] == model
        for _ in range(node["num_gpu"])
    ]
    return np.array(found, np.int32)


def _totals(distinct: list[Shape], frag: Fragmentation) -> npt.NDArray[np.int64]:
    """By shape, GPUs in use and quantity."""
    most = max((shape.num_gpu for shape in distinct), default=0)
    table = np.zeros((max(len(distinct), 1), most + 1, len(TOTALS)), np.int64)
    for s, shape in enumerate(distinct):
        for used in range(shape.num_gpu + 1):
            table[s, used] = list(quantities(shape, used, frag).values())
    return table


def quantities(shape: Shape, used: int, frag: Fragmentation) -> dict[str, Any]:
    """The node's part of each total while ``used`` of its GPUs are held."""
    free = (0,) * used + (WHOLE,) * (shape.num_gpu - used)
    node: Node = empty_node(shape)._replace(gpu_free=free)
    frag_names = TOTALS[9:16]
    return {
        "nodes_used": int(used > 0), "gpus_of_used_nodes": shape.num_gpu if used else 0, "gpus_used": used,
        "cpu_alloc": 0, "mem_alloc": 0, "gpu_alloc": WHOLE * used,
        "cpu_cap": shape.cpu_milli, "mem_cap": shape.memory_mib, "gpu_cap": WHOLE * shape.num_gpu,
        **dict(zip(frag_names, frag.counted(node), strict=True)),
        "cpu_mw": cpu_power(node), "gpu_mw": gpu_power(node),
    }  # fmt: skip

"""Pods that no node of a cluster could host even if it were empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fastsim.workload.classes import PodClasses

if TYPE_CHECKING:
    from fastsim.cluster import Cluster
    from fastsim.workload import Workload

Shape = tuple[int, int, int, str | None]
"""CPU in milli, memory in MiB, number of GPUs and GPU model of an empty node."""


def oversized(cluster: Cluster, workload: Workload) -> tuple[int, str]:
    """How many pods are larger than any node, and what the first of them asks for."""
    classes = PodClasses()
    counts = np.zeros(0, np.int64)
    for batch in workload.batches():
        seen = np.bincount(classes.intern(batch), minlength=len(classes))
        seen[: len(counts)] += counts
        counts = seen
    shapes = _shapes(cluster)
    large = [k for k in range(len(classes)) if not any(_hosts(shape, classes, k) for shape in shapes)]
    return (int(counts[large].sum()), _request(classes, large[0])) if large else (0, "")


def _shapes(cluster: Cluster) -> set[Shape]:
    nodes = cluster.nodes
    columns = [nodes[name].to_pylist() for name in ("cpu_milli", "memory_mib", "num_gpu", "gpu_model", "max_pods")]
    return {(cpu, memory, gpus, model) for cpu, memory, gpus, model, pods in zip(*columns, strict=True) if pods != 0}


def _hosts(shape: Shape, classes: PodClasses, k: int) -> bool:
    cpu_milli, memory_mib, num_gpu, model = shape
    if classes.cpu_milli[k] > cpu_milli or classes.memory_mib[k] > memory_mib:
        return False
    if classes.num_gpu[k] == 0:
        return True
    accepted = classes.gpu_models[k]
    # Only single-GPU pods share a device, so the devices of an empty node just have to be enough.
    return bool(classes.num_gpu[k] <= num_gpu and (not accepted or model in accepted))


def _request(classes: PodClasses, k: int) -> str:
    words = [f"{classes.cpu_milli[k]} milli-CPU", f"{classes.memory_mib[k]} MiB"]
    if classes.num_gpu[k]:
        words.append(f"{classes.num_gpu[k]} x {classes.gpu_milli[k]} milli-GPU")
    if classes.gpu_models[k]:
        words.append(f"model {' or '.join(classes.gpu_models[k])}")
    return ", ".join(words)

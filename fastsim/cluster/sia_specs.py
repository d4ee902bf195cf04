"""The clusters of the Sia experiments: machines of three kinds by number, `aws:dgx-ext:rtx`."""

from __future__ import annotations

from typing import Any

from fastsim.cluster.cluster import Cluster
from fastsim.errors import InputError
from fastsim.hardware.model_catalog import Catalog, GpuModel

MACHINES: dict[str, dict[str, Any]] = {
    "aws": {"num_gpu": 4, "cpu_milli": 48_000, "memory_mib": 196_608},
    "dgx-ext": {"num_gpu": 8, "cpu_milli": 128_000, "memory_mib": 1_048_576},
    "rtx": {"num_gpu": 8, "cpu_milli": 40_000, "memory_mib": 196_608},
}
"""What the numbers count, in their order: machines with T4, A100-40GB and RTX 2080 Ti GPUs."""
WATTS = {
    "aws": GpuModel(10, 70, 15_109),
    "dgx-ext": GpuModel(50, 400, 40_960),
    "rtx": GpuModel(20, 250, 11_264),
}
"""Of one GPU: those of the catalogue, or rounded from data sheets."""
DEFAULT = "6:2:3"
"""The cluster of most experiments: 64 GPUs."""


def sia_cluster(spec: str = DEFAULT, catalog: Catalog | None = None) -> Cluster:
    """So many machines of each kind; GPU models have the names of the machines, as in tables of applications."""
    words = str(spec).split(":")
    if len(words) != len(MACHINES) or not all(word.isdecimal() for word in words) or not any(map(int, words)):
        raise InputError("cluster sia", repr(spec), f"three whole numbers, not all 0: {':'.join(MACHINES)}")
    parts = [
        (int(word), {"name": name, "gpu_model": name, **shape})
        for word, (name, shape) in zip(words, MACHINES.items(), strict=True)
    ]
    known = (catalog or Catalog.default()).extended(gpu=WATTS)
    return Cluster.mix(parts, name=f"sia:{spec}", catalog=known)

"""The resource vector of one server of a cluster of equal servers, and each GPU's part of it.

A job's *fair share* of a server is the part of its GPUs if CPUs, memory and bandwidth are split evenly over GPUs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fastsim.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

STORAGE_MB_S = "storage_mb_s"
"""Name among a node's `extra_resources`: bandwidth of its storage, MB/s."""
NETWORK_GBPS = "network_gbps"
"""Name among a node's `extra_resources`: bandwidth of its network, Gbit/s."""
GB_MIB = 1024
"""MiB in a GB, as Synergy counts."""


class Server(NamedTuple):
    """GPUs, CPUs, memory in GB (1,024 MiB), storage in MB/s, network in Gbit/s; a bandwidth of 0 is ignored."""

    gpus: int
    cpus: float
    memory_gb: float
    storage_mb_s: float = 0.0
    network_gbps: float = 0.0

    @property
    def fair(self) -> Server:
        """The fair share of one GPU; its `gpus` is 1."""
        n = self.gpus
        return Server(1, self.cpus / n, self.memory_gb / n, self.storage_mb_s / n, self.network_gbps / n)

    @classmethod
    def of(cls, nodes: pa.Table, name: str) -> Server:
        """The server that every node of the cluster ``name`` is; an InputError if two differ or have no GPUs."""
        columns = ("num_gpu", "cpu_milli", "memory_mib", "extra_resources")
        rows = nodes.select(columns).to_pylist()
        shapes = [_shape(**row) for row in rows]
        for position, shape in enumerate(shapes):
            if shape.gpus < 1:
                raise InputError(f"{name}:{position + 1}: num_gpu", shape.gpus, "1 or more on every node")
            if shape != shapes[0]:
                expected = f"{_text(shapes[0])}, as on the first node: shares are those of equal servers"
                raise InputError(f"{name}:{position + 1}", _text(shape), expected)
        return shapes[0]


def _shape(num_gpu: int, cpu_milli: int, memory_mib: int, extra_resources: list[tuple[str, int]] | None) -> Server:
    extra = dict(extra_resources or ())
    storage, network = float(extra.get(STORAGE_MB_S, 0)), float(extra.get(NETWORK_GBPS, 0))
    return Server(num_gpu, cpu_milli / 1000, memory_mib / GB_MIB, storage, network)


def _text(server: Server) -> str:
    gpus, cpus, memory, storage, network = server
    return f"{gpus} GPUs, {cpus:g} CPUs, {memory:g} GB, {storage:g} MB/s, {network:g} Gbit/s"

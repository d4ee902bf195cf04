"""The shape of a server: fair shares, and clusters of equal nodes."""

from __future__ import annotations

from typing import Any

import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.cluster.server import Server
from fastsim.errors import InputError


def test_a_gpu_has_an_even_part_of_everything() -> None:
    assert Server(8, 24, 500, 500, 40).fair == Server(1, 3, 62.5, 62.5, 5)


def test_a_cluster_of_equal_nodes_has_one_server() -> None:
    extra = {"storage_mb_s": 300, "network_gbps": 40}
    shape: dict[str, Any] = {"gpu": "V100M16", "gpus": 4, "cpu_milli": 24_000, "memory_mib": 512_512}
    cluster = Cluster.uniform(nodes=3, **shape, extra_resources=extra)
    assert Server.of(cluster.nodes, cluster.name) == Server(4, 24, 500.5, 300, 40)
    cluster = Cluster.uniform(nodes=1, **shape)
    assert Server.of(cluster.nodes, cluster.name) == Server(4, 24, 500.5, 0, 0)


def test_unlike_nodes_and_nodes_without_gpus_are_refused() -> None:
    shapes = [(1, {"num_gpu": n, "gpu_model": "T4", "cpu_milli": 1, "memory_mib": 1}) for n in (2, 4)]
    with pytest.raises(InputError, match=r"cluster:2.*as on the first node"):
        Server.of(Cluster.mix(shapes).nodes, "cluster")
    with pytest.raises(InputError, match=r"num_gpu: found 0"):
        Server.of(Cluster.uniform(nodes=1).nodes, "uniform")

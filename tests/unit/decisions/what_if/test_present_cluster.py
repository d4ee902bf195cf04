"""A cluster at one moment: what pods that run leave of each node."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import fastsim as fs
from fastsim.decisions.what_if.present_cluster import PresentCluster
from fastsim.workload.schema import pod_schema

NODE = {"gpu_model": "A100-80GB", "num_gpu": 4, "cpu_milli": 8000, "memory_mib": 100}


def present(pods: list[dict[str, Any]], **node: Any) -> PresentCluster:
    """One node; each pod has a CPU and 10 MiB."""
    usual = {"submit_s": 0.0, "cpu_milli": 1000, "memory_mib": 10, "num_gpu": 0, "gpu_milli": 0,
             "mig": None, "bound_node": None, "bound_gpus": None}  # fmt: skip
    rows = [{"pod_id": k, **usual, **row} for k, row in enumerate(pods)]
    workload = fs.Workload.from_arrow(pa.Table.from_pylist(rows, pod_schema(rows[0])))
    return PresentCluster(fs.Cluster.from_arrow(pa.Table.from_pylist([{"name": "n", **NODE, **node}])), workload)


def test_boards_of_running_pods_are_not_free_and_the_rest_is_spare() -> None:
    part = {"bound_node": "n", "num_gpu": 1, "gpu_milli": 300, "bound_gpus": [2]}
    found = present([part, {"bound_node": "n", "num_gpu": 2, "gpu_milli": 1000, "bound_gpus": [0, 3]}, {}])
    assert found.free_boards(0) == [1] and len(found.waiting) == 1
    spare = found.spare(0, [1])
    assert (spare.cpu_milli, spare.memory_mib, spare.gpu_milli, spare.instances) == (6000, 80, 700, ())


def test_boards_with_instances_in_use_keep_their_layout() -> None:
    layouts = "7*1g.10gb;2*3g.40gb;;"
    found = present([{"bound_node": "n", "mig": "2*1g.10gb"}, {"bound_node": "n", "num_gpu": 1, "gpu_milli": 1000}],
                    mig=layouts)  # fmt: skip
    [board] = found.free_boards(0)
    assert board in (2, 3) and found.spare(0, [board]).instances == (("mig-1g.10gb", 5), ("mig-3g.40gb", 2))
    unused = present([{"mig": "1g.10gb"}], mig=layouts)
    assert unused.free_boards(0) == [0, 1, 2, 3] and unused.hosted({}) == 1


def test_models_without_instances_have_no_free_boards() -> None:
    assert present([{}], gpu_model="T4").free_boards(0) == []


def test_running_pods_keep_their_devices_where_boards_before_them_are_divided() -> None:
    one: dict[str, Any] = {"num_gpu": 1, "gpu_milli": 1000}
    found = present([{**one, "bound_node": "n", "bound_gpus": [3]}, one])
    assert found.hosted({0: {0: "7*1g.10gb", 1: "7*1g.10gb"}}) == 1
    assert found.hosted({0: {0: "7*1g.10gb", 1: "7*1g.10gb", 2: "7*1g.10gb"}}) == 0

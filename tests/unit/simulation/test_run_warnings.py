"""What users are told about a run."""

from __future__ import annotations

import warnings

import pyarrow as pa
import pytest

import fastsim as fs
from fastsim.simulation.run_warnings import ColumnIgnored, PodTooLarge, TenantAbsent, large_pods, warn
from fastsim.workload.oversized_pods import Oversized


def test_nothing_is_said_when_all_is_well() -> None:
    assert large_pods(Oversized(fs.Cluster.uniform(nodes=1))) == []


def test_warnings_come_in_the_order_of_their_texts() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn([(PodTooLarge, "b"), (ColumnIgnored, "a")], depth=0)
    assert [str(item.message) for item in caught] == ["a", "b"]


def test_quotas_of_tenants_without_pods_are_named() -> None:
    row = {"pod_id": 0, "submit_s": 0.0, "cpu_milli": 1, "memory_mib": 1, "num_gpu": 0, "gpu_milli": 0, "tenant": "a"}
    quota = {"cpu_milli": 1000}
    cluster, pods = fs.Cluster.uniform(nodes=1), fs.Workload.from_arrow(pa.Table.from_pylist([row]), name="w")
    with pytest.warns(TenantAbsent, match="^w: quotas or weights of tenants that have no pods: 'nobody'$"):
        fs.simulate(cluster, pods, quotas={"nobody": quota, "a": quota, "*": quota})
    bare = fs.Workload.from_arrow(pa.Table.from_pylist([row]).drop_columns(["tenant"]))
    with pytest.warns(TenantAbsent, match="'a', 'b', 'c', 'd', 'e', …$"):
        fs.simulate(cluster, bare, weights=dict.fromkeys("abcdefg", 2.0))
    with pytest.warns(TenantAbsent, match="no pods: 'nobody'$"):
        fs.simulate("openb:20", "synth:openb?pods=1", quotas={"nobody": quota})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fs.simulate(cluster, pods, quotas={"a": quota, "*": quota})

"""What users are told about a run."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import fastsim as fs
from fastsim.errors import InputError
from fastsim.hardware.model_catalog import Catalog, GpuModel
from fastsim.policies import PythonScorer
from fastsim.scenario.run_rules import Rules
from fastsim.simulation.run_warnings import (
    ColumnIgnored,
    DurationMissing,
    GangIncomplete,
    MemoryUnknown,
    OptionUnused,
    PodTooLarge,
    PointsRounded,
    RunWarning,
    TenantAbsent,
    absent_tenants,
    large_pods,
    warn,
)  # fmt: skip
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
    with pytest.warns(OptionUnused), pytest.warns(TenantAbsent, match="'a', 'b', 'c', 'd', 'e', …$"):
        fs.simulate(cluster, bare, weights=dict.fromkeys("abcdefg", 2.0))
    with pytest.warns(TenantAbsent, match="no pods: 'nobody'$"):
        fs.simulate("openb:20", "synth:openb?pods=1", quotas={"nobody": quota})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fs.simulate(cluster, pods, quotas={"a": quota, "*": quota})


T4_MIB = 15_109
CLUSTER = fs.Cluster.uniform(nodes=2, gpu="T4", gpus=4)
UNKNOWN = Catalog.default().extended({"X1": GpuModel(10.0, 100.0)})


def pods(count: int = 4, **columns: Any) -> fs.Workload:
    """Pods of 10 s with one GPU each, and these columns."""
    plain = {"submit_s": [float(k) for k in range(count)], "duration_s": [10.0] * count, "num_gpu": [1] * count}
    return fs.Workload.from_polars(pl.DataFrame({**plain, **columns}))


def warned(workload: fs.Workload, cluster: Any = CLUSTER, **options: Any) -> list[str]:
    """Texts of the warnings of a run."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fs.simulate(cluster, workload, **options)
    return [str(one.message) for one in caught if issubclass(one.category, RunWarning)]


def test_pods_without_a_duration_beside_others_are_counted() -> None:
    some = pods(duration_s=[10.0, None, 10.0, None])
    assert warned(some) == ["frame: 2 of 4 pods have no duration and run for ever"]
    with pytest.warns(DurationMissing):
        fs.simulate(CLUSTER, some)
    assert warned(pods()) == warned(pods(duration_s=[None] * 4)) == []


def test_gangs_without_all_members_are_counted_with_an_example() -> None:
    short = pods(5, job_id=[7, 7, 8, 8, 9], gang_size=[4, 4, 2, 2, 3])
    text = "frame: 2 gangs are incomplete and cannot start, for example that of job 7 with 2 of 4 members"
    assert warned(short, queue="fifo") == [text]
    with pytest.warns(GangIncomplete):
        fs.simulate(CLUSTER, short, queue="fifo")
    one = pods(3, job_id=[7, 7, 7], gang_size=[2, 2, 2])
    assert warned(one, queue="fifo")[0].startswith("frame: 1 gang is incomplete")
    assert warned(pods(4, job_id=[7, 7, 8, 8], gang_size=[2, 2, 2, 2]), queue="fifo") == []
    assert warned(short, queue="fifo", until_s=1.0) == [], "others may still arrive"


@pytest.mark.parametrize(
    "cluster",
    [
        CLUSTER, "uniform?nodes=2&gpu=T4&gpus=4", "mix?t4=2", fs.Cluster.mix(t4=2),
        fs.Cluster.from_arrow(CLUSTER.nodes), fs.Cluster.from_polars(pl.DataFrame(pl.from_arrow(CLUSTER.nodes))),
    ],
)  # fmt: skip
@pytest.mark.parametrize("policy", ["fgd", "las", "max_min_fairness"])
def test_memory_of_the_catalogue_binds_where_a_node_has_none(cluster: Any, policy: str) -> None:
    fits, large = (pods(1, gpu_memory_mib=[mib]) for mib in (T4_MIB, T4_MIB + 1))
    assert fs.simulate(cluster, fits, policy).jobs["state"].to_list() == ["finished"]
    if policy == "fgd":
        assert fs.simulate(cluster, large, policy).jobs["state"].to_list() == ["unplaced"]
    else:
        with pytest.raises(InputError, match=f"gpu_memory_mib: found {T4_MIB + 1:,}, expected at most {T4_MIB}"):
            fs.simulate(cluster, large, policy)


def test_presets_have_the_memory_of_their_models() -> None:
    found = fs.simulate("openb:50", pods(1, gpu_memory_mib=[99_999])).jobs["state"].to_list()
    assert found == ["unplaced"]


def test_the_memory_of_a_node_goes_before_that_of_the_catalogue() -> None:
    larger = fs.Cluster.uniform(nodes=1, gpu="T4", gpus=1, gpu_memory_mib=99_999)
    assert larger.device_memory_mib == [99_999] and CLUSTER.device_memory_mib == [T4_MIB] * 2
    assert fs.simulate(larger, pods(1, gpu_memory_mib=[99_999])).jobs["state"].to_list() == ["finished"]
    assert fs.Cluster.uniform(nodes=1).device_memory_mib == [None]


@pytest.mark.parametrize("policy", ["fgd", "las"])
def test_models_of_unknown_memory_are_named_once_when_pods_ask(policy: str) -> None:
    cluster = fs.Cluster.uniform(nodes=2, gpu="X1", gpus=4, catalog=UNKNOWN)
    text = "frame: gpu_memory_mib has no limit on GPU models of unknown memory: X1"
    assert warned(pods(gpu_memory_mib=[99_999] * 4), cluster, policy=policy) == [text]
    assert warned(pods(gpu_memory_mib=[0] * 4), cluster, policy=policy) == warned(pods(), cluster, policy=policy) == []
    with pytest.warns(MemoryUnknown):
        fs.simulate(cluster, pods(gpu_memory_mib=[1] * 4), policy)


@pytest.mark.parametrize(
    ("scorer", "lost"),
    [
        (lambda nodes, pod: nodes.cpu_free / 1e6, "0.066 to 0.096 are rounded to whole numbers, and in 3 of 4"),
        (lambda nodes, pod: nodes.cpu_free / nodes.cpu_milli, "0.6875 to 1 are rounded to whole numbers, and in 3"),
        (lambda nodes, pod: nodes.cpu_free / 1e3, ""), (lambda nodes, pod: nodes.cpu_free, ""),
        (lambda nodes, pod: np.full(len(nodes.cpu_free), 0.3), ""),
    ],
)  # fmt: skip
def test_points_that_rounding_makes_equal_are_named_once(scorer: Any, lost: str) -> None:
    found = warned(pods(cpu_milli=[10_000] * 4), policy=PythonScorer(scorer))
    assert len(found) == bool(lost)
    if lost:
        assert f"points from {lost}" in found[0]
        with pytest.warns(PointsRounded):
            fs.simulate(CLUSTER, pods(cpu_milli=[10_000] * 4), PythonScorer(scorer))


def test_points_that_differ_by_one_beside_the_best_node_lose_nothing() -> None:
    points = np.array([0.4, 1.0])
    assert warned(pods(), policy=PythonScorer(lambda nodes, pod: points)) == []
    assert len(warned(pods(), policy=PythonScorer(lambda nodes, pod: points + 0.2))) == 1


def test_tenants_of_a_type_without_texts_are_one_clear_error() -> None:
    months = pa.array([pa.MonthDayNano((1, 2, 3))])
    names = ("pod_id", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
    whole: dict[str, Any] = {name: [0] for name in names} | {"submit_s": [0.0]}
    table = pa.table({**whole, "tenant": months})
    with pytest.raises(InputError, match=r"^w:1: tenant: found .*, expected a value of type string"):
        absent_tenants(fs.Workload.from_arrow(table, name="w"), Rules(weights={"anna": 2.0}))

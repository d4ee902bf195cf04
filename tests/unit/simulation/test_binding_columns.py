"""Columns that say where a job may run are honoured in rounds, or refused by name."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import fastsim as fs
from fastsim.cluster.cluster import Cluster
from fastsim.errors import InputError

CLUSTER = "mix?k80=1&v100=2"
SHARES = ("max_min_fairness", "isolated", "fifo", "gandiva", "max_min_fairness(mode=packed)")
ORDERS = ("las", "fcfs", "srtf+greedy", "tiresias(sticky=True)")


def jobs(count: int = 6, **columns: Any) -> fs.Workload:
    """Jobs of 3,000 s on one GPU each, with these columns."""
    plain = {
        "submit_s": 0.0, "duration_s": 3000.0, "cpu_milli": 0, "memory_mib": 0, "num_gpu": 1, "gpu_milli": 1000,
    }  # fmt: skip
    told = {
        name: pl.Series(value, strict=False) if isinstance(value, list) else pl.lit(value)
        for name, value in {**plain, **columns}.items()
    }
    frame = pl.DataFrame({"pod_id": range(count)}).with_columns(**told)
    return fs.Workload.from_arrow(frame.cast({"num_gpu": pl.Int16, "gpu_milli": pl.Int16}), name="jobs")


def models_used(found: fs.Result) -> dict[int, set[str]]:
    """GPU models on which each job was."""
    rows = found.placements.select("pod_id", pl.col("node").str.split("-").list.first()).iter_rows()
    used: dict[int, set[str]] = {}
    for job, model in rows:
        used.setdefault(job, set()).add(model)
    return used


@pytest.mark.parametrize("policy", (*SHARES, *ORDERS))
def test_jobs_run_on_models_they_accept_only(policy: str) -> None:
    lists: list[Any] = [["k80"], ["k80"], ["v100", "k80"], ["v100", "T4"], ["v100"], None]
    found = fs.simulate(CLUSTER, jobs(gpu_models=lists), policy, record="all")
    used = models_used(found)
    assert found.jobs["state"].unique().to_list() == ["finished"]
    assert used[0] == used[1] == {"k80"} and used[3] == used[4] == {"v100"}


@pytest.mark.parametrize("policy", ["max_min_fairness", "gandiva", "max_min_fairness(mode=packed)"])
def test_jobs_with_rates_share_gpus_that_both_accept(policy: str) -> None:
    kinds = pl.Series(["ResNet-18 (batch size 16)"] * 8)
    lists = [["k80"]] * 4 + [["v100"]] * 4
    work = jobs(8, gpu_models=lists, workload=kinds)
    found = fs.simulate(CLUSTER, work, policy, record="all", profiling=0.5 if "packed" in policy else 1.0)
    used = models_used(found)
    assert [used[job] for job in range(8)] == [{"k80"}] * 4 + [{"v100"}] * 4
    reference = fs.simulate(CLUSTER, jobs(8, workload=kinds), policy)
    assert found.jobs["ideal_s"].to_list() == reference.jobs["ideal_s"].to_list()


def test_lists_that_accept_every_model_change_nothing() -> None:
    told: tuple[dict[str, Any], ...] = ({}, {"gpu_models": [["v100", "k80"]] * 6})
    plain, listed = (fs.simulate(CLUSTER, jobs(**more), "max_min_fairness").jobs for more in told)
    assert plain.equals(listed)


@pytest.mark.parametrize("policy", ["isolated", "las", "fcfs+greedy"])
@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"gpu_models": [["k80"]] * 5 + [["T4"]]}, r"jobs:6: gpu_models: found \['T4'\], expected one of k80, v100"),
        ({"pinned_node": [None, "nowhere"] + [None] * 4}, "jobs:2: pinned_node: found 'nowhere', expected nothing"),
        ({"bound_node": [None] * 5 + ["v100-0"]}, "jobs:6: bound_node: found 'v100-0', expected nothing.*empty ones"),
        (
            {"spread": [[{"pods": "a", "topology": "zone", "max_skew": 1}]] * 6},
            "jobs:1: spread: found .*zone.*, expected nothing",
        ),
        ({"gpu_milli": [1000, 1000, 500, 500, 1000, 1000]}, "jobs:3: gpu_milli: found 500, expected 1000"),
        ({"cpu_milli": 500_000}, "jobs:1: cpu_milli: found 500,000, expected no more than nodes"),
        ({"memory_mib": [0] * 5 + [2**30]}, "jobs:6: memory_mib: found 1,073,741,824, expected no more"),
        ({"mig": ["1g.10gb"] + [None] * 5, "num_gpu": 0, "gpu_milli": 0}, "jobs:1: mig: found '1g.10gb'"),
        ({"group": "a", "max_per_node": 1}, "jobs:1: max_per_node: found 1, expected nothing"),
        ({"gang_size": 2, "job_id": 0}, "jobs:1: gang_size: found 2, expected 1"),
        ({"extra_resources": [[{"key": "nvme", "value": 1}]] * 6}, "jobs:1: extra_resources: found .*nvme"),
        (
            {"constraints": [[{"key": "zone", "op": "In", "values": ["a"]}]] * 6},
            "jobs:1: constraints: found .*zone.*, expected nothing",
        ),
    ],
)
def test_what_rounds_do_not_know_is_refused_by_name(policy: str, columns: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        fs.simulate(CLUSTER, jobs(**columns), policy)


@pytest.mark.parametrize("policy", ["isolated", "las"])
def test_cpu_that_fits_but_is_not_counted_is_told_once(policy: str) -> None:
    with pytest.warns(fs.ColumnIgnored) as warned:
        fs.simulate(CLUSTER, jobs(cpu_milli=5000), policy)
    assert [str(one.message) for one in warned] == ["jobs: these rounds give out GPUs and do not count cpu_milli"]


def test_gangs_may_ask_for_the_cpus_of_several_nodes() -> None:
    with pytest.warns(fs.ColumnIgnored):
        found = fs.simulate(
            "uniform?nodes=2&gpu=v100&gpus=1&cpu_milli=8000", jobs(1, num_gpu=2, cpu_milli=16_000), "las"
        )
    assert found.jobs["state"].to_list() == ["finished"]


def test_device_memory_binds_where_a_gpu_has_less() -> None:
    nodes = pl.DataFrame(
        {"gpu_model": "v100", "num_gpu": 1, "cpu_milli": 1000, "memory_mib": 1, "gpu_memory_mib": 16_384}
    )
    for request in (16_384, 20_000):
        work = jobs(1, gpu_memory_mib=request)
        if request == 16_384:
            assert fs.simulate(fs.Cluster(nodes.to_arrow()), work, "las").jobs["state"].to_list() == ["finished"]
        else:
            with pytest.raises(InputError, match="gpu_memory_mib: found 20,000, expected at most 16384"):
                fs.simulate(fs.Cluster(nodes.to_arrow()), work, "las")


def test_adaptive_jobs_must_accept_every_model() -> None:
    work = fs.Workload.synth("sia", jobs=3, seed=1).table()
    models = Cluster.from_text("sia:2:1:1").nodes["gpu_model"].to_pylist()[:1]
    listed = work.append_column("gpu_models", pa.array([models] * 3))
    with pytest.raises(InputError, match=r"gpu_models: found .*, expected null or all of"):
        fs.simulate("sia:2:1:1", fs.Workload.from_arrow(listed), "sia")


@pytest.mark.parametrize("policy", ["fifo", "isolated", "max_min_fairness", "gandiva", "las", "srtf+greedy", "fgd"])
@pytest.mark.parametrize("columns", [{"duration_s": [0.0, 100.0, 0.0, 50.0]}, {"total_work": [0.0, 100.0, 0.0, 50.0]}])
def test_a_job_without_work_is_done_when_it_starts(policy: str, columns: dict[str, Any]) -> None:
    if policy == "fgd" and "total_work" in columns:
        return  # pods have durations
    found = fs.simulate("mix?v100=2", jobs(4, **columns), policy).jobs
    assert found["state"].to_list() == ["finished"] * 4
    assert found["end_s"][0] == found["start_s"][0] and found["end_s"][2] == found["start_s"][2]


@pytest.mark.parametrize(
    ("tenants", "words"),
    [
        (["a"] * 6, "jobs: tenant: found 'a', expected one of the entities of the policy, A"),
        (["A"] * 5 + [None], "jobs: tenant: found none, expected one of the entities"),
    ],
)
def test_entities_and_tenants_are_the_same(tenants: list[str | None], words: str) -> None:
    policy = "max_min_fairness_water_filling(entities='A:3')"
    with pytest.raises(InputError, match=words):
        fs.simulate(CLUSTER, jobs(tenant=tenants), policy)
    assert fs.simulate(CLUSTER, jobs(tenant=["A"] * 6), policy).jobs["state"].unique().to_list() == ["finished"]
    two = "max_min_fairness_water_filling(entities='A:3,B:1')"
    with pytest.raises(
        InputError, match="tenant: found no job of 'B', expected jobs of the entities of the policy, A, B"
    ):
        fs.simulate(CLUSTER, jobs(tenant=["A"] * 6), two)
    with pytest.raises(InputError, match="jobs: tenant: found none"):
        fs.simulate(CLUSTER, jobs(), policy)

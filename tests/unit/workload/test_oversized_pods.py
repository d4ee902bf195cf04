"""Pods larger than every empty node: counted, and the first of them told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from fastsim import simulate
from fastsim.cluster.cluster import Cluster
from fastsim.errors import InputError, ScenarioError
from fastsim.scenario.run_inputs import workload_from
from fastsim.workload import Workload
from fastsim.workload.oversized_pods import NO_MATCH, JobOversized, Oversized, fitting, obstacle_text
from fastsim.workload.pod_classes import PodClasses
from tests.cli.terminal import fastsim_here
from tests.objects import node, pod, written
from tests.unit.engine.online.test_online import pods

CLUSTER = Cluster.from_arrow(
    pa.table({
        "cpu_milli": [8000, 32_000], "memory_mib": [64, 32], "num_gpu": [2, 0], "gpu_model": ["T4", None],
    })
)  # fmt: skip
CPU_ONLY = {"num_gpu": 0, "gpu_milli": 0}


def oversized(cluster: Cluster, workload: Workload) -> tuple[int, str]:
    """How many pods of a workload are larger than any node, and what the first of them asks for."""
    found, classes = Oversized(cluster), PodClasses()
    for batch in workload.batches():
        found.add(classes, classes.intern(batch))
    return found.count, next((kept.example for kept in found.kept.values()), "")


@pytest.mark.parametrize(
    ("pod", "request_text"),
    [
        ({"cpu_milli": 8000, "memory_mib": 64, "num_gpu": 2}, None),
        ({"cpu_milli": 32_000, "memory_mib": 32, **CPU_ONLY}, None),
        ({"gpu_models": ["A100", "T4"]}, None),
        ({"gpu_models": ["A100"], **CPU_ONLY}, None),  # without GPUs no model is asked for
        ({"cpu_milli": 8001}, "8001 milli-CPU, 0 MiB, 1 x 1000 milli-GPU"),
        ({"cpu_milli": 9000, "memory_mib": 40, **CPU_ONLY}, "9000 milli-CPU, 40 MiB"),  # each fits another node
        ({"num_gpu": 3}, "1000 milli-CPU, 0 MiB, 3 x 1000 milli-GPU"),
        ({"gpu_models": ["A100", "G2"]}, "1000 milli-CPU, 0 MiB, 1 x 1000 milli-GPU, model A100 or G2"),
    ],
)
def test_what_an_empty_node_could_host_is_not_too_large(pod: dict[str, Any], request_text: str | None) -> None:
    assert oversized(CLUSTER, pods(pod)) == ((0, "") if request_text is None else (1, request_text))


def test_further_resources_count_with_their_units() -> None:
    rows = {"cpu_milli": [8000, 9000], "memory_mib": [64, 64], "num_gpu": [0, 0]}
    amounts = pa.array([[("example.com/nic", 2), ("hugepages-2Mi", 4)], None], pa.map_(pa.string(), pa.int64()))
    cluster = Cluster.from_arrow(pa.table({**rows, "extra_resources": amounts}))

    def asking(cpu_milli: int, name: str, amount: int) -> Workload:
        table = pods({**CPU_ONLY, "cpu_milli": 9000}, {**CPU_ONLY, "cpu_milli": cpu_milli}).table()
        return Workload.from_arrow(
            table.append_column("extra_resources", pa.array([None, [(name, amount)]], pa.map_(pa.string(), pa.int64())))
        )

    assert oversized(cluster, asking(8000, "example.com/nic", 2)) == (0, "")
    assert oversized(cluster, asking(9000, "example.com/nic", 2)) == (1, "9000 milli-CPU, 0 MiB, 2 example.com/nic")
    assert oversized(cluster, asking(1, "hugepages-2Mi", 5)) == (1, "1 milli-CPU, 0 MiB, 5 MiB of hugepages-2Mi")
    assert oversized(CLUSTER, asking(1, "example.com/fpga", 1)) == (1, "1 milli-CPU, 0 MiB, 1 example.com/fpga")


def test_pods_are_counted_over_all_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    load = pods({}, {"num_gpu": 4}, {}, {"num_gpu": 3}, {"num_gpu": 4})
    monkeypatch.setattr(load, "batches", lambda rows=65_536: Workload.batches(load, 2))
    assert oversized(CLUSTER, load) == (3, "1000 milli-CPU, 0 MiB, 4 x 1000 milli-GPU")


def test_no_pods_are_not_too_large() -> None:
    assert oversized(CLUSTER, Workload.from_arrow(pods({}).table().slice(0, 0))) == (0, "")


JOBS = {"pod_id": [0, 1, 2], "submit_s": [0.0, 1.0, 2.0], "num_gpu": [4, 24, 1], "gpu_milli": [1000] * 3,
        "cpu_milli": [0] * 3, "memory_mib": [0] * 3, "duration_s": [9.0] * 3, "native_id": ["a", "b", "c"]}  # fmt: skip


@pytest.mark.parametrize(
    ("how", "names", "gpus", "act"),
    [("drop", ["a", "c"], [4, 1], "left out"), ("shrink", ["a", "b", "c"], [4, 20, 1], "run on 20 GPUs")],
)
def test_jobs_on_more_gpus_than_there_are_do_not_end_a_run(
    how: str, names: list[str], gpus: list[int], act: str, tmp_path: Path
) -> None:
    file = tmp_path / "jobs.parquet"
    Workload.from_arrow(pl.DataFrame(JOBS)).write(file)
    cluster = Cluster.uniform(nodes=5, gpu="T4", gpus=4)
    with pytest.warns(JobOversized, match=f"1 of 3 jobs on more than the cluster's 20 GPUs of one model: {act}"):
        read = workload_from(f"{file}?oversized={how}", cluster).workload
    table = read.table()
    assert (table["native_id"].to_pylist(), table["num_gpu"].to_pylist()) == (names, gpus)
    assert table["pod_id"].to_pylist() == ["abc".index(name) for name in names]
    run = simulate(cluster, read, "las")
    assert run.summary["pods_finished"].item() == len(names)


def test_oversized_jobs_are_refused_with_what_to_do() -> None:
    jobs, cluster = Workload.from_arrow(pl.DataFrame(JOBS)), Cluster.uniform(nodes=5, gpu="T4", gpus=4)
    with pytest.raises(InputError, match="leave such jobs out: --oversized drop"):
        simulate(cluster, jobs, "las")
    with pytest.raises(InputError, match="1 of 3 jobs on more than the cluster's 20 GPUs"):
        fitting(jobs, cluster, "refuse")
    with pytest.raises(ScenarioError, match="one of drop, shrink, refuse"):
        fitting(jobs, cluster, "cut")
    assert fitting(jobs, Cluster.uniform(nodes=6, gpu="T4", gpus=4), "drop") is jobs


@pytest.mark.parametrize("options", ["", "?tune=0"])
def test_the_option_stands_beside_others_of_the_workload(options: str, tmp_path: Path) -> None:
    Workload.from_arrow(pl.DataFrame(JOBS)).write(tmp_path / "jobs.parquet")
    words = ["run", "--cluster", "uniform?nodes=5&gpu=T4&gpus=4", "--workload", f"jobs.parquet{options}"]
    words += ["--policy", "las", "--json"]
    assert "--oversized drop" in fastsim_here(*words, cwd=tmp_path).line
    for how, count, act in (("drop", 2, "left out"), ("shrink", 3, "run on 20 GPUs")):
        done = fastsim_here(*words, "--oversized", how, cwd=tmp_path)
        assert json.loads(done.out)["summary"]["pods_finished"] == count
        assert "1 of 3 jobs" in done.err and act in done.err


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({}, "taint gpu=yes:NoSchedule of 2 nodes"),
        ({"nodeSelector": {"pool": "x"}}, "taint gpu=yes:NoSchedule of 2 nodes, label pool of 1 node"),
        ({"nodeSelector": {"pool": "y"}, "tolerations": [{"operator": "Exists"}]}, "label pool of 2 nodes"),
    ],
)
def test_what_keeps_pods_away_is_named(spec: dict[str, Any], text: str, tmp_path: Path) -> None:
    """Taints and labels of nodes that are large enough, each with the number of nodes; `plan` says it, too."""
    closed = {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}
    nodes = [node("a", spec=closed), node("b", {"pool": "x"}, closed), node("c", amounts={"cpu": "1"})]
    path = written(tmp_path / "a.json", *nodes, pod("p", {"cpu": 2}, **spec))
    found, classes = Oversized(Cluster.from_kubernetes(path)), PodClasses()
    for batch in Workload.from_kubernetes(path).batches():
        found.add(classes, classes.intern(batch))
    [(reason, kept)] = found.kept.items()
    assert reason == NO_MATCH and obstacle_text(reason, kept, []).endswith(f", kept away by {text}")
    dump = f"kubernetes:{path}"
    if not spec:
        printed = fastsim_here("plan", "--cluster", dump, "--workload", dump, "--add", "node:a", cwd=tmp_path)
        assert "kept away by taint gpu=yes:NoSchedule of" in printed.out.replace("\n", " ")

"""What is found out about a trace before it runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.workload import Workload
from fastsim.workload.lint import Finding, of_jobs, trace_findings, worst

CLUSTER = Cluster.mix([(2, {"name": "a", "gpu_model": "T4", "num_gpu": 2, "cpu_milli": 64_000, "memory_mib": 131_072})])
ROW = {"submit_s": 1.0, "cpu_milli": 4000, "memory_mib": 8192, "num_gpu": 1, "gpu_milli": 1000, "duration_s": 60.0}


def trace(*rows: dict[str, Any]) -> Workload:
    """Pods with these differences from an ordinary one, an hour apart."""
    full = [{"pod_id": k, **ROW, "submit_s": 3600.0 * k + 1, **row} for k, row in enumerate(rows)]
    return Workload.from_arrow(pa.Table.from_pylist(full))


def found(*rows: dict[str, Any], cluster: Cluster | None = None, level: str = "") -> list[Finding]:
    """Findings about such pods."""
    return [one for one in trace_findings(trace(*rows), cluster) if level in ("", one.level)]


def test_an_ordinary_trace_is_fine() -> None:
    assert found({}, {}, cluster=CLUSTER) == [] and worst([]) == ""


def test_names_that_are_not_one_pod_s_are_noted() -> None:
    names = [{"native_id": name} for name in ("job-7", "a", "job-7", None)]
    assert found(*names, level="note") == [
        Finding("note", "native_id", 2, 1, "has the name of another pod, so join results on pod_id")
    ]  # fmt: skip
    gang = [{"native_id": name, "job_id": job} for name, job in (("j", 1), ("j", 1), ("k", 2), ("k", None))]
    assert [(one.rows, one.row) for one in found(*gang, level="note")] == [(2, 3)]
    assert found(*gang[:3], level="note") == []


def test_all_broken_rules_are_named_with_their_rows() -> None:
    wrong = {"gpu_milli": 1500}
    broken = found({}, wrong, {"cpu_milli": -1}, {"submit_s": 0.5}, wrong, {"duration_s": -1.0}, cluster=CLUSTER)
    assert {(one.level, one.column, one.row) for one in broken} == {
        ("error", "gpu_milli", 2), ("error", "cpu_milli", 3), ("error", "submit_s", 4), ("error", "duration_s", 6),
    }  # fmt: skip
    assert worst(broken) == "error"
    empty = pa.Table.from_pylist([], schema=trace({}).table().schema)
    assert [one.text for one in trace_findings(Workload.from_arrow(empty))] == ["there is no row"]


@pytest.mark.parametrize(
    ("row", "column", "words"),
    [
        ({"cpu_milli": 4}, "cpu_milli", "whole CPUs"),
        ({"memory_mib": 16}, "memory_mib", "GiB"),
        ({"memory_mib": 2**33}, "memory_mib", "KiB or bytes"),
        ({"gpu_milli": 50}, "gpu_milli", "per cent"),
        ({"submit_s": 1.7e9}, "submit_s", "dates"),
        ({"submit_s": 1.7e12}, "submit_s", "milliseconds since 1970"),
        ({"duration_s": 3.6e7}, "duration_s", "milliseconds"),
        ({"duration_s": 0.0}, "duration_s", "ends as it begins"),
        ({"duration_s": 4e8}, "duration_s", "ten years"),
        ({"deadline_s": 10.0}, "deadline_s", "due before it could end"),
        ({"orig_start_s": 5.0, "orig_end_s": 4.0}, "orig_end_s", "ended before it began"),
        ({"min_replicas": 3, "max_replicas": 2}, "min_replicas", "more workers at least"),
        ({"gang_size": 3, "job_id": 7}, "gang_size", "never starts"),
    ],
)
def test_suspicious_columns(row: dict[str, Any], column: str, words: str) -> None:
    assert any(one.column == column and words in one.text for one in found(row, level="warning"))


def test_pods_that_can_never_run() -> None:
    too_large = found({}, {"num_gpu": 3}, cluster=CLUSTER, level="error")
    assert [(one.rows, "larger than any node" in one.text) for one in too_large] == [(1, True)]
    elsewhere = found({"gpu_models": ["A100"]}, {"gpu_models": ["A100", "T4"]}, cluster=CLUSTER, level="error")
    assert elsewhere[0].rows == 1 and "which has T4" in elsewhere[0].text
    pinned = found({"pinned_node": "z"}, {"pinned_node": CLUSTER.offered["name"][0].as_py()}, cluster=CLUSTER)
    assert [(one.column, one.row) for one in pinned if one.level == "error"] == [("pinned_node", 1)]


def test_jobs_may_take_gpus_of_several_nodes() -> None:
    jobs = ({"num_gpu": 4, "total_work": 9.0}, {"num_gpu": 5, "total_work": 9.0})
    assert of_jobs(["total_work"]) and not of_jobs(["cpu_milli"])
    (one,) = found(*jobs, cluster=CLUSTER, level="error")
    assert (one.row, one.text) == (2, "more GPUs than the cluster's 4")


def test_demand_beyond_the_cluster() -> None:
    long = [{"duration_s": 40_000.0}] * 12
    (one,) = found(*long, cluster=CLUSTER, level="warning")
    # 12 pods in 11 h, each for longer than that: 6 of them on average, on 4 GPUs
    assert f"{100 * np.arange(1, 12).mean() / 4:,.0f} %" in one.text
    for_ever = found(*[{"duration_s": None}] * 6, cluster=CLUSTER)
    assert [(one.level, one.column) for one in for_ever] == [("note", "duration_s"), ("note", "num_gpu")]
    assert "150 %" in for_ever[1].text and worst(for_ever) == "note"

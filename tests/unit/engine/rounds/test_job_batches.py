"""Workloads as columns of jobs."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import fastsim as fs
from fastsim.engine.rounds.job_batches import (
    JobBatch,
    JobBatches,
    PodBatches,
    needs_by_kind,
    request_oracle,
    requests_of,
)
from fastsim.engine.rounds.options import Job
from fastsim.errors import InputError
from fastsim.performance.oracle import POD, Oracle
from fastsim.scenario.round_texts import pod_oracle

ORACLE = Oracle.default()
PODS = fs.Workload.from_arrow(
    pa.table({
        "pod_id": [0, 1, 2], "submit_s": [0.0, 1.0, 2.0], "duration_s": [10.0, 20.0, 30.0],
        "cpu_milli": [500, 100, 500], "memory_mib": [64, 32, 64], "num_gpu": pa.array([1, 0, 1], pa.int16()),
        "gpu_milli": [1000, 0, 250],
    })
)  # fmt: skip


def workload(**columns: list[object]) -> fs.Workload:
    rows = len(next(iter(columns.values())))
    base = {"submit_s": [float(i) for i in range(rows)], "cpu_milli": [0] * rows, "memory_mib": [0] * rows,
            "num_gpu": [1] * rows, "gpu_milli": [1000] * rows, "workload": ["A3C"] * rows}  # fmt: skip
    frame = pl.DataFrame({"pod_id": range(rows), **base, **columns})
    casts = {"num_gpu": pl.Int16, "gpu_milli": pl.Int16, "workload": pl.Categorical, "tenant": pl.Categorical}
    return fs.Workload.from_arrow(frame.cast({k: v for k, v in casts.items() if k in frame.columns}).to_arrow())


def columns(jobs: fs.Workload, oracle: Oracle = ORACLE) -> JobBatch:
    ideal = oracle.alone__kg[:, oracle.gpu_models.index(oracle.fastest_first[0])]
    (batch,) = JobBatches(jobs.name, jobs.batches, oracle, ideal)
    return batch


def test_steps_come_from_the_work_or_from_the_duration() -> None:
    batch = columns(workload(total_work=[500.0, None], duration_s=[None, 10.0]))
    best = ORACLE.alone__kg[ORACLE.kind_index["A3C", 1]].max()
    assert batch.total_steps.tolist() == [500.0, 10 * best]
    assert batch.weight.tolist() == [1.0, 1.0]
    assert batch.tenant.tolist() == [-1, -1]


def test_deadlines_are_absolute_or_multiples_of_the_duration() -> None:
    batch = columns(workload(duration_s=[100.0] * 3, deadline_s=[7.0, None, None], slo=[2.0, 1.5, None]))
    assert batch.deadline_s.tolist() == [7.0, 1.0 + 150.0, float("inf")]


def test_tenants_get_codes_in_the_order_in_which_they_come() -> None:
    jobs = workload(duration_s=[1.0] * 3, tenant=["b", None, "a"])
    batches = JobBatches("w", jobs.batches, ORACLE, ORACLE.alone__kg[:, 2])
    (batch,) = batches
    assert (batch.tenant.tolist(), batches.tenants) == ([0, -1, 1], ["b", "a"])


def test_pods_work_a_step_a_second() -> None:
    pods = workload(duration_s=[5.0, 8.0], workload=[None, None], num_gpu=[1, 2])
    oracle = pod_oracle(pods, ("T4",))
    assert oracle.kinds == ((POD, 1), (POD, 2))
    assert columns(pods, oracle).total_steps.tolist() == [5.0, 8.0]


def test_a_job_without_an_end_or_without_rates_is_refused() -> None:
    with pytest.raises(InputError, match=r":1: total_work, duration_s: found neither"):
        columns(workload(duration_s=[None]))
    with pytest.raises(InputError, match=r":1: workload: found 'Nobody' on 1 GPUs"):
        columns(workload(duration_s=[1.0], workload=["Nobody"]))


def test_jobs_become_columns() -> None:
    batch = JobBatch.of([Job(0.0, 3, 2, 10.0), Job(5.0, 1, 1, 4.0, 5.0, 99.0)])
    assert batch.num_gpu.tolist() == [2, 1]
    assert batch.deadline_s.tolist() == [float("inf"), 99.0]
    assert len(JobBatch.of([]).submit_s) == 0


def test_equal_requests_are_one_kind() -> None:
    assert requests_of(PODS) == [(0, 100, 32), (1, 500, 64)]
    assert needs_by_kind(requests_of(PODS)).tolist() == [[100, 32], [500, 64]]


def test_pods_are_jobs_of_a_step_a_second() -> None:
    requests = requests_of(PODS)
    oracle = request_oracle(requests, ("T4", "V100"))
    batch = next(iter(PodBatches("pods", PODS.batches, oracle, np.ones(2), requests=requests)))
    assert batch.kind.tolist() == [1, 0, 1] and batch.total_steps.tolist() == [10.0, 20.0, 30.0]
    assert batch.num_gpu.tolist() == [1, 0, 1]


def test_many_kinds_cost_no_table_of_sharing() -> None:
    oracle = request_oracle([(1, cpu, 1) for cpu in range(20_000)], ("T4", "V100"))
    assert not any(oracle.shared__kkg.strides) and not any(oracle.restricted(("V100",)).shared__kkg.strides)

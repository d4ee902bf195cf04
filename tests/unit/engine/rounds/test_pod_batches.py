"""Pods of ordered rounds: equal requests are one kind."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import fastsim as fs
from fastsim.engine.rounds.pod_batches import PodBatches, needs_by_kind, request_oracle, requests_of

PODS = fs.Workload.from_arrow(
    pa.table({
        "pod_id": [0, 1, 2], "submit_s": [0.0, 1.0, 2.0], "duration_s": [10.0, 20.0, 30.0],
        "cpu_milli": [500, 100, 500], "memory_mib": [64, 32, 64], "num_gpu": pa.array([1, 0, 1], pa.int16()),
        "gpu_milli": [1000, 0, 250],
    })
)  # fmt: skip


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

"""Jobs that accept some GPU models only are kinds of their own, with a rate of 0 on the others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import fastsim as fs
from fastsim.engine.rounds.accepted_kinds import AcceptedKinds
from fastsim.engine.rounds.job_batches import JobBatches
from tests.rounds import oracle, setting

SHARED = np.arange(1.0, 9.0).reshape(2, 2, 2)
RATES = oracle([[1.0, 2.0], [3.0, 4.0]], SHARED)
WORK = fs.Workload.from_arrow(
    pa.table({
        "pod_id": [0, 1, 2, 3], "submit_s": [0.0] * 4, "duration_s": [10.0] * 4, "cpu_milli": [0] * 4,
        "memory_mib": [0] * 4, "num_gpu": pa.array([1] * 4, pa.int16()), "gpu_milli": pa.array([1000] * 4, pa.int16()),
        "workload": ["w0", "w1", "w1", "w0"], "gpu_models": [None, ["m0"], ["m1", "m0"], ["m0", "m7"]],
    })
)  # fmt: skip


def test_kinds_of_their_own_stand_behind_the_others() -> None:
    where = setting(RATES, [1, 1])
    jobs = JobBatches("jobs", WORK.batches, RATES, where.reference__k)
    accepted = AcceptedKinds.of(jobs.with_plain_kinds(WORK.batches()), len(RATES.kinds), RATES.gpu_models)
    assert accepted.origins == [0, 1, 0, 1]
    wide = accepted.widened(where)
    assert wide.oracle.alone__kg.tolist() == [[1, 2], [3, 4], [1, 0], [3, 0]]
    assert wide.oracle.shared__kkg[0, 3].tolist() == [SHARED[0, 1, 0], 0]
    assert wide.reference__k.tolist() == where.reference__k[[0, 1, 0, 1]].tolist()
    assert wide.oracle.kind_index["w0", 1] == 0
    jobs.accepted, jobs.ideal__k = accepted, wide.reference__k
    assert next(iter(jobs)).kind.tolist() == [0, 3, 1, 2]


def test_a_workload_without_lists_has_none() -> None:
    plain = fs.Workload.from_arrow(WORK.table().drop_columns(["gpu_models"]))
    where = setting(RATES, [1, 1])
    jobs = JobBatches("jobs", plain.batches, RATES, where.reference__k)
    accepted = AcceptedKinds.of(jobs.with_plain_kinds(plain.batches()), len(RATES.kinds), RATES.gpu_models)
    assert accepted.widened(where) is where

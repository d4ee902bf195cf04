"""Workloads made of the pods of a snapshot: order, times and jobs; a file without pods is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.errors import InputError
from fastsim.kubernetes.snapshot import Snapshot
from tests.objects import pod, workload_of, written


def test_arrivals_durations_and_jobs(tmp_path: Path) -> None:
    over: dict[str, Any] = {"phase": "Succeeded", "startTime": "2024-01-01T00:01:00Z", "containerStatuses": [
        {"state": {"terminated": {"finishedAt": "2024-01-01T00:01:30Z"}}}]}  # fmt: skip
    late = pod("late", status=over, meta={"creationTimestamp": "2024-01-01T00:00:40Z"})
    first = pod("first", meta={"creationTimestamp": "2024-01-01T00:00:00Z"})
    job = {
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"parallelism": 2, "template": {"spec": {"containers": []}}},
    }
    frame = pl.DataFrame(workload_of(Snapshot.read(written(tmp_path / "a.json", late, first, job)), "trace").table())
    assert frame["native_id"].to_list() == ["default/j-0", "default/j-1", "default/first", "default/late"]
    assert frame["submit_s"].to_list() == [0, 0, 0, 40]
    assert frame["duration_s"].to_list() == [None, None, None, 30]
    assert frame["job_id"].to_list() == [0, 0, None, None]
    assert frame["orig_start_s"].to_list() == [None, None, None, 60]


def test_a_file_without_pods_says_what_is_in_it(tmp_path: Path) -> None:
    job = {"kind": "Job", "metadata": {"name": "j"}, "spec": {"suspend": True, "template": {"spec": {}}}}
    path = written(tmp_path / "a.json", job, {**job, "metadata": {"name": "k"}})
    with pytest.raises(InputError, match="found 2 suspended Jobs and no pods that ask for anything, expected objects"):
        fs.Workload.from_kubernetes(path)

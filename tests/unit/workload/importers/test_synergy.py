"""Synergy's traces: order, ids, what writing cuts, what is refused and where."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from fastsim.errors import InputError
from fastsim.workload import Workload
from fastsim.workload.importers.synergy import import_jobs, write_trace


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_jobs_stand_by_arrival_and_keep_their_ids(tmp_path: Path) -> None:
    jobs = Workload.from_synergy(written(tmp_path / "a.csv", "7,res18,20,30,1\n3, gnmt,.5,40,16\n\n9,res18,20.0,1,2\n"))
    assert jobs.table().select(
        ["pod_id", "submit_s", "num_gpu", "workload", "total_work", "native_id"]
    ).to_pylist() == [
        {"pod_id": i, "submit_s": at, "num_gpu": gpus, "workload": model, "total_work": work, "native_id": name}
        for i, (at, gpus, model, work, name) in enumerate(
            [(0.5, 16, "gnmt", 40.0, "3"), (20.0, 1, "res18", 30.0, "7"), (20.0, 2, "res18", 1.0, "9")]
        )
    ]
    assert write_trace(jobs, tmp_path / "b.csv") == 3
    assert (tmp_path / "b.csv").read_text() == "0,gnmt,0.5,40,16\n1,res18,20,30,1\n2,res18,20,1,2\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no jobs"),
        ("0,res18,1,2\n", r"a.csv:1: found 4 fields, expected 5 fields: job_id,model,arrival_s"),
        ("0,res18,1,2,1\n1,res18,x,2,1\n", r"a.csv:2: arrival_s: found 'x', expected seconds"),
        ("0,res18,inf,2,1\n", r"arrival_s: found 'inf'"),
        ("0,res18,1,2.5,1\n", r"total_iterations: found '2.5', expected a whole number"),
        ("0,res18,1,2,0\n", r"gpus: found '0'"),
        ("0,,1,2,1\n", r"model: found ''"),
        ("0,a,1,2,1\n0,b,1,2,1\n", r"a.csv:2: job_id: found 0, expected every id once"),
    ],
)
def test_a_wrong_line_is_one_clear_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        import_jobs(written(tmp_path / "a.csv", text))


def test_files_that_are_no_traces_and_jobs_that_are_no_lines_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        import_jobs(tmp_path / "none.csv")
    written(tmp_path / "a.csv.gz", "0,res18,1,2,1\n")
    with pytest.raises(InputError, match="plain or gzipped"):
        import_jobs(tmp_path / "a.csv.gz")
    row = {"submit_s": [0.0], "cpu_milli": [0], "memory_mib": [0], "num_gpu": [1], "gpu_milli": [1000], "pod_id": [0]}
    with pytest.raises(InputError, match="workload: found no such column"):
        write_trace(Workload.from_arrow(pa.table(row)), tmp_path / "b.csv")
    commas = Workload.from_arrow(pa.table(row | {"workload": ["a,b"], "total_work": [1.0]}))
    with pytest.raises(InputError, match="neither a comma nor a quote"):
        write_trace(commas, tmp_path / "b.csv")
    assert not (tmp_path / "b.csv").exists()

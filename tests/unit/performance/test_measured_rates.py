"""Rates from measurements."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import fastsim as fs
from fastsim.errors import InputError
from fastsim.performance.measured_rates import measured_rates
from fastsim.performance.rate_table import write_rates
from tests.cli.terminal import fastsim

HEAD = "workload,gpu_model,num_gpu,colocated_workload,steps,seconds\n"
ROWS = "a,v100,1,,100,10\na,v100,1,,300,10\na,k80,1,,50,10\nb,v100,2,,70,10\na,v100,1,c,60,10\nc,v100,1,a,40,10\n"
SINGLE = "workload,gpu_model,steps,seconds\na,v100,200,10\na,k80,50,10\n"


def test_measurements_of_the_same_are_added_up(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(HEAD + ROWS)
    rows = measured_rates(tmp_path / "m.csv").to_pylist()
    keys = ("workload", "gpu_model", "num_gpu", "colocated_workload", "steps_per_s", "colocated_steps_per_s")
    assert [tuple(row[key] for key in keys) for row in rows] == [
        ("a", "k80", 1, None, 5.0, None), ("a", "v100", 1, None, 20.0, None), ("a", "v100", 1, "c", 6.0, 4.0),
        ("b", "v100", 2, None, 7.0, None), ("c", "v100", 1, "a", 4.0, 6.0),
    ]  # fmt: skip


def test_a_run_takes_them(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(SINGLE)
    done = fastsim("profile", "gavel", "m.csv", "-o", "rates.parquet", cwd=tmp_path)
    assert (done.code, done.out) == (0, "rates.parquet: 2 rates\n")
    pods = pl.DataFrame({
        "pod_id": [0], "submit_s": [0.0], "cpu_milli": [0], "memory_mib": [0], "num_gpu": [1], "gpu_milli": [1000],
        "workload": ["a"], "total_work": [400.0],
    })  # fmt: skip
    jobs, cluster = fs.Workload.from_polars(pods), fs.Cluster.mix(v100=1, k80=1)
    result = fs.simulate(cluster, jobs, "fifo(mode=perf)", rates=str(tmp_path / "rates.parquet"))
    assert result.summary["jct_mean_s"].item() == 20.0


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ("a,v100,10,0\n", "m.csv:2: seconds: found 0.0, expected above 0"),
        ("a,v100,10,1\na,k80,-1,1\n", "m.csv:3: steps: found -1.0, expected 0 or more"),
        ("a,v100,x,1\n", "m.csv:2"),
    ],
)
def test_mistakes_name_the_line(rows: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("workload,gpu_model,steps,seconds\n" + rows)
    with pytest.raises(InputError) as caught:
        write_rates(measured_rates(tmp_path / "m.csv"), tmp_path / "r.parquet")
    assert told in str(caught.value) and not (tmp_path / "r.parquet").exists()

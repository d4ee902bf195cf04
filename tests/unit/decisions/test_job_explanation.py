"""Why jobs ran and waited: by hand on two GPUs, and on runs of every engine of jobs."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import fastsim as fs
from fastsim.cli.main import exit_code
from fastsim.decisions.job_explanation import SCHEMA, job_spans
from tests.engines import RUNS, small_run


def by_hand() -> fs.Scenario:
    """Two GPUs, first come first served: a job on both, one on both behind it, and one on a single GPU."""
    jobs = pl.DataFrame({
        "submit_s": [0.0, 0.0, 1200.0], "num_gpu": [2, 2, 1], "duration_s": [900.0, 900.0, 300.0],
        "native_id": ["first", "second", "third"],
    })  # fmt: skip
    cluster = fs.Cluster.uniform(nodes=1, gpu="V100M32", gpus=2)
    return fs.Scenario(cluster, fs.Workload.from_polars(jobs), "fcfs", round_s=300)


def test_a_run_worked_out_by_hand() -> None:
    spans = fs.explain(by_hand(), ["second", 2])
    assert dict(spans.schema) == SCHEMA
    shown = ["pod_id", "from_s", "until_s", "state", "gpus", "free", "jobs", "why"]
    assert spans.select(shown).rows() == [
        (1, 0.0, 900.0, "waits", 0, 0, 1, "asks for 2 GPUs, more than are free; free: 0, held by 1 job: 2"),
        (1, 900.0, 1800.0, "runs", 2, 0, 0, "has 2 GPUs until it is done; free: 0"),
        (2, 1200.0, 1800.0, "waits", 0, 0, 1, "asks for 1 GPU, more than are free; free: 0, held by 1 job: 2"),
        (2, 1800.0, 2100.0, "runs", 1, 1, 0, "has 1 GPU until it is done; free: 1"),
    ]


def test_a_job_that_is_stopped_names_the_jobs_that_have_its_gpus() -> None:
    result = fs.simulate("gavel:2:2:2", "synth:gavel?jobs=12&rate_per_hour=8&seed=3", "las")
    spans = fs.explain(result, 1)
    stopped = spans.filter(pl.col("why").str.starts_with("stopped"))
    assert not stopped.is_empty()
    for row in stopped.iter_rows(named=True):
        before = spans.filter(until_s=row["from_s"]).row(0, named=True)
        held = result.placements.filter(
            pl.col("node").is_in(before["nodes"]), pl.col("start_s") <= row["from_s"], pl.col("end_s") > row["from_s"]
        )
        assert row["taken_by"] == held["pod_id"].unique().sort().to_list()


@pytest.mark.parametrize("engine", [engine for engine in RUNS if engine != "pods"])
def test_times_of_a_job_follow_each_other_and_are_its_stays(engine: str, tmp_path: Path) -> None:
    result = small_run(engine)
    ids = result.jobs["pod_id"].to_list()
    spans = job_spans(result, ids)
    assert fs.explain(result.save(tmp_path / "run"), ids).equals(spans)
    assert fs.explain(fs.Scenario(**RUNS[engine]), sample=len(ids)).equals(spans)
    assert spans["free"].to_numpy().min() >= (-8 if engine == "monitored" else 0)
    for job in result.jobs.iter_rows(named=True):
        mine = spans.filter(pod_id=job["pod_id"])
        assert mine["from_s"][0] == job["submit_s"] and mine["until_s"].to_list()[-1] == job["end_s"]
        assert mine["until_s"].to_list()[:-1] == mine["from_s"].to_list()[1:]
        ran = mine.filter(state="runs").select(pl.col("until_s") - pl.col("from_s")).to_series().sum()
        stays = result.placements.filter(pl.col("node_id").is_not_null(), pod_id=job["pod_id"])
        held = stays.unique("start_s").select(pl.col("end_s") - pl.col("start_s")).to_series().sum()
        assert ran == pytest.approx(held)


def test_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small_run("orders").save(tmp_path / "run")
    assert exit_code(["explain", str(tmp_path / "run"), "0", "--csv", str(tmp_path / "why.csv")]) == 0
    assert capsys.readouterr().out.startswith("job 0\n")
    assert pl.read_csv(tmp_path / "why.csv").columns == [*SCHEMA]
    assert exit_code(["explain", str(tmp_path / "run"), "nobody"]) == 2
    assert "no such job in the run" in capsys.readouterr().err

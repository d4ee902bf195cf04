"""Files in folders of the Sia and Pollux experiments."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from fastsim.errors import FastsimError
from fastsim.experiments.reproduce.sia_artifact import applications_file, job_lists, pollux_lists
from fastsim.performance.applications.family import Applications

EPOCHS = {"app": ["a", "a"], "batch_size": [8, 16], "row": [0, 0], "progress": [10.0, 12.0], "iteration": [1, 1],
          "metric": [0.5, 0.5], "grad_sqr": [1.0, 1.0], "grad_var": [2.0, 2.0]}  # fmt: skip
PLACES = {"app": ["a", "a"], "row": [0, 0], "gpu_type": ["aws", "default"], "placement": ["1", "1"],
          "local_bsz": [8, 8], "step_time": [0.1, 0.2], "sync_time": [0.0, 0.0]}  # fmt: skip
SCALE = {"app": ["a"], "row": [0], "gpu_type": ["aws"], "num_nodes": [2], "num_replicas": [2], "local_bsz": [8.0],
         "step_time": [0.2], "sync_time": [0.1]}  # fmt: skip

LIST = "name,time,application,num_replicas,batch_size\nncf-0,1.0,ncf,1,32768\nbert-1,2.0,bert,2,24\n"


def test_lists_are_found_where_artifacts_have_them(tmp_path: Path) -> None:
    assert job_lists(tmp_path, "philly") == [] and pollux_lists(tmp_path) == {}
    for place in ("philly", "workloads/philly"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "workload-1.csv").touch()
        assert job_lists(tmp_path, "philly") == [f"sia:{tmp_path / place / 'workload-1.csv'}"]
    (tmp_path / "workloads/scale/rate_10").mkdir(parents=True)
    (tmp_path / "workloads/scale/rate_10/workload-3.csv").touch()
    assert job_lists(tmp_path, "scale_rate_10") == [f"sia:{tmp_path / 'workloads/scale/rate_10/workload-3.csv'}"]
    for place, load in (("workloads", 1.0), ("workloads-0.5", 0.5)):
        (tmp_path / place).mkdir(exist_ok=True)
        (tmp_path / place / "workload-2.csv").write_text(LIST)
        scratch = tmp_path / "scratch"
        scratch.mkdir(exist_ok=True)
        assert list(pollux_lists(tmp_path, load)) == [2]
        text = pollux_lists(tmp_path, load, scratch)[2]
        rows = pl.read_csv(text.removeprefix("sia:"))
        assert rows["category"].to_list() == ["scale-gpus", "adaptive"] and rows["name"].to_list() == [
            "ncf-0",
            "bert-1",
        ]
    assert pollux_lists(tmp_path, 2.0) == {}


def test_lists_of_one_table(tmp_path: Path) -> None:
    (tmp_path / "data/pollux").mkdir(parents=True)
    rows = {"name": ["b-0", "a-0"], "time": [2.0, 1.0], "application": ["b", "a"], "num_replicas": [1, 2],
            "batch_size": [8, 16], "_workload": [2, 1]}  # fmt: skip
    pl.DataFrame(rows).write_parquet(tmp_path / "data/pollux/workloads.parquet")
    assert len(pollux_lists(tmp_path)) == 2
    first, second = pollux_lists(tmp_path, 1.0, tmp_path).values()
    assert "a-0" in Path(first.removeprefix("sia:")).read_text()
    assert "b-0" in Path(second.removeprefix("sia:")).read_text()


def test_applications_of_tables(tmp_path: Path) -> None:
    assert applications_file(tmp_path, tmp_path) is None
    folder = tmp_path / "golden/sia/input"
    folder.mkdir(parents=True)
    for name, rows in (("validation", EPOCHS), ("placements", PLACES)):
        pl.DataFrame(rows).write_parquet(folder / f"app_{name}.parquet")
    with pytest.raises(FastsimError, match="app_scalability"):
        applications_file(tmp_path, tmp_path)
    pl.DataFrame(SCALE).write_parquet(folder / "app_scalability.parquet")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    path = applications_file(tmp_path, scratch)
    assert path is not None
    (app,) = Applications.from_parquet(path).values()
    assert (app.name, list(app.steps), app.restart_s) == ("a", ["aws"], 30.0)
    of_pollux = applications_file(tmp_path, scratch, pollux=True)
    assert of_pollux is not None and Applications.from_parquet(of_pollux)["a"].slowdown == 1.0
    (tmp_path / "applications.parquet").write_bytes(Path(path).read_bytes())
    assert applications_file(tmp_path, scratch) == str(tmp_path / "applications.parquet")


def test_folders_of_either_artifact(tmp_path: Path) -> None:
    folder = tmp_path / "traces/bert"
    folder.mkdir(parents=True)
    (folder / "validation-12.csv").write_text("progress,iteration,metric,grad_sqr,grad_var\n10,10,0.5,1,2\n")
    (folder / "placements.csv").write_text("placement,local_bsz,step_time,sync_time\n1,12,0.7,0.0\n")
    path = applications_file(tmp_path, tmp_path)
    assert path is not None and Applications.from_parquet(path)["bert"].restart_s == 30.0  # Pollux's, not Sia's 120

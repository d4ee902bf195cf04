"""Runs that come no nearer to their end: what is counted, the early warning, and the stop at the budget."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fastsim as fs
from fastsim.engine.online.headway import NoHeadway, PodHeadway
from fastsim.errors import ScenarioError
from fastsim.foundation.limits.work_budget import CHOICE, Work


@pytest.fixture
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHOICE, "0.0002")  # 1,000 stays, 4,000 rows in memory, 20,000 node changes


def restarting(**options: Any) -> fs.Result:
    """A gang of four on four nodes that fail every second and a half, streamed so that no estimate is made before."""
    rows = {
        "pod_id": range(4), "submit_s": [0.0] * 4, "duration_s": [10.0] * 4, "cpu_milli": [100] * 4,
        "memory_mib": [1] * 4, "num_gpu": [1] * 4, "gpu_milli": [1000] * 4, "gang_size": [4] * 4, "job_id": [1] * 4,
    }  # fmt: skip
    path = options.pop("folder") / "pods.parquet"
    fs.Workload.from_arrow(pa.table({name: list(values) for name, values in rows.items()})).write(path)
    rules: dict[str, Any] = {
        "failures": "mtbf=1.5,mttr=0.5",
        "on_node_loss": "requeue",
        "queue": "fifo",
        "restart_s": 3.0,
    }
    return fs.simulate("uniform?nodes=4&gpu=T4&gpus=1", fs.Workload.scan(path), "best_fit", **rules, **options)


@pytest.mark.filterwarnings("ignore::fastsim.engine.online.headway.NoHeadway")
def test_stays_count_from_the_last_pod_that_ended(small_budget: None) -> None:
    headway = PodHeadway()
    headway.add_stays(900, 0, 5, 1.0)
    headway.add_stays(900, 1, 5, 2.0)
    assert not any(headway.done.values())
    with pytest.raises(ScenarioError, match="run at 3 s, 1 of 5 pods ended: found 1,001 stays on nodes since a pod"):
        headway.add_stays(1001, 1, 5, 3.0)


def test_the_warning_comes_once_at_a_tenth_of_the_budget(small_budget: None) -> None:
    headway = PodHeadway()
    with pytest.warns(NoHeadway, match="101 stays on nodes since a pod ended; the run stops at 1,000"):
        headway.add_stays(101, 0, 5, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        headway.add_stays(101, 0, 5, 2.0)


def test_rows_written_to_a_folder_may_be_more_than_rows_in_memory(small_budget: None) -> None:
    PodHeadway(in_memory=False).add_rows(10_000)
    with pytest.raises(ScenarioError, match=r"timeline: found 10,000 rows of the timeline in memory.*longer sample_s"):
        PodHeadway().add_rows(10_000)


@pytest.mark.filterwarnings("ignore::fastsim.engine.online.headway.NoHeadway")
def test_a_gang_that_restarts_for_ever_stops_with_an_error_and_writes_nothing(
    small_budget: None, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    with pytest.raises(ScenarioError, match=r"0 of 4 pods ended: found .* stays on nodes since a pod ended, expected"):
        restarting(folder=tmp_path, out=str(out), record="none")
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith(".")) == ["pods.parquet"]


def test_until_ends_the_same_run_with_what_it_did(small_budget: None, tmp_path: Path) -> None:
    result = restarting(folder=tmp_path, until_s=20.0)
    assert result.summary["pods_finished"][0] == 0 and result.summary["restarts"][0] > 0


def pods_file(folder: Path, rows: int = 1, first_s: float = 0.0, duration_s: float = 10.0) -> fs.Workload:
    """Pods that each need a whole node of one GPU, from a file."""
    usual = {"submit_s": first_s, "duration_s": duration_s, "cpu_milli": 1, "memory_mib": 1, "num_gpu": 1}
    columns = {name: [value] * rows for name, value in (usual | {"gpu_milli": 1000}).items()}
    path = folder / "pods.parquet"
    fs.Workload.from_arrow(pa.table({"pod_id": list(range(rows))} | columns)).write(path)
    return fs.Workload.scan(path)


def test_samples_that_were_not_estimated_stop_at_the_budget(small_budget: None, tmp_path: Path) -> None:
    assert Work.HELD_ROWS.most == 4000
    pods = pods_file(tmp_path, rows=5, duration_s=3.0)  # one after another
    with pytest.raises(ScenarioError, match=r"timeline: found .* rows of the timeline in memory"):
        fs.simulate("uniform?nodes=1&gpu=T4&gpus=1", pods, "best_fit", queue="fifo", sample_s=1e-3)


@pytest.mark.parametrize("record", ["none", "summary", "placements"])
def test_samples_that_are_not_recorded_are_counted_too(record: str, small_budget: None, tmp_path: Path) -> None:
    pods = pods_file(tmp_path, rows=5, duration_s=3.0)
    with pytest.raises(ScenarioError, match=r"sample_s: found .* samples of the cluster, expected at most 200,000"):
        fs.simulate("uniform?nodes=1&gpu=T4&gpus=1", pods, "best_fit", queue="fifo", sample_s=2e-5, record=record)


@pytest.mark.parametrize(("options", "message"), [
    ({"sample_s": 1e-9}, "sample_s: found 16,000,000,000 rows of the timeline in memory"),
    ({"sample_s": 1e-9, "record": "none"}, "sample_s: found 16,000,000,000 samples of the cluster"),
    ({"sample_s": 1e-300, "record": "none"}, r"sample_s: found 1.6e\+301 samples of the cluster"),
    ({"failures": "mtbf=1e-9,mttr=1e-9"}, "failures: found 16,000,000,000 failures and repairs of nodes"),
    ({"telemetry": "10?refresh_s=1e-9"}, "telemetry: refresh_s: found 16,000,000,000 refreshes and samples"),
    ({"telemetry": "10?refresh_s=1e-9:3e-9"}, "telemetry: refresh_s: found 8,000,000,000 refreshes and samples"),
    ({"telemetry": "0.001"}, "telemetry: found 16,000 refreshes and samples of exporters, expected at most 600"),
])  # fmt: skip
def test_pods_of_a_file_are_estimated_as_they_are_read(
    options: dict[str, Any], message: str, small_budget: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastsim.engine.online.run.OnlineRun.advance", lambda run: pytest.fail("the loop has begun"))
    with pytest.raises(ScenarioError, match=message):
        fs.simulate("uniform?nodes=1&gpu=T4&gpus=1", pods_file(tmp_path, duration_s=16.0), "best_fit", **options)


def test_multiples_of_a_time_between_samples_are_exact(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="sample_s: found 1e-09, expected a part of second 1e\\+09"):
        fs.simulate("uniform?nodes=1&gpu=T4&gpus=1", pods_file(tmp_path, first_s=1e9, duration_s=1e-3), sample_s=1e-9)


def test_failures_begin_with_the_first_arrival(small_budget: None, tmp_path: Path) -> None:
    """Before it, 2,000,000 changes of nodes would come."""
    result = fs.simulate(
        "uniform?nodes=1&gpu=T4&gpus=1", pods_file(tmp_path, first_s=1e9), "best_fit", failures="mtbf=900,mttr=100"
    )
    assert result.summary["pods_finished"].item() == 1


@pytest.mark.filterwarnings("ignore::fastsim.engine.online.headway.NoHeadway")
def test_failures_without_end_stop_at_the_budget(small_budget: None, tmp_path: Path) -> None:
    path = tmp_path / "pods.parquet"
    one = {"pod_id": [0], "submit_s": [0.0], "duration_s": [1e7], "cpu_milli": [1], "memory_mib": [1]}
    fs.Workload.from_arrow(pa.table(one | {"num_gpu": [1], "gpu_milli": [500]})).write(path)
    with pytest.raises(ScenarioError, match=r"failures: found .* failures and repairs of nodes, expected at most"):
        fs.simulate("uniform?nodes=50&gpu=T4", fs.Workload.scan(path), failures="mtbf=1e4,mttr=1", record="none",
                    on_node_loss="requeue", checkpoint_every_s=0, queue="fifo")  # fmt: skip

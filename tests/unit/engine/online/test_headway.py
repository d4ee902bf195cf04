"""Runs that come no nearer to their end: what is counted, the early warning, and the stop at the budget."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fastsim as fs
from fastsim.engine.online.headway import Headway, NoHeadway
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
    headway = Headway()
    headway.add_stays(900, 0, 5, 1.0)
    headway.add_stays(900, 1, 5, 2.0)
    assert headway.stays == 0
    with pytest.raises(ScenarioError, match="run at 3 s, 1 of 5 pods ended: found 1,001 stays on nodes since a pod"):
        headway.add_stays(1001, 1, 5, 3.0)


def test_the_warning_comes_once_at_a_tenth_of_the_budget(small_budget: None) -> None:
    headway = Headway()
    with pytest.warns(NoHeadway, match="101 stays on nodes since a pod ended; the run stops at 1,000"):
        headway.add_stays(101, 0, 5, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        headway.add_stays(101, 0, 5, 2.0)


def test_rows_written_to_a_folder_may_be_more_than_rows_in_memory(small_budget: None) -> None:
    Headway(in_memory=False).add_rows(10_000)
    with pytest.raises(ScenarioError, match=r"timeline: found 10,000 rows of the timeline in memory.*longer sample_s"):
        Headway().add_rows(10_000)


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


def test_samples_that_were_not_estimated_stop_at_the_budget(small_budget: None, tmp_path: Path) -> None:
    assert Work.HELD_ROWS.most == 4000
    path = tmp_path / "pods.parquet"
    one = {"pod_id": [0], "submit_s": [0.0], "duration_s": [10.0], "cpu_milli": [1], "memory_mib": [1]}
    fs.Workload.from_arrow(pa.table(one | {"num_gpu": [1], "gpu_milli": [500]})).write(path)
    with pytest.raises(ScenarioError, match=r"timeline: found .* rows of the timeline in memory"):
        fs.simulate("uniform?nodes=1&gpu=T4", fs.Workload.scan(path), sample_s=1e-3)


@pytest.mark.filterwarnings("ignore::fastsim.engine.online.headway.NoHeadway")
def test_failures_without_end_stop_at_the_budget(small_budget: None, tmp_path: Path) -> None:
    path = tmp_path / "pods.parquet"
    one = {"pod_id": [0], "submit_s": [0.0], "duration_s": [1e7], "cpu_milli": [1], "memory_mib": [1]}
    fs.Workload.from_arrow(pa.table(one | {"num_gpu": [1], "gpu_milli": [500]})).write(path)
    with pytest.raises(ScenarioError, match=r"failures: found .* failures and repairs of nodes, expected at most"):
        fs.simulate("uniform?nodes=50&gpu=T4", fs.Workload.scan(path), failures="mtbf=1e4,mttr=1", record="none",
                    on_node_loss="requeue", checkpoint_every_s=0, queue="fifo")  # fmt: skip

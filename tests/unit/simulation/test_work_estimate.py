"""Work of a run of pods before it begins: estimates by hand, refusals, and the warning about gangs that restart."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fastsim as fs
from fastsim.engine.online.headway import NoHeadway
from fastsim.errors import ScenarioError
from fastsim.simulation.work_estimate import most_tries

FOUR = "uniform?nodes=4&gpu=T4&gpus=1"
AGAIN: dict[str, Any] = {"on_node_loss": "requeue", "queue": "fifo"}


def table(rows: int = 1, **columns: Any) -> pa.Table:
    usual = {"submit_s": 0.0, "duration_s": 10.0, "cpu_milli": 100, "memory_mib": 1, "num_gpu": 1, "gpu_milli": 1000}
    made = {name: columns.pop(name, [value] * rows) for name, value in usual.items()}
    return pa.table({"pod_id": list(range(rows)), **made, **columns})


def gang(**columns: Any) -> pa.Table:
    return table(4, gang_size=[4] * 4, job_id=[1] * 4, **columns)


def played(pods: pa.Table, cluster: str = FOUR, **options: Any) -> fs.Result:
    return fs.simulate(cluster, fs.Workload.from_arrow(pods), "best_fit", **options)


def test_tries_grow_exponentially_with_what_must_last() -> None:
    cluster = fs.Cluster.uniform(nodes=4, gpu="T4", gpus=1)
    worst = most_tries(cluster, gang(duration_s=[1.0] * 4), 1.5, 3.0, None)
    assert (worst.row, worst.nodes) == (1, 4)
    assert worst.tries == pytest.approx(1 + (1 - math.exp(-4 / 1.5)) * math.exp(4 * 4.0 / 1.5))
    saved = most_tries(cluster, gang(duration_s=[100.0] * 4), 1.5, 0.0, 0.0)
    assert saved.tries == pytest.approx(2.0)  # nothing is lost and nothing is added: a stop costs one more start
    assert most_tries(cluster, gang(duration_s=[None] * 4), 1.5, 3.0, None).tries == 1.0
    assert most_tries(cluster, table(0), 1.5, 3.0, None).tries == 1.0
    assert most_tries(cluster, table(2, duration_s=[1.0, 1e9]), 1.0, 0.0, None).tries == math.inf


def test_a_gang_stands_on_as_few_nodes_as_can_hold_it() -> None:
    large = fs.Cluster.uniform(nodes=4, gpu="T4", gpus=2)
    assert most_tries(large, gang(), 10.0, 0.0, None).nodes == 2
    assert most_tries(large, gang(cpu_milli=[96_000] * 4), 10.0, 0.0, None).nodes == 4
    bare = fs.Cluster.uniform(nodes=4)
    assert most_tries(bare, gang(num_gpu=[0] * 4, gpu_milli=[0] * 4), 10.0, 0.0, None).nodes == 1


def test_a_gang_that_would_hardly_ever_end_is_refused_before_it_begins(tmp_path: Path) -> None:
    rules: dict[str, Any] = {"failures": "mtbf=1.5,mttr=0.5", "restart_s": 3.0, **AGAIN}
    with pytest.raises(ScenarioError, match=r"failures: row 1 on 4 nodes, one of which fails every 0\.375 s: found"):
        played(gang(), **rules, out=str(tmp_path / "run"))
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == []
    assert played(gang(), **rules, until_s=30.0).summary["pods_finished"][0] == 0


def test_a_gang_that_restarts_often_is_warned_about_before_it_begins() -> None:
    rules: dict[str, Any] = {"failures": "mtbf=3,mttr=0.5", "restart_s": 4.5, "record": "none", **AGAIN}
    with pytest.warns(NoHeadway, match=r"row 1 on 4 nodes, .*: about 1,1\d\d tries are expected before it ends"):
        result = played(gang(duration_s=[1.0] * 4), **rules)
    assert result.summary["pods_finished"][0] == 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        played(gang(duration_s=[1.0] * 4), **{**rules, "failures": "mtbf=300,mttr=5"})


@pytest.mark.parametrize(("options", "message"), [
    ({"sample_s": 1e-9}, "sample_s: found 10,000,000,000 rows of the timeline in memory, expected at most 20,000,000"),
    ({"inflation": 1e9}, "inflation: found 1,000,000,000 pods or jobs in memory, expected at most 50,000,000"),
    ({"failures": "mtbf=1e-7,mttr=1e-7"}, "failures: found 400,000,000 failures and repairs of nodes, expected at"),
])  # fmt: skip
def test_what_would_take_too_much_is_refused_before_it_begins(
    options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastsim.engine.online.run.run_online", lambda *inputs: pytest.fail("it has begun"))
    with pytest.raises(ScenarioError, match=message):
        played(table(), **options)


def test_failures_until_a_far_end_are_refused_unless_the_run_ends_earlier() -> None:
    far = table(2, submit_s=[0.0, 1e15])
    with pytest.raises(ScenarioError, match=r"failures: found .* expected at most 100,000,000 failures"):
        played(far, failures="mtbf=100,mttr=10")
    assert played(far, failures="mtbf=100,mttr=10", until_s=1000.0).summary["pods"][0] == 1


def test_readings_are_refused_before_they_are_taken() -> None:
    with pytest.raises(ScenarioError, match=r"telemetry: found .* readings of GPUs, expected at most 2,000,000,000"):
        played(table(duration_s=[1e9]), telemetry=0.001)


def test_rows_that_are_wrong_are_named_by_the_run() -> None:
    with pytest.raises(fs.FastsimError, match="duration_s: found nan"):
        played(table(duration_s=[math.nan]), sample_s=1.0, failures="mtbf=100,mttr=10", **AGAIN)
    with pytest.raises(fs.FastsimError, match="submit_s: found 'x'"):
        played(table(submit_s=["x"]), sample_s=1.0)

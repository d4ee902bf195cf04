"""Everything that waits, by pod and by cause, from scenarios, results and saved folders."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import fastsim as fs
from fastsim.cli.main import exit_code
from fastsim.decisions.explain import NeverTried
from fastsim.decisions.waiting_pods import by_cause, waiting_pods
from fastsim.simulation.simulate import played
from tests.objects import node, pod, written


@pytest.fixture
def scenario(tmp_path: Path) -> fs.Scenario:
    """Two nodes, one of them cordoned, and three pods that are too large for the other."""
    large = [pod(f"large{i}", {"cpu": 99 + i}) for i in range(2)]
    pods = (pod("fits", {"cpu": 1}), *large, pod("nic", {"a.b/nic": 1}))
    objects = (node("n1"), node("n2", {}, {"unschedulable": True}), *pods)
    text = f"kubernetes:{written(tmp_path / 'now.json', *objects)}"
    return fs.Scenario(text, text, "best_fit", record="all")


def test_every_pod_without_a_place_has_a_row(scenario: fs.Scenario, tmp_path: Path) -> None:
    table = waiting_pods(scenario)
    assert dict(table.select("native_id", "why").iter_rows()) == {
        "default/large0": "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.",
        "default/large1": "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.",
        "default/nic": "0/2 nodes are available: 1 Insufficient a.b/nic, 1 node(s) were unschedulable.",
    }
    assert set(table["check"]) == {"too_large", "no_extra"} and table["cpu_milli"].max() == 100_000
    result = played(scenario)[0]
    result.save(tmp_path / "run")
    assert waiting_pods(result).equals(table) and waiting_pods(tmp_path / "run").equals(table)


def test_causes_are_counted_without_numbers_of_nodes(scenario: fs.Scenario) -> None:
    assert by_cause(waiting_pods(scenario)).rows() == [
        (2, "default/large0", "Insufficient cpu, node(s) were unschedulable"),
        (1, "default/nic", "Insufficient a.b/nic, node(s) were unschedulable"),
    ]


def test_rules_that_hold_a_pod_back_are_the_cause(tmp_path: Path) -> None:
    scenario = fs.Scenario("uniform?nodes=2&gpu=T4&gpus=1", "synth:openb?pods=20&seed=2", "fgd", queue="fifo")
    table = waiting_pods(scenario.with_(quotas="*:gpu_milli=0"))
    assert by_cause(table).rows() == [
        (14, "1", "it is more than its tenant's whole quota"),
        (1, "18", "Insufficient cpu, Insufficient memory, Insufficient nvidia.com/gpu"),
    ]
    empty = waiting_pods(fs.Scenario("openb:20?seed=1", "synth:openb?pods=3", "fgd"))
    assert empty.is_empty() and empty.columns == table.columns and by_cause(empty).is_empty()


def test_pods_that_were_never_tried_have_a_row_each() -> None:
    rows = {"submit_s": [0.0] * 5, "num_gpu": [4, 1, 1, 4, 4], "duration_s": [9.0] * 5}
    gangs = fs.Workload.from_polars(pl.DataFrame(rows | {"job_id": [1, 7, 7, 2, 3], "gang_size": [1, 4, 4, 1, 1]}))
    cluster = fs.Cluster.uniform(nodes=1, gpu="V100M32", gpus=4)
    result = fs.simulate(cluster, gangs, "best_fit", queue="fifo", until_s=5.0)
    with pytest.warns(NeverTried):
        table = waiting_pods(result)
    assert table.select("pod_id", "check", "why").rows() == [
        (1, "gang", "its gang, that of job 7, has 2 of 4 members"),
        (2, "gang", "its gang, that of job 7, has 2 of 4 members"),
        (3, "no_gpu", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."),
        (4, "queue", "the run ended while other pods were ahead of it in the queue"),
    ]
    assert table["pod_id"].to_list() == result.jobs.filter(pl.col("state") == "pending")["pod_id"].to_list()


def test_runs_without_a_table_of_pods_are_refused() -> None:
    short = fs.simulate("openb:20?seed=1", "synth:openb?pods=3", "fgd", record="summary")
    jobs = fs.simulate("gavel:4:4:4", "synth:gavel?jobs=3", "fifo")
    for result in (short, jobs):
        with pytest.raises(fs.ResultError, match="found a run without a table of pods"):
            waiting_pods(result)


def test_the_command_counts_and_lists(
    scenario: fs.Scenario, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    played(scenario)[0].save(tmp_path / "run")
    words = ["explain", str(tmp_path / "run"), "--waiting"]
    assert exit_code(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split()[:2] == ["2", "default/large0"] and lines[-1] == "3 pods wait"
    assert exit_code([*words, "--all", "--csv", str(tmp_path / "waiting.csv")]) == 0
    assert "0/2 nodes are available: 1 Insufficient a.b/nic" in capsys.readouterr().out
    assert pl.read_csv(tmp_path / "waiting.csv").height == 3
    assert exit_code([*words, "1"]) == 2
    assert "found both POD and --waiting, expected one of them" in capsys.readouterr().err

"""Decisions as a terminal shows them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from fastsim.decisions.explain import explained
from fastsim.decisions.explain_text import explanation_text, nearest, request_text, write_csv
from fastsim.engine.online.plan import PodRequest
from fastsim.scenario.scenario import Scenario
from tests.unit.decisions.test_replay import named, pods
from tests.unit.ext.select.test_scan import mixed
from tests.unit.ext.state.test_node_table import t4


def test_a_pod_that_was_placed() -> None:
    found = explained(Scenario(t4(2), named("a", "job-b"), "0.9*fgd + 0.1*pwr"), 11)
    lines = explanation_text(found).splitlines()
    assert lines[0] == "pod 11 (job-b), attempt 0 at 1 s, asks for 0 milli-CPU, 0 MiB, 1 GPU of 1,000 milli"
    assert lines[1] == "-> node-0000, position 0, GPU 1: smallest position of 2 nodes with the highest total"
    assert lines[3].split()[:3] == ["rank", "node", "position"] and "x 9" in lines[3]
    assert lines[-1] == "all 2 nodes can host it"


def test_figures_that_repeat_are_left_out() -> None:
    def head(policy: str) -> str:
        lines = explanation_text(explained(Scenario(t4(2), pods({}), policy), 10)).splitlines()
        return " ".join(" ".join(lines[2:4]).split())

    assert head("fgd") == "fgd rank node position raw total GPUs"
    assert head("best_fit") == "best_fit best_fit rank node position raw points total GPUs"


def test_a_pod_that_fits_nowhere_sees_the_nearest_nodes_first() -> None:
    workload = pods({"num_gpu": 2}, {"num_gpu": 4}, {"num_gpu": 0, "gpu_milli": 0, "cpu_milli": 16_000}, {"num_gpu": 2})
    found = explained(Scenario(mixed(), workload, "best_fit"), 13)
    lines = explanation_text(found).splitlines()
    assert lines[1] == "-> nowhere: no_gpu is as far as any node got"
    assert [line.split()[1] for line in lines[4:7]] == ["0", "1", "2"]
    assert lines[-1] == "3 of 3 nodes cannot host it: 3 no_gpu"
    stages = pl.DataFrame({
        "feasible": [False] * 5, "failed": ["no_gpu", "absent", "no_cpu", "no_cpu", "no_gpu_model"],
        "found": [0, None, 10, 30, None], "needed": [1, None, 50, 50, None], "position": range(5),
    })  # fmt: skip
    assert nearest(stages)["position"].to_list() == [3, 2, 0, 4, 1]


def test_ten_nodes_or_all_of_them() -> None:
    found = explained(Scenario(t4(14), pods({"num_gpu": 2}, {}), "best_fit"), 11)
    assert len(explanation_text(found).splitlines()) == 2 + 3 + 10 + 1
    every = explanation_text(found, every=True)
    assert len(every.splitlines()) == 2 + 3 + 13 + 2 + 1 + 1
    assert "0 GPUs have room, needs 1" in every


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (PodRequest(1000, 20, 0, 0, ()), "1,000 milli-CPU, 20 MiB"),
        (PodRequest(0, 0, 1, 250, ("T4", "G2", "T4")), "0 milli-CPU, 0 MiB, 1 GPU of 250 milli (T4 or G2)"),
    ],
)
def test_requests_in_words(request_: PodRequest, text: str) -> None:
    assert request_text(request_) == text


def test_csv_has_every_row(tmp_path: Path) -> None:
    frame = explained(Scenario(t4(2), pods({"num_gpu": 2}), "best_fit"), 10).frame()
    write_csv(frame, tmp_path / "why.csv")
    read = pl.read_csv(tmp_path / "why.csv")
    assert read.columns == frame.columns and read["gpu_ids"].to_list() == ["0 1", "0 1"]
    assert [path.name for path in tmp_path.iterdir()] == ["why.csv"]


def test_names_are_no_formulas_in_a_csv(tmp_path: Path) -> None:
    frame = explained(Scenario(t4(2), named("a", "=HYPERLINK(1)"), "best_fit"), 11).frame()
    assert "=HYPERLINK(1)" in frame.row(0)
    write_csv(frame, tmp_path / "a.csv")
    assert ",'=HYPERLINK(1)," in (tmp_path / "a.csv").read_text()

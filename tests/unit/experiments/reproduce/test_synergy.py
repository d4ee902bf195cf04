"""Synergy's experiments on few jobs, and the recorded runs of a folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from fastsim.errors import InputError
from fastsim.experiments.reproduce import synergy as paper


def test_quick_is_the_check_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "CHECK_WINDOW", "20:60")
    reported: list[int] = []
    reproduction = paper.synergy_reproduction(None, True, 1, reported.append)
    assert reproduction.runs == reported[-1] == paper.run_count(None, "synergy", True) == 2
    assert reproduction.cells["original"].drop_nulls().to_list() == [84.14, 219.1, 24.89, 161.8, 3.38]
    assert [round(value, 2) for value in reproduction.cells["published"].drop_nulls()] == [21.88, 156.93, 170.61, 3.4]
    assert reproduction.curves["policy"].unique().sort().to_list() == ["fifo + fair", "fifo + tune"]
    speedup, mean = (
        reproduction.cells.filter(quantity=name) for name in (paper.CHECKED["speedup"].quantity, paper.JCT.quantity)
    )
    assert set(speedup["figure"]) == {"abstract"} and speedup["ours"][0] == pytest.approx(
        mean["ours"][0] / mean["ours"][1]
    )
    assert "mohan" in reproduction.citation


def test_policies_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "CHECK_WINDOW", "20:60")
    given = ("fifo+tune", "srtf(mechanism=greedy)")
    reproduction = paper.synergy_reproduction(None, True, 1, policies=given)
    assert (
        reproduction.runs == paper.run_count(None, "synergy", True, policies=given) == 2
        and (reproduction.cpu_s or 0) > 0
    )
    cells = reproduction.cells.select("case", "policy", "quantity", "original").rows()
    mean, percentile, last = "mean completion time", "99th percentile", "99.9th percentile"
    printed = "seed 42, printed of other durations"
    tuned, greedy = ("seed 42", "fifo + tune"), ("seed 42", "srtf(mechanism=greedy)")
    assert cells == [
        (printed, tuned[1], mean, None),
        (*tuned, mean, 24.89),
        (printed, tuned[1], percentile, None),
        (*tuned, percentile, 161.8),
        (printed, tuned[1], last, None),
        (*tuned, last, None),
        (*greedy, mean, None),
        (*greedy, percentile, None),
        (*greedy, last, None),
    ]
    both = paper._chosen(paper._points(None, False), ["srtf + tune"], ())
    assert {point.figure for point in both} == {"8", "1, 7"}


def test_all_figures_have_points() -> None:
    listed = paper._points(None, False)
    assert len({(point.figure, point.case, point.policy, point.at) for point in listed}) == len(listed)
    assert len(listed) == paper.run_count(None, "synergy", False)
    assert {point.figure for point in listed} == {paper.CHECK, "8", "1, 7", "9", "CPU split", "memory split", "12"}
    assert {point.figure for point in paper._chosen(paper._points(None, True, ["9"]), (), ["9"])} == {"9"}
    for point in listed:
        point.run.check()


def test_the_replay_of_a_log_has_its_arrivals_and_durations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("CHECK_WINDOW", "0:20"), ("PHILLY_SERVERS", 1), ("LOGS", ("log.csv",))):
        monkeypatch.setattr(paper, name, value)
    rows = [f"2017-11-20 00:{minute:02d}:00,{7200 + minute},{1 + minute % 2}" for minute in range(20)]
    (tmp_path / "log.csv").write_text("\n".join(["timestamp,duration,num_gpus", *rows]) + "\n")
    made = paper.synergy_reproduction(tmp_path, True, 1, figures=[paper.REPLAY])
    assert made.runs == paper.run_count(tmp_path, "synergy", True, figures=[paper.REPLAY]) == 6
    assert set(made.cells["verdict"]) == {"no reference"} and made.cells["policy"].n_unique() == 6
    fair, tuned = (made.cells.filter(policy=f"fifo + {mechanism}")["ours"][0] for mechanism in paper.MECHANISMS)
    assert 2 < tuned < fair < 12
    assert set(made.curves["chart"]) == {"Completion times, Philly"}


@pytest.mark.parametrize("data", [None, "empty"])
def test_a_replay_without_a_log_is_one_error(data: str | None, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"found no log of Philly, expected one of cluster_job_log.json, "):
        paper.run_count(tmp_path if data else None, "synergy", False, figures=[paper.REPLAY])
    assert paper.REPLAY not in {point.figure for point in paper._points(tmp_path if data else None, False)}


def test_what_models_gain_and_need_to_be_measured() -> None:
    both = (paper.SENSITIVITY, paper.PROFILING)
    made = paper.synergy_reproduction(None, True, 1, figures=both)
    assert made.runs == paper.run_count(None, "synergy", True, figures=both) == 0
    cells = made.cells.filter(policy="alexnet")
    gains = cells.filter(figure=paper.SENSITIVITY).select("case", "ours").rows()
    assert gains == [
        (f"{ratio} CPUs a GPU", gain) for ratio, gain in zip(paper.RATIOS, (2.94, 2.352, 1.92, 2.18), strict=True)
    ]
    assert cells.filter(figure=paper.PROFILING)["ours"].to_list() == [45.0, 9.0]
    assert set(made.cells["verdict"]) == {"no reference"}


def test_servers_of_other_memory() -> None:
    split = [point for point in paper._points(None, False) if point.figure == "memory split"]
    for point in split:
        (memory,) = set(point.run.cluster.offered["memory_mib"].to_pylist())
        assert point.at is not None and memory == 1024 * point.at
    assert {point.at for point in split} == {250, 375, 500, 625}


def test_recorded_runs_are_met(shared: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = shared("golden/synergy")
    data = tmp_path / "golden/synergy"
    data.mkdir(parents=True)
    (data / "traces").symlink_to(folder / "traces")
    (data / "runs").mkdir()
    for path in sorted((folder / "runs").glob("replay_*.json"))[:4]:
        (data / "runs" / path.name).write_text(path.read_text())
    monkeypatch.setattr(paper, "SEEDS", ())
    monkeypatch.setattr(paper, "CHECK_SEED", 1)
    monkeypatch.setattr(paper, "CHECK_WINDOW", "0:1")
    reproduction = paper.synergy_reproduction(tmp_path, True, 1)
    recorded = reproduction.cells.filter(pl.col("figure") == "deployment traces, recorded")
    assert recorded["verdict"].to_list() == ["same"] * 4 and "4 recorded runs" in reproduction.source


def test_a_recorded_run_as_a_scenario(tmp_path: Path) -> None:
    spec = {"scheduler": "TETRIS", "load": 5.0, "window": [0, 100], "config": "configs/cluster_6.ini", "static": True}
    (tmp_path / "golden/synergy/runs").mkdir(parents=True)
    told = {"spec": spec, "stream": "replay_x", "metrics": {"mean_jct_h": 2.5}}
    (tmp_path / "golden/synergy/runs/replay_a.json").write_text(json.dumps(told))
    (point,) = paper._recorded(tmp_path, ("replay",))
    assert (point.policy, point.original_h, point.at) == ("tetris + greedy", 2.5, 5.0)
    assert (point.run.cluster, point.run.begin_s, point.run.window) == ("synergy:16?cpus=48", 1.0, None)

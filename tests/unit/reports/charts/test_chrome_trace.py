"""Traces for Perfetto: slices on tracks that never overlap, counters, windows, and what is left out."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import fastsim as fs
from fastsim.reports.charts import chrome_trace
from fastsim.reports.charts.chrome_trace import written_trace
from fastsim.reports.charts.gpu_occupancy import Window
from tests import reports


def events(path: Path, kind: str) -> list[dict[str, Any]]:
    return [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == kind]


def test_a_run_by_hand(tmp_path: Path) -> None:
    path, kept, every = written_trace(reports.by_hand(), tmp_path / "t.json")
    assert kept == every == 6
    slices = events(path, "X")
    first = next(event for event in slices if event["name"] == "pod 0")
    assert (first["ts"], first["dur"]) == (0, 100_000_000)
    second = next(event for event in slices if event["name"] == "pod 1")
    assert second["pid"] == first["pid"] and second["tid"] == first["tid"] + 1  # beside it, on the same GPU
    names = {event["args"]["name"] for event in events(path, "M") if event["name"] != "process_sort_index"}
    assert {"cluster", "GPU 0", "GPU 0, beside"} < names
    assert max(event["args"]["value"] for event in events(path, "C") if event["name"] == "allocated GPUs") == 3.0


@pytest.mark.parametrize("result", [reports.passing(), reports.jobs()], ids=["pods", "jobs"])
def test_slices_of_a_track_do_not_overlap(result: fs.Result, tmp_path: Path) -> None:
    path, kept, _ = written_trace(result, tmp_path / "t.json")
    tracks: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for event in events(path, "X"):
        tracks.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
    assert sum(map(len, tracks.values())) == kept
    for spans in tracks.values():
        spans.sort()
        assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))


def test_a_window_cuts(tmp_path: Path) -> None:
    path, kept, _ = written_trace(reports.by_hand(), tmp_path / "t.json", Window(15.0, 25.0))
    assert kept == 4 and all(e["ts"] >= 15e6 and e["ts"] + e["dur"] <= 25e6 for e in events(path, "X"))
    assert all(15e6 <= event["ts"] <= 25e6 for event in events(path, "C"))
    with pytest.raises(fs.ResultError, match="no stay on a GPU"):
        written_trace(reports.by_hand(), tmp_path / "no.json", Window(1e6, 2e6))
    with pytest.raises(fs.ResultError, match="record='placements'"):
        written_trace(reports.filling()[0], tmp_path / "no.json")
    assert not (tmp_path / "no.json").exists()


def test_too_many_slices_are_sampled_by_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chrome_trace, "SLICES", 3)
    path, kept, every = written_trace(reports.by_hand(), tmp_path / "t.json")
    assert (kept, every) == (3, 6)
    assert json.loads(path.read_text())["otherData"]["pods_kept"] == "1 of 2"
    assert {event["name"] for event in events(path, "X")} == {"pod 0", "pod 2"}

"""``fastsim reproduce`` as a user meets it, and the papers' figures on the original traces."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.errors import FastsimError
from fastsim.experiments import all_figures
from fastsim.experiments.reproduce import fgd_protocol, fgd_pwr, placement_figures
from fastsim.experiments.reproduce import synergy as synergy_reproduction
from fastsim.experiments.reproduce.papers import reproduce, run_count
from tests.cli.terminal import fastsim_here


@pytest.fixture
def few_nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Generated pods on 60 nodes: as many are played as these nodes' GPUs take."""
    monkeypatch.setattr(fgd_protocol, "_preset", lambda: Cluster.scaled("openb", nodes=60))
    fgd_protocol.trace.cache_clear()
    yield
    fgd_protocol.trace.cache_clear()


@pytest.mark.usefixtures("few_nodes")
def test_a_quick_glance_without_data(tmp_path: Path) -> None:
    done = fastsim_here("reproduce", "fgd", "--quick", "--workers", 1, cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "3,036 cells: 2,946 indicative, 90 no reference; 12 runs in" in done.out
    assert {path.name for path in (tmp_path / "reproduced-fgd").iterdir()} == {
        "cells.parquet", "curves.parquet", "index.html",
    }  # fmt: skip


@pytest.mark.long
def test_the_published_orders_give_the_published_figures(
    shared: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fgd_pwr, "QUICK_SEEDS", 1)
    data = shared("golden/fgd").parents[1]
    words = ["reproduce", "fgd", "--quick", "--data", data, "--out", "out", "--json", "--workers", 1]
    done = fastsim_here(*words, cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    curves = [row for row in json.loads(done.out) if row["quantity"].endswith("where it is furthest")]
    assert len(curves) == 5 * 3 and {row["verdict"] for row in curves} == {"same"}


def test_a_folder_in_use_is_refused_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").touch()
    monkeypatch.delattr(placement_figures, "simulate")
    done = fastsim_here("reproduce", "fgd", "--quick", "--out", "out", "--workers", 1, cwd=tmp_path)
    assert done.code == 1 and "exists already" in done.line


def test_all_figures_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = [figure for figure in all_figures.all_figures() if (figure.paper, figure.figure) == ("gavel", "1")]
    monkeypatch.setattr(all_figures, "in_order_of_cost", lambda: one)
    words = ["reproduce", "all", "--quick", "--out", "out", "--workers", 1]
    done = fastsim_here(*words, cwd=tmp_path)
    assert done.code == 0 and done.err == "gavel 1: 90 cells; 0 figures left, 0 s of CPU time known\n"
    assert "page: out/index.html" in done.out
    again = fastsim_here(*words, "--json", cwd=tmp_path)
    assert (again.code, again.err) == (0, "")
    rows = {(row["paper"], row["figure"]): row for row in json.loads(again.out)}
    assert rows["gavel", "1"]["cells"] == 90 and rows["gavel", "12"]["status"] == "impossible"
    for more, match in ((["--figure", "8"], "every figure"), (["--policy", "sia"], "every figure")):
        refused = fastsim_here(*words, *more, cwd=tmp_path)
        assert refused.code == 2 and match in refused.line


def test_mistakes(tmp_path: Path) -> None:
    for paper, data, match in (
        ("moon", None, "reproduce: found 'moon', expected one of fgd"),
        ("fgd", tmp_path / "nowhere", "no such folder"),
    ):
        for call in (reproduce, run_count):
            with pytest.raises(FastsimError, match=match):
                call(paper, data)
    for paper, policy, match in (
        ("fgd", "fgd", "policy: found 'fgd'|found fgd, expected none: only those of sia, pollux, synergy"),
        ("sia", "moon", "policy 'moon': found an unknown name"),
    ):
        for call in (reproduce, run_count):
            with pytest.raises(FastsimError, match=match):
                call(paper, policies=[policy])
    for paper in ("all", "sia"):
        done = fastsim_here("reproduce", paper, "--whole", cwd=tmp_path)
        assert done.code == 2 and f"whole: found {paper}, expected one of gavel" in done.line


def test_a_policy_that_the_paper_has_not_is_told_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synergy_reproduction, "CHECK_WINDOW", "20:60")
    words = ("synergy", "--quick", "--policy", "srtf+tune", "--policy", "fifo+greedy", "--workers", 1)
    done = fastsim_here("reproduce", *words, cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "8 (one point), seed 42, srtf+tune\n" in done.out and "8 (one point), seed 42, fifo+greedy\n" in done.out
    assert "s of CPU time in them" in done.out and len(done.out.splitlines()) == 12


def test_figures_are_listed_and_nothing_runs(tmp_path: Path) -> None:
    done = fastsim_here("reproduce", "sia", "--list", cwd=tmp_path)
    assert done.code == 0 and "table 3" in done.out and "impossible" in done.out
    rows = json.loads(fastsim_here("reproduce", "sia", "--list", "--json", cwd=tmp_path).out)
    assert list(rows[0]) == [
        "figure", "status", "numbers", "cells", "same", "within", "outside", "cpu_s", "reason"
    ]  # fmt: skip
    assert rows[0]["numbers"] == 81
    assert not list(tmp_path.iterdir())
    assert "expected one of fgd" in fastsim_here("reproduce", "moon", "--list", cwd=tmp_path).line


def test_one_figure(tmp_path: Path) -> None:
    done = fastsim_here("reproduce", "gavel", "--figure", "1", "--json", "--workers", 1, cwd=tmp_path)
    assert (done.code, done.err) == (0, "") and {row["figure"] for row in json.loads(done.out)} == {"1"}
    done = fastsim_here("reproduce", "gavel", "--figure", "99", cwd=tmp_path)
    assert done.code == 2 and "--figure: found '99', expected one of these: 1; 8" in done.line

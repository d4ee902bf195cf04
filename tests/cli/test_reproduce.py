"""``fastsim reproduce`` as a user meets it, and the papers' figures on the original traces."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.errors import FastsimError
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
    assert "24 cells: 12 indicative, 12 no reference; 12 runs in" in done.out
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
    curves = [row for row in json.loads(done.out) if row["quantity"].startswith("largest")]
    assert len(curves) == 5 * 3 and {row["verdict"] for row in curves} == {"same"}


def test_a_folder_in_use_is_refused_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").touch()
    monkeypatch.delattr(placement_figures, "simulate")
    done = fastsim_here("reproduce", "fgd", "--quick", "--out", "out", "--workers", 1, cwd=tmp_path)
    assert done.code == 1 and "exists already" in done.line


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


def test_a_policy_that_the_paper_has_not_is_told_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synergy_reproduction, "CHECK_WINDOW", "20:60")
    words = ("synergy", "--quick", "--policy", "srtf+tune", "--policy", "fifo+greedy", "--workers", 1)
    done = fastsim_here("reproduce", *words, cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "check value, seed 42, srtf+tune\n" in done.out and "check value, seed 42, fifo+greedy\n" in done.out
    assert "s of CPU time in them" in done.out and len(done.out.splitlines()) == 10

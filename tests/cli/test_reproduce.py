"""``fastsim reproduce`` as a user meets it, and the papers' figures on the original traces."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fastsim.errors import FastsimError
from fastsim.reproduce import reproduce, run_count
from tests.cli.terminal import fastsim


def test_a_quick_glance_without_data(tmp_path: Path) -> None:
    done = fastsim("reproduce", "fgd", "--quick", "--workers", 1, cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "24 cells: 12 indicative, 12 no reference; 12 runs in" in done.out
    assert {path.name for path in (tmp_path / "reproduced-fgd").iterdir()} == {
        "cells.parquet", "curves.parquet", "index.html",
    }  # fmt: skip


def test_the_published_orders_give_the_published_figures(shared: Callable[[str], Path], tmp_path: Path) -> None:
    data = shared("golden/fgd").parents[1]
    words = ["reproduce", "fgd", "--quick", "--data", data, "--out", "out", "--json", "--workers", 2]
    done = fastsim(*words, cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    curves = [row for row in json.loads(done.out) if row["quantity"].startswith("largest")]
    assert len(curves) == 5 * 3 and {row["verdict"] for row in curves} == {"same"}
    again = fastsim(*words, cwd=tmp_path)
    assert again.code == 1 and "exists already" in again.line


def test_mistakes(tmp_path: Path) -> None:
    for paper, data, match in (
        ("moon", None, "reproduce: found 'moon', expected one of fgd"),
        ("fgd", tmp_path / "nowhere", "no such folder"),
    ):
        for call in (reproduce, run_count):
            with pytest.raises(FastsimError, match=match):
                call(paper, data)

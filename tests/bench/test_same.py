"""The comparison of two revisions: runs leave the same bytes each time, and every part that differs is named."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.same.__main__ import PLAYER, ROOT, differences, digests
from tests.same.runs import DRAWN, VARIATIONS, all_runs

RUNS = {name: run for name, run in all_runs().items() if name.endswith(("plain", "checkpoint"))}


def test_runs_leave_the_same_bytes_each_time() -> None:
    once, twice = digests(ROOT, RUNS), digests(ROOT, RUNS)
    assert differences(once, twice) == []
    assert {*once} == {*RUNS} and sum(map(len, once.values())) > 100
    assert all("failed" not in parts for parts in once.values())


def test_every_part_that_differs_is_named() -> None:
    before = {"one": {"jobs": "1", "summary": "2"}, "other": {"jobs": "3"}}
    after = {"one": {"jobs": "1", "summary": "4"}, "other": {"jobs": "3", "stages": "5"}}
    assert differences(before, after) == ["one, summary: '2' -> '4'", "other, stages: 'nothing' -> '5'"]


def test_a_tree_that_does_not_run_is_no_equal_tree(tmp_path: Path) -> None:
    (tmp_path / "fastsim").mkdir()
    (tmp_path / "fastsim" / "__init__.py").write_text("raise SystemExit(3)\n")
    with pytest.raises(subprocess.CalledProcessError):
        digests(tmp_path, RUNS)


def test_the_runs_cover_every_engine_with_every_option() -> None:
    assert PLAYER.is_file()
    assert len(all_runs()) == 5 * (len(VARIATIONS) + 1) + DRAWN

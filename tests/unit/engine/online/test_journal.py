"""Journals: cut at any checkpoint and continued, they become the Parquet that would have been written at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from fastsim.engine.online.journal import JournalTables
from fastsim.engine.online.recorder import TABLES, FileTables
from fastsim.engine.tables import INTERVAL, OUTCOME, POD, ROW
from fastsim.foundation import parquet

NAMES = pl.Series(["node-a", "node-b"])


def outcomes(first: int, count: int) -> Any:
    out = np.zeros(count, OUTCOME)
    out["seq"] = out["pod_id"] = np.arange(first, first + count)
    out["node"], out["reason"] = np.arange(first, first + count) % 3 - 1, np.arange(first, first + count) % 5
    out["closes"], out["gpus"], out["end"] = INTERVAL | POD, out["seq"] % 4, out["seq"] * 1.5
    return out


def timeline(first: int, count: int) -> Any:
    rows = np.zeros(count, ROW)
    rows["t"], rows["seq"], rows["kind"] = np.arange(first, first + count) * 0.1, np.arange(first, first + count), 5
    return rows


def written(tables: Any, first: int, count: int) -> None:
    natives = pl.Series([None if k % 4 else f"p{k}" for k in range(first, first + count)], dtype=pl.String)
    tables.outcomes(outcomes(first, count), natives)
    tables.events(timeline(first, count), 7)


def folder(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.parametrize("cuts", [[], [0], [7], [7, 7], [3, 40, 41], [60]])
def test_a_journal_that_was_cut_and_continued_is_the_same_parquet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuts: list[int]
) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP", 16)
    at_once = FileTables(NAMES, folder(tmp_path / "plain"))
    written(at_once, 0, 60)
    at_once.close()
    work, out = folder(tmp_path / "work"), folder(tmp_path / "out")
    kept, begin = None, 0
    for cut in cuts:
        journal = JournalTables(NAMES, out, work, kept)
        if cut > begin:
            written(journal, begin, cut - begin)
        kept, begin = journal.durable(), cut
        written(journal, 900, 5)  # lost: the process ends after the checkpoint
        journal.drop()
    journal = JournalTables(NAMES, out, work, kept)
    if begin < 60:
        written(journal, begin, 60 - begin)
    journal.close()
    for name in TABLES:
        one, two = (tmp_path / place / f"{name}.parquet" for place in ("plain", "out"))
        assert one.read_bytes() == two.read_bytes(), name


def test_segments_of_a_start_that_counts_for_nothing_are_removed(tmp_path: Path) -> None:
    work = folder(tmp_path / "work")
    journal = JournalTables(NAMES, tmp_path, work)
    written(journal, 0, 5)
    journal.drop()
    assert len(list(work.iterdir())) == 3
    JournalTables(NAMES, tmp_path, work)
    assert list(work.iterdir()) == []


def test_a_checkpoint_before_the_first_pod_has_left_can_be_continued(tmp_path: Path) -> None:
    work, out = folder(tmp_path / "work"), folder(tmp_path / "out")
    moved = outcomes(0, 3)
    moved["closes"] = INTERVAL  # rows of placements, none of jobs
    first = JournalTables(NAMES, out, work)
    first.outcomes(moved, None)
    kept = first.durable()
    first.drop()
    second = JournalTables(NAMES, out, work, kept)
    written(second, 3, 2)
    second.close()
    assert [len(pl.read_parquet(out / f"{name}.parquet")) for name in TABLES] == [2, 5, 2]

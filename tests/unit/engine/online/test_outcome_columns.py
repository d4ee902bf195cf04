"""Row groups in columns: the same rows, types and values as the frames, however they came."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim.engine.online.outcome_columns import NODE, JobColumns, PlacementColumns
from fastsim.engine.online.recorder import FileTables
from fastsim.engine.tables import INTERVAL, OUTCOME, POD, REASONS, arrow, jobs_frame, placements_frame
from fastsim.foundation import parquet
from fastsim_ext.state.outcome_columns import add_jobs, add_placements

NAMES = pl.Series(["node-a", "node-b", "node-c"], dtype=pl.String)
NONE = np.zeros(0, OUTCOME)


def outcomes(count: int, seed: int, most_gpus: int = 8) -> Any:
    """Rows of all kinds, not only those that a run would write."""
    random = np.random.default_rng(seed)
    out = np.zeros(count, OUTCOME)
    for name, most in (("seq", 9), ("attempt", 4), ("preemptions", 5), ("reason", len(REASONS)), ("closes", 4)):
        out[name] = random.integers(0, most, count)
    out["pod_id"], out["node"] = random.integers(-5, 2**40, count), random.integers(-1, len(NAMES), count)
    out["gpus"] = random.integers(0, 2**most_gpus, count, dtype=np.uint64)
    for name in ("submit", "first_start", "start", "end", "lost", "ideal", "paused", "gpu_s", "cost"):
        out[name] = random.random(count) * 1e5
    out["ideal"][random.random(count) < 0.2] = 0.0
    for name in ("first_start", "start", "end", "ideal", "paused", "cost"):
        out[name][random.random(count) < 0.3] = np.nan
    return out


def natives_of(count: int, job: bool = False) -> pl.DataFrame:
    names = pl.Series("native_id", [None if k % 3 == 0 else f"p{k}" for k in range(count)], dtype=pl.String).to_frame()
    return names.with_columns(native_job_id=pl.format("j{}", "native_id")) if job else names


def filled(sheet: Any, out: Any, natives: pl.DataFrame | None, step: int) -> list[pa.RecordBatch]:
    """Row groups, copied because the room is used again."""
    found = []
    for first in range(0, len(out), step):
        some = None if natives is None else natives.slice(first, step)
        found += [pa.RecordBatch.from_pylist(b.to_pylist()) for b in sheet.groups(out[first : first + step], some)]
    return [*found, pa.RecordBatch.from_pylist(sheet.rest().to_pylist())]


@given(st.integers(0, 60), st.integers(1, 25), st.integers(1, 40), st.integers(0, 2), st.integers(0, 99))
def test_row_groups_have_the_rows_of_the_frames(size: int, step: int, group: int, named: int, seed: int) -> None:
    out, natives = outcomes(size, seed), natives_of(size, named > 1) if named else None
    placements, jobs = placements_frame(out, natives, NAMES), jobs_frame(out, natives)
    schema = arrow(placements).schema
    schema = schema.set(schema.get_field_index("node"), schema.field("node").with_type(NODE))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "ROW_GROUP", group)
        sheets = (PlacementColumns(schema, NAMES), placements), (JobColumns(arrow(jobs).schema), jobs)
    for sheet, frame in sheets:
        found = filled(sheet, out, natives, step)
        assert [len(batch) for batch in found[:-1]] == [group] * (len(found) - 1)
        assert len(found[-1]) < group
        assert [row for batch in found for row in batch.to_pylist()] == arrow(frame).to_pylist()


@pytest.mark.parametrize("step", [1, 7, 64, 500])
def test_files_are_the_same_bytes_and_types_however_rows_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP", 64)
    out, natives = outcomes(500, 3), natives_of(500)
    for folder, rows in (("at-once", len(out)), ("in-pieces", step)):
        (tmp_path / folder).mkdir()
        tables = FileTables(NAMES, tmp_path / folder)
        for first in range(0, len(out), rows):
            tables.outcomes(out[first : first + rows], natives.slice(first, rows))
        tables.close()
    for name, frame in (("placements", placements_frame(out, natives, NAMES)), ("jobs", jobs_frame(out, natives))):
        path = tmp_path / "in-pieces" / f"{name}.parquet"
        assert path.read_bytes() == (tmp_path / "at-once" / f"{name}.parquet").read_bytes()
        read = pl.read_parquet(path)
        assert read.schema == frame.schema == pl.read_parquet_schema(path)
        assert read.equals(frame)
        stored = pq.read_schema(path)
        assert stored.field("native_id").type == pa.large_string()
        assert name == "jobs" or stored.field("node").type == pa.large_string()
        assert stored.metadata in (None, {})
        assert [pq.ParquetFile(path).metadata.row_group(k).num_rows for k in range(2)] == [64, 64]


def test_a_row_may_have_all_the_devices_there_are() -> None:
    out = outcomes(300, 1)
    out["gpus"], out["closes"] = 2**64 - 1, INTERVAL | POD
    frame = placements_frame(out, None, NAMES)
    (batch,) = filled(PlacementColumns(arrow(frame).schema.set(4, pa.field("node", NODE)), NAMES), out, None, 300)
    assert batch.column("gpu_ids").to_pylist() == [list(range(64))] * 300


def test_only_names_in_use_are_handed_to_the_writer_by_first_appearance() -> None:
    out = outcomes(3, 1)
    out["node"], out["closes"] = [2, 0, 2], INTERVAL
    sheet = PlacementColumns(arrow(placements_frame(NONE, None, NAMES)).schema.set(4, pa.field("node", NODE)), NAMES)
    for _ in range(2):
        assert list(sheet.groups(out, None)) == []
        assert sheet.rest().column("node").dictionary.to_pylist() == ["node-c", "node-a"]


def test_row_groups_can_be_left_out_by_pod_and_time(tmp_path: Path) -> None:
    tables = FileTables(NAMES, tmp_path)
    tables.outcomes(outcomes(50, 2), None)
    tables.close()
    group = pq.ParquetFile(tmp_path / "placements.parquet").metadata.row_group(0)
    noted = {group.column(k).path_in_schema for k in range(group.num_columns) if group.column(k).is_stats_set}
    assert noted == {"pod_id", "start_s", "end_s"}
    found = pl.scan_parquet(tmp_path / "placements.parquet").filter(pl.col("node") == "node-b").collect()
    assert set(found["node"]) == {"node-b"}


@pytest.mark.parametrize(("more", "first", "at"), [(1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 3), (0, 0, -1)])
def test_what_is_no_row_or_no_room_is_refused(more: int, first: int, at: int) -> None:
    rows = OUTCOME.itemsize + more
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "ROW_GROUP", 2)
        schema = arrow(placements_frame(NONE, None, NAMES)).schema.set(4, pa.field("node", NODE))
        there, over = PlacementColumns(schema, NAMES).room, JobColumns(arrow(jobs_frame(NONE, None)).schema).room
    with pytest.raises((ValueError, IndexError), match=r"no outcome rows|no row"):
        add_placements(np.zeros(rows, np.uint8), first, there, at)
    with pytest.raises((ValueError, IndexError), match=r"no outcome rows|no row"):
        add_jobs(np.zeros(rows, np.uint8), first, np.zeros(len(REASONS), np.uint8), over, at)

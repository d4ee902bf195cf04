"""Pod streams: round trips, batching, checksums, atomic writes, and every broken row named."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastsim as fs
from fastsim.errors import InputError, ResultError, ScenarioError
from fastsim.foundation.parquet import rechunked
from fastsim.workload import Workload, row_checks
from fastsim.workload import pod_rows as stream
from fastsim.workload.schema import POD_SCHEMA, REQUIRED

GOOD: dict[str, list[Any]] = {
    "pod_id": [0, 1, 2],
    "submit_s": [-1.0, 0.0, 0.0],
    "cpu_milli": [1000, 0, 2],
    "memory_mib": [1, 0, 3],
    "num_gpu": [1, 0, 2],
    "gpu_milli": [500, 0, 1000],
}
RICH: dict[str, list[Any]] = GOOD | {
    "duration_s": [1.5, None, 0.0],
    "gpu_models": [["A", "B", "B"], None, None],
    "qos": ["LS", None, "LS"],
    "native_id": ["a", "ß", None],
    "job_id": [None, 3, 3],
    "gang_size": [None, 1, 2],
    "extra_resources": [[("rdma", 1)], None, []],
    "constraints": [[{"key": "zone", "op": "In", "values": ["x"]}], None, None],
}


def workload(**columns: list[Any]) -> Workload:
    return Workload.from_arrow(pa.table(GOOD | columns), name="w")


def rich() -> Workload:
    schema = pa.schema([f.with_nullable(True) for f in POD_SCHEMA if f.name in RICH])
    return Workload.from_arrow(pa.table(RICH, schema=schema), name="rich")


def test_canonical_types_and_order_whatever_the_input_types() -> None:
    shuffled = pl.DataFrame({name: GOOD[name] for name in reversed(GOOD)}).with_columns(colour=pl.lit("red"))
    table = Workload.from_arrow(shuffled).table()
    assert table.schema.equals(pa.schema([f for f in POD_SCHEMA if f.name in REQUIRED]))
    assert table.to_pydict() == GOOD


def test_anything_with_the_capsule_interface() -> None:
    table = pa.table(GOOD)
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    for source in (table, table.to_batches()[0], pl.DataFrame(GOOD), stream):
        workload = Workload.from_arrow(source)
        assert workload.rows == 3 and workload.table().to_pydict() == GOOD == workload.table().to_pydict()
    with pytest.raises(InputError, match="dict, expected an object with __arrow_c_stream__"):
        Workload.from_arrow(GOOD)


def test_metadata_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "w.parquet"
    table = pa.table(GOOD).replace_schema_metadata({b"fastsim.source": b"\xff\xfe"})
    pq.write_table(table, path)
    with pytest.raises(InputError, match=r"w\.parquet: metadata: found .*, expected UTF-8"):
        Workload.scan(path)


def test_write_scan_round_trip_bytes_and_metadata(tmp_path: Path) -> None:
    first, second = tmp_path / "a.parquet", tmp_path / "b.parquet"
    assert rich().write(first) == 3
    scanned = Workload.scan(first)
    assert scanned.rows == 3 and scanned.table().equals(rich().table())
    assert scanned.metadata["fastsim.schema"] == "pods" and scanned.metadata["fastsim.schema_version"] == "1.0"
    assert scanned.metadata["fastsim.sorted_by"] == "submit_s" and scanned.metadata["fastsim.row_count"] == "3"
    scanned.write(second)
    assert first.read_bytes() == second.read_bytes()
    assert scanned.checksum() == rich().checksum()
    assert pl.read_parquet(first, columns=["pod_id", "qos"]).height == 3
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["a.parquet", "b.parquet"]


def test_empty_workload(tmp_path: Path) -> None:
    empty = Workload.from_arrow(pa.table(GOOD).slice(0, 0))
    assert empty.to_parquet(tmp_path / "e.parquet") == empty.write(tmp_path / "e.parquet") == 0
    assert Workload.scan(tmp_path / "e.parquet").table().num_rows == 0


def test_checksum_sees_content_only() -> None:
    same = workload(duration_s=[None, None, None])
    assert workload().checksum() == same.checksum()
    assert workload().checksum() != workload(cpu_milli=[1001, 0, 2]).checksum()
    assert workload(duration_s=[0.0, None, 1.0]).checksum() != workload(duration_s=[None, 0.0, 1.0]).checksum()
    assert workload(submit_s=[-1.0, 0.0, 0.0]).checksum() == workload(submit_s=[-1.0, -0.0, 0.0]).checksum()
    joined, split = workload(native_id=["ab", "c", ""]), workload(native_id=["a", "bc", ""])
    assert joined.checksum() != split.checksum()


def test_rows_in_memory_are_checked_and_summed_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def look(batch: pa.RecordBatch) -> None:
        looked.append(batch.num_rows)

    monkeypatch.setattr(row_checks, "request_fault", look)
    pods = rich()
    next(iter(pods.batches(1)))
    assert looked == [1]  # what was not read to the end is not known to be good
    first = pods.table()
    assert looked == [1, 3] and pods.known_checksum is None
    assert pods.checksum() == pods.known_checksum == rich().checksum()
    assert pods.table().equals(first) and pods.checksum() == pods.known_checksum
    assert looked == [1, 3, 3]  # the other one's


def test_a_file_may_change_between_two_readings(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    workload().write(path)
    scanned = Workload.scan(path)
    before = scanned.checksum()
    workload(cpu_milli=[7, 0, 2]).write(path)
    assert scanned.known_checksum is None and scanned.checksum() != before


@pytest.mark.parametrize("times", [1, 2])
def test_bad_rows_in_memory_stay_bad(times: int) -> None:
    bad = workload(cpu_milli=[-1, 0, 2])
    for _ in range(times):
        with pytest.raises(InputError, match="w:1: cpu_milli"):
            bad.table()


@given(st.lists(st.integers(0, 9), max_size=8), st.integers(1, 7))
@settings(max_examples=60, deadline=None)
def test_rechunked_keeps_rows_in_order_in_full_batches(sizes: list[int], rows: int) -> None:
    def pieces() -> Iterator[pa.RecordBatch]:
        start = 0
        for size in sizes:
            yield pa.record_batch({"x": pa.array(range(start, start + size), pa.int64())})
            start += size

    batches = list(rechunked(pieces(), rows))
    assert [x for b in batches for x in b["x"].to_pylist()] == list(range(sum(sizes)))
    assert all(b.num_rows == rows for b in batches[:-1]) and all(0 < b.num_rows <= rows for b in batches)


@given(st.integers(1, 400), st.integers(1, 90))
@settings(max_examples=25, deadline=None)
def test_batching_changes_nothing(count: int, rows: int) -> None:
    workload = Workload.synth("openb", pods=count, seed=count, gpu_spec_share=0.5)
    pieces = pa.Table.from_batches(workload.batches(rows))
    assert pieces.equals(workload.table()) and pieces.num_rows == count


@pytest.mark.parametrize("rows", [0, -1])
def test_a_batch_has_at_least_one_row(rows: int) -> None:
    with pytest.raises(ScenarioError, match=rf"workload\.batches: rows: found {rows}, expected 1 or more"):
        workload().batches(rows)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cpu_milli": [1000.0, math.nan, 2.0]}, ["w:2: cpu_milli", "nan", "int64"]),
        ({"cpu_milli": [1000.5, 0.0, 2.0]}, ["w:1: cpu_milli", "1000.5", "int64"]),
        ({"cpu_milli": [1000, -5, 2]}, ["w:2: cpu_milli", "-5", "0 to"]),
        ({"memory_mib": [1, 0, -3]}, ["w:3: memory_mib", "-3"]),
        ({"memory_mib": [1, None, 3]}, ["w:2: memory_mib", "null", "a value"]),
        ({"cpu_milli": ["1000", "x", "2"]}, ["w:2: cpu_milli", "'x'", "int64"]),
        ({"num_gpu": [3, 0, 2]}, ["w:1: gpu_milli", "500", "1000, because num_gpu is more than 1"]),
        ({"num_gpu": [1, 0, -2]}, ["w:3: num_gpu", "-2", "0 or more"]),
        ({"num_gpu": [1, 0, 70000]}, ["w:3: num_gpu", "70000", "int16"]),
        ({"gpu_milli": [500, 10, 1000]}, ["w:2: gpu_milli", "10", "0, because num_gpu is 0"]),
        ({"gpu_milli": [0, 0, 1000]}, ["w:1: gpu_milli", "found 0", "1 to 1000"]),
        ({"gpu_milli": [1001, 0, 1000]}, ["w:1: gpu_milli", "1001", "1 to 1000"]),
        ({"submit_s": [0.0, 5.0, 4.0]}, ["w:3: submit_s", "4.0 after 5.0", "sorted"]),
        ({"submit_s": [0.0, math.inf, math.inf]}, ["w:2: submit_s", "inf", "finite"]),
        ({"submit_s": [0.0, math.nan, 1.0]}, ["w:2: submit_s", "nan", "finite"]),
        ({"pod_id": [0, 0, 1]}, ["w:2: pod_id", "found 0, as in row 1", "every id once"]),
        ({"pod_id": [1, 0, 1]}, ["w:3: pod_id", "found 1, as in row 1", "every id once"]),
        ({"duration_s": [1.0, -1.0, None]}, ["w:2: duration_s", "-1.0", "null = runs for ever"]),
        ({"duration_s": [1.0, math.nan, None]}, ["w:2: duration_s", "nan"]),
        ({"duration_s": [1.0, None, math.inf]}, ["w:3: duration_s", "inf"]),
        ({"gpu_models": [["A"], [], None]}, ["w:2: gpu_models", "empty list", "null = any"]),
        ({"gpu_models": [["A"], ["B", None], None]}, ["w:2: gpu_models", "model names"]),
        ({"gpu_models": [None, None, ["B", ""]]}, ["w:3: gpu_models", "model names"]),
        ({"gang_size": [1, 0, None]}, ["w:2: gang_size", "found 0", "1 to"]),
    ],
)
def test_broken_rows_are_named_to_the_cell(change: dict[str, list[Any]], words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        workload(**change).table()
    assert all(word in str(error.value) for word in words), str(error.value)


def test_rows_are_counted_over_the_whole_stream(tmp_path: Path) -> None:
    rows = 70_000
    columns = {name: [GOOD[name][1]] * rows for name in GOOD} | {"pod_id": list(range(rows))}
    columns["cpu_milli"] = [*columns["cpu_milli"][:-1], -1]
    path = tmp_path / "late.parquet"
    pq.write_table(pa.table(columns), path)
    with pytest.raises(InputError, match=r"late.parquet:70000: cpu_milli: found -1"):
        list(Workload.scan(path).batches())
    columns["cpu_milli"][-1] = 1
    columns["pod_id"][65_536] = 65_535
    with pytest.raises(InputError, match=r"w:65537: pod_id: found 65535, as in row 65536, expected every id once"):
        list(Workload.from_arrow(pa.table(columns), name="w").batches())


def test_rows_in_memory_are_tidied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    held = workload()
    first = list(held.batches(2))
    monkeypatch.setattr(stream, "checked", None)  # whoever looks again fails
    assert list(held.batches(2)) == first
    with pytest.raises(TypeError):
        list(held.batches(3))  # other batches
    monkeypatch.undo()
    assert pa.Table.from_batches(held.batches(3)) == pa.Table.from_batches(first).combine_chunks()


def test_many_rows_are_not_kept_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "TIDY_ROWS", 2)
    held = workload()
    assert list(held.batches(2)) == list(held.batches(2))
    assert isinstance(held.source, stream.Held) and held.source.tidy is None


def test_a_reader_who_stops_early_leaves_nothing_half_known() -> None:
    held = workload()
    next(held.batches(1))
    assert isinstance(held.source, stream.Held) and not held.source.good and held.source.tidy is None
    assert held.table().num_rows == len(GOOD["pod_id"])


def test_columns_missing_or_misspelt() -> None:
    with pytest.raises(InputError, match=r"w: submit_s: found columns .*; times are seconds"):
        Workload.from_arrow(pa.table(GOOD).drop_columns(["submit_s"]), name="w")
    with pytest.raises(InputError, match="w: durations_s: found an unknown column, expected duration_s"):
        workload(durations_s=[1, 2, 3])


def test_broken_files(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    Workload.synth("openb", pods=3000, seed=1).write(path)
    whole = path.read_bytes()
    for cut in (0, 3, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(InputError, match=r"p.parquet.*complete Parquet file"):
            Workload.scan(path)
    path.write_bytes(whole[:200] + bytes(len(whole) // 2) + whole[200 + len(whole) // 2 :])
    with pytest.raises(InputError, match=r"p.parquet"):
        list(Workload.scan(path).batches())
    with pytest.raises(InputError, match="no such file"):
        Workload.scan(tmp_path / "none.parquet")
    pq.write_table(pa.table(GOOD).replace_schema_metadata({"fastsim.schema": "nodes"}), path)
    with pytest.raises(InputError, match="a table of nodes, expected a table of pods"):
        Workload.scan(path)
    pq.write_table(pa.table(GOOD).replace_schema_metadata({"fastsim.schema_version": "2.0"}), path)
    with pytest.raises(InputError, match=r"schema version 2.0"):
        Workload.scan(path)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_interrupted_write_keeps_the_old_file_and_no_partial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    path = tmp_path / "p.parquet"
    path.write_text("old")

    def full(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(pq.ParquetWriter, "write_batch", full)
    with pytest.raises((ResultError, KeyboardInterrupt)) as raised:
        workload().write(path)
    if isinstance(error, OSError):
        assert str(raised.value) == f"{path}: cannot be written: No space left on device"
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_bad_input_while_writing_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        workload(cpu_milli=[1, 1, -1]).write(tmp_path / "p.parquet")
    with pytest.raises(ResultError, match="cannot be written"):
        workload().write(tmp_path / "missing" / "p.parquet")
    assert list(tmp_path.iterdir()) == []


def test_unknown_generator() -> None:
    with pytest.raises(ScenarioError, match="'closedb', expected one of: openb"):
        Workload.synth("closedb", pods=1)


def test_what_was_found_out_about_pods_in_memory_is_remembered() -> None:
    calls: list[str] = []

    def look(word: str) -> Callable[[], str]:
        return lambda: calls.append(word) or word  # type: ignore[func-returns-value]

    held = Workload.from_arrow(Workload.synth("openb", pods=5, seed=1).table())
    assert [held.found((word,), look(word)) for word in ("a", "a", "b", "b", "a")] == ["a", "a", "b", "b", "a"]
    assert calls == ["a", "b", "a"]
    stream = Workload.synth("openb", pods=5, seed=1)
    assert [stream.found(("c",), look("c")) for _ in range(2)] == ["c", "c"] and calls[3:] == ["c", "c"]


def test_a_text_becomes_a_workload_as_in_a_run(tmp_path: Path) -> None:
    text = "synth:openb?pods=20&seed=1&load=1"
    cluster = fs.Cluster.from_text("openb:20")
    own = fs.Workload.from_text(text, cluster)
    assert own.checksum() == fs.Workload.synth("openb", pods=20, seed=1, load=1, cluster=cluster).checksum()
    own.write(tmp_path / "pods.parquet")
    read = fs.Workload.from_parquet(tmp_path / "pods.parquet")
    assert len(read) == len(own) == own.frame().height == 20 and read.checksum() == own.checksum()


def test_rows_that_come_as_they_are_read_have_no_length() -> None:
    endless = fs.Workload.synth("openb", pods=3).ordered()
    assert bool(endless) and bool(fs.Workload.synth("openb", pods=0))
    with pytest.raises(InputError, match="found rows that come as they are read, expected a workload whose rows"):
        len(fs.Workload(endless.source, endless.columns))

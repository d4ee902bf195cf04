"""Tables on disk: whole or absent, the same bytes for the same rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastsim as fs
from fastsim.errors import InputError, ResultError, ScenarioError
from fastsim.foundation.columns.physical_types import converted
from fastsim.foundation.limits.work_budget import Work
from fastsim.foundation.parquet import (
    CHOICE,
    TableWriter,
    one_line,
    open_parquet,
    parquet_batches,
    parquet_table,
    rechunked,
    replacing,
    replacing_folder,
    streaming,
    write_parquet,
)

ENUM = pa.dictionary(pa.int8(), pa.string())
SCHEMA = pa.schema(
    [("pod_id", pa.int64()), ("t", pa.float64()), ("q", ENUM), ("models", pa.list_(pa.string())), ("cpu", pa.int64())]
)
ROWS: dict[str, list[Any]] = {
    "pod_id": [0, 1, 2, 3],
    "t": [0.0, 1.5, None, 3.0],
    "q": ["b", "a", None, "b"],
    "models": [["x", "y"], None, [], ["x"]],
    "cpu": [5, 6, None, 8],
}


def batch(rows: dict[str, list[Any]] = ROWS) -> pa.RecordBatch:
    arrays = [pa.array(rows[f.name], pa.string() if f.type == ENUM else f.type) for f in SCHEMA]
    return pa.RecordBatch.from_arrays([converted(a, f.type) for a, f in zip(arrays, SCHEMA, strict=True)],
                                      schema=SCHEMA)  # fmt: skip


def test_bytes_depend_on_the_rows_alone(tmp_path: Path) -> None:
    whole, pieces = batch(), [batch().slice(0, 1), batch().slice(1, 0), batch().slice(1, 3)]
    assert write_parquet(tmp_path / "a", [whole], SCHEMA, {"z": "1", "a": "2"}, ("pod_id",)) == 4
    assert write_parquet(tmp_path / "b", pieces, SCHEMA, {"a": "2", "z": "1"}, ("pod_id",)) == 4
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert parquet_table(tmp_path / "a", Work.PODS).to_pydict() == ROWS
    stamped = pq.read_metadata(tmp_path / "a").metadata
    assert (stamped[b"a"], stamped[b"fastsim.row_count"], stamped[b"fastsim.sorted_by"]) == (b"2", b"4", b"pod_id")


def test_ids_are_deltas_times_are_split_and_the_rest_have_dictionaries(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a", [batch()], SCHEMA)
    group = pq.read_metadata(tmp_path / "a").row_group(0)
    columns = {group.column(i).path_in_schema.split(".")[0]: group.column(i) for i in range(5)}
    assert "DELTA_BINARY_PACKED" in columns["pod_id"].encodings and "BYTE_STREAM_SPLIT" in columns["t"].encodings
    assert {name for name, column in columns.items() if "RLE_DICTIONARY" in column.encodings} == {"q", "models", "cpu"}
    assert {column.compression for column in columns.values()} == {"ZSTD"}


def test_an_empty_table_is_a_file_too(tmp_path: Path) -> None:
    assert write_parquet(tmp_path / "a", [], SCHEMA) == 0
    assert (
        parquet_table(tmp_path / "a", Work.PODS).num_rows == 0
        and parquet_table(tmp_path / "a", Work.PODS).schema.names == SCHEMA.names
    )


def test_a_failure_midway_keeps_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")

    def breaking() -> Iterator[pa.RecordBatch]:
        yield batch()
        raise InputError("w:5", "x", "y")

    with pytest.raises(InputError):
        write_parquet(tmp_path / "a", breaking(), SCHEMA)
    assert [path.name for path in tmp_path.iterdir()] == ["a"] and (tmp_path / "a").read_text() == "old"


def test_replacing_names_the_target_in_its_error(tmp_path: Path) -> None:
    with replacing(tmp_path / "a") as partial:
        assert partial.parent == tmp_path and partial.name.startswith(".a.")
        partial.write_text("new")
        assert not (tmp_path / "a").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["a"] and (tmp_path / "a").read_text() == "new"
    with pytest.raises(ResultError, match=r"/b: cannot be written: disk gone$"), replacing(tmp_path / "b"):
        raise OSError("disk gone")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ResultError, match="cannot be written"), replacing(tmp_path / "folder") as partial:
        partial.write_text("a folder stands in the way")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "folder"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match=r"nowhere/a: cannot be written: there is no folder .*nowhere$"):
        write_parquet(tmp_path / "nowhere" / "a", [batch()], SCHEMA)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with (
        pytest.raises(ResultError, match=r"cannot be written: Not a directory$"),
        replacing_folder(tmp_path / "file" / "a" / "b"),
    ):
        pass


def test_rechunked_cuts_and_joins() -> None:
    pieces = [batch().slice(0, 3), batch().slice(0, 0), batch().slice(3, 1), batch()]
    assert [piece.num_rows for piece in rechunked(pieces, 3)] == [3, 3, 2]
    assert pa.Table.from_batches(rechunked(pieces, 3)).column("pod_id").to_pylist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert list(rechunked([batch().slice(0, 0)], 3)) == []


def test_a_slice_has_a_dictionary_of_its_own() -> None:
    tail = converted(batch().column("q").slice(1), ENUM)
    assert tail.dictionary.to_pylist() == ["a", "b"] and tail.indices.to_pylist() == [0, None, 1]
    assert converted(pa.array([1.0, 2.0]), pa.int64()).to_pylist() == [1, 2]
    with pytest.raises(pa.ArrowInvalid):
        converted(pa.array([1.5]), pa.int64())


def test_an_ordered_dictionary_keeps_its_words_and_their_order(tmp_path: Path) -> None:
    kind = pa.dictionary(pa.int8(), pa.string(), ordered=True)
    column = pa.DictionaryArray.from_arrays(pa.array([2, 0], pa.int8()), ["low", "mid", "high"], ordered=True)
    write_parquet(tmp_path / "x.parquet", [pa.record_batch({"x": column})], pa.schema([("x", kind)]))
    (chunk,) = pq.read_table(tmp_path / "x.parquet").column("x").chunks
    assert chunk.dictionary.to_pylist() == ["low", "mid", "high"]
    assert chunk.to_pylist() == ["high", "low"]


def test_a_row_group_of_its_own_comes_between_others(tmp_path: Path) -> None:
    schema = pa.schema([("x", pa.int64())])
    one = pa.record_batch({"x": [1]}, schema)
    with TableWriter(tmp_path / "x.parquet", schema) as writer:
        writer.group(one)
        writer.group(one)
        writer.add(one)
        with pytest.raises(ValueError, match="1 rows after 1 are no row group"):
            writer.group(one)
        assert writer.close() == 3
    assert pq.ParquetFile(tmp_path / "x.parquet").metadata.num_row_groups == 3


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    with pytest.raises(InputError, match=r"p\.parquet: found no such file, expected a Parquet file"):
        open_parquet(path)
    path.write_bytes(b"PAR1 no, not really PAR1")
    with pytest.raises(InputError, match=r"p\.parquet: found .*, expected a complete Parquet file"):
        parquet_table(path, Work.PODS)
    with pytest.raises(InputError, match="complete Parquet file"):
        list(parquet_batches(path, ["pod_id"], 10))


def test_a_column_whose_values_were_not_written_is_named(tmp_path: Path) -> None:
    words = pa.array([Decimal(1), Decimal(2), Decimal(3)], pa.decimal128(38, 1)).dictionary_encode()
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), words)
    path = tmp_path / "p.parquet"
    for lost in (coded, pa.StructArray.from_arrays([coded], ["part"])):
        pq.write_table(pa.table({"node_id": lost, "name": ["a", "b", "c"]}), path)
        refused = r"p\.parquet: node_id: found 0 values of type .*decimal128.* in 3 rows, expected a value or null"
        with pytest.raises(InputError, match=refused):
            parquet_table(path, Work.PODS)
        with pytest.raises(InputError, match=refused):
            list(parquet_batches(path, ["node_id", "name"], 10))
        assert [batch.num_rows for batch in parquet_batches(path, ["name"], 10)] == [3]


def test_a_complete_file_with_a_type_that_cannot_be_read_back_is_not_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    ids = pa.array([b"a" * 16], pa.uuid())
    pq.write_table(pa.table({"owner": pa.DictionaryArray.from_arrays(pa.array([0]), ids), "pod_id": [1]}), path)
    with pytest.raises(InputError, match=r"p\.parquet: found .*dictionary<.*, expected for each name a column of num"):
        open_parquet(path)


def test_names_that_are_no_utf8_are_named_before_any_library_panics(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.parquet"
    part = pa.field("part", pa.int64())
    for field in (pa.field("outer", pa.struct([part])), pa.field("outer", pa.list_(part)), part.with_name("outer")):
        pq.write_table(pa.table([pa.nulls(2, field.type)], schema=pa.schema([field])), path, store_schema=False)
        path.write_bytes(path.read_bytes().replace(b"outer", b"out\xffr"))
        with pytest.raises(InputError, match=r"p\.parquet: names of columns: found .*, expected UTF-8"):
            parquet_table(path, Work.PODS)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("note", [{b"unit": b"\xff"}, {b"\xff": b"unit"}])
def test_notes_of_columns_that_are_no_utf8_are_named(tmp_path: Path, note: dict[bytes, bytes]) -> None:
    path = tmp_path / "p.parquet"
    noted = pa.field("part", pa.int64(), metadata=note)
    for field in (noted, pa.field("outer", pa.struct([noted]))):
        pq.write_table(pa.table([pa.nulls(2, field.type)], schema=pa.schema([field])), path)
        with pytest.raises(InputError, match=r"p\.parquet: names of columns: found .*, expected UTF-8"):
            open_parquet(path)


def test_batches_are_of_the_columns_and_size_asked_for(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a", [batch()], SCHEMA)
    pieces = list(parquet_batches(tmp_path / "a", ["cpu", "pod_id"], 3))
    assert [piece.num_rows for piece in pieces] == [3, 1] and set(pieces[0].schema.names) == {"cpu", "pod_id"}


def test_foreign_errors_fit_one_line() -> None:
    assert one_line(ValueError("a\n  b\tc")) == "a b c"
    assert len(one_line(ValueError("x" * 500))) == 200


@pytest.mark.parametrize("codes", [[], [0], [0, 1, 1, 0, 2], [1, 0, 2], [0, 2], [0, 0, 1], [0, None, 1, 2], [2, 2]])
@pytest.mark.parametrize("words", [["a", "b", "c"], ["a", "b", "a"], [f"w{k}" for k in range(99)]])
def test_words_stand_in_order_of_first_appearance(codes: list[int | None], words: list[str]) -> None:
    column = pa.DictionaryArray.from_arrays(pa.array(codes, pa.uint32()), pa.array(words, pa.large_string()))
    fresh = converted(column, ENUM)
    texts = [None if code is None else words[code] for code in codes]
    assert (fresh.type, fresh.to_pylist()) == (ENUM, texts)
    assert fresh.dictionary.to_pylist() == list(dict.fromkeys(word for word in texts if word is not None))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_a_dictionary_from_elsewhere_gets_only_the_values_it_uses(kind: pa.DataType) -> None:
    words = pa.array(["never", "b", "a"]).cast(kind)
    for indices, dictionary in (
        ([1, None, 2, 1], words),
        ([1, 3, 2, 4], pa.array(["never", "b", "a", None, "b"]).cast(kind)),  # a null and a value twice
    ):
        column = pa.DictionaryArray.from_arrays(pa.array(indices, pa.uint32()), dictionary)
        fresh = converted(column, pa.dictionary(pa.int8(), pa.string()))
        assert fresh.to_pylist() == ["b", None, "a", "b"] and fresh.dictionary.to_pylist() == ["b", "a"]


def present() -> str:
    return str(pa.default_memory_pool().backend_name)


@pytest.fixture
def usual(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Arrow's own allocator, without a choice of the user."""
    if sys.platform != "linux" or "mimalloc" not in pa.supported_memory_backends():
        pytest.skip("found no mimalloc on Linux, for which this is meant")
    monkeypatch.delenv(CHOICE, raising=False)
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.mimalloc_memory_pool())
    yield present()
    pa.set_memory_pool(before)


def test_the_last_run_to_end_restores_what_was_before_the_first(usual: str) -> None:
    first, second = streaming(), streaming()
    first.__enter__()
    second.__enter__()
    assert present() == "system"
    first.__exit__(None, None, None)
    assert present() == "system"
    second.__exit__(None, None, None)
    assert present() == usual


def test_a_failure_restores_it_too(usual: str) -> None:
    with pytest.raises(KeyError), streaming():
        raise KeyError
    assert present() == usual


def test_what_the_user_chose_stays(usual: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHOICE, usual)
    with streaming():
        assert present() == usual
    monkeypatch.delenv(CHOICE)
    pa.set_memory_pool(pa.jemalloc_memory_pool() if "jemalloc" in pa.supported_memory_backends() else
                       pa.system_memory_pool())  # fmt: skip
    chosen = present()
    with streaming():
        assert present() == chosen


def test_a_run_to_a_folder_streams(usual: str, tmp_path: Path) -> None:
    seen: list[str] = []
    pods = fs.Workload.synth("openb", pods=50, seed=1)
    for out in (tmp_path / "run", None):
        fs.simulate("openb:20", pods, "fgd", out=out, progress=lambda _: seen.append(present()))
        assert present() == usual
    assert seen[0] == "system" and seen[-1] == usual


def test_rows_are_counted_before_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "nodes.parquet"
    pq.write_table(pa.table({"num_gpu": pa.array([0] * 3000, pa.int16())}), path)
    monkeypatch.setenv("FASTSIM_BUDGET", "0.002")
    monkeypatch.setattr(pq.ParquetFile, "read", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(ScenarioError, match=r"nodes.parquet: found 3,000 nodes, expected at most 2,000 nodes"):
        fs.Cluster.from_parquet(path)
    with pytest.raises(ScenarioError, match=r"nodes.parquet: found 3,000 nodes, expected at most 2,000 nodes"):
        fs.Cluster.from_csv(path)


def test_two_columns_of_a_name_are_refused(tmp_path: Path) -> None:
    columns = [pa.array([1]), pa.array([2]), pa.array([0]), pa.array([3])]
    table = pa.Table.from_arrays(columns, names=["cpu_milli", "memory_mib", "num_gpu", "num_gpu"])
    pq.write_table(table, tmp_path / "nodes.parquet")
    for read in (fs.Cluster.from_arrow, fs.Cluster.from_csv):
        with pytest.raises(InputError, match=r"num_gpu: found two columns of this name, expected .*each name once"):
            read(table)
    for scan in (fs.Cluster.from_parquet, fs.Workload.scan):
        with pytest.raises(InputError, match=r"nodes.parquet: num_gpu: found two columns of this name"):
            scan(tmp_path / "nodes.parquet")

"""Tables under other names: columns, expressions and units, and one clear error for a wrong mapping or cell."""

from __future__ import annotations

import datetime as dt
import decimal
import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.cluster.column_mapping import mapped
from fastsim.cluster.table_sources import source_of
from fastsim.errors import InputError

KINDS = {
    "submit_s": pa.float64(), "duration_s": pa.float64(), "num": pa.int16(), "memory_mib": pa.int64(),
    "user": pa.string(), "spot": pa.bool_(), "models": pa.list_(pa.string()), "more": pa.map_(pa.string(), pa.int64()),
}  # fmt: skip
TEXT = "start,stop,gpus,mem,state\n2020-06-09 18:41:01,2020-06-09 18:41:31,100,1.5,OK\n2020-06-09,,50,2,BAD\n"
NODES = {"cpu_milli": "cpus * 1000", "memory_mib": "mem * 1024", "num_gpu": "gpus", "gpu_model": "model"}


def columns(source: Any, entries: Mapping[str, str | None], **options: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = mapped(source_of(source), entries, KINDS, **options).table.to_pydict()
    return found


def written(folder: Path, text: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_columns_expressions_and_units(tmp_path: Path) -> None:
    entries = {"submit_s": "start[iso]", "duration_s": "stop[iso] - start[iso]", "num": "gpus / 50", "user": "state"}
    found = columns(written(tmp_path, TEXT), entries)
    assert found["submit_s"] == [1591728061.0, 1591660800.0] and found["duration_s"] == [30.0, None]
    assert found["num"] == [2, 1] and found["user"] == ["OK", "BAD"]
    assert found["native_mem"] == ["1.5", "2"] and set(found) == {*entries, "native_mem"}


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda text: text.replace("\n", "\r\n").encode(), "t.csv"),
        (lambda text: b"\xef\xbb\xbf" + text.encode(), "t.csv"),
        (lambda text: gzip.compress(text.encode()), "t.csv.gz"),
        (lambda text: text.replace("\n", "\n\n").rstrip("\n").encode(), "t.csv"),
    ],
    ids=["CRLF", "BOM", "gz", "blank lines"],
)
def test_files_as_they_are_found(change: Any, name: str, tmp_path: Path) -> None:
    plain = columns(written(tmp_path, TEXT, "plain.csv"), {"num": "gpus", "submit_s": "start[iso]"})
    assert columns(written(tmp_path, change(TEXT), name), {"num": "gpus", "submit_s": "start[iso]"}) == plain


@pytest.mark.parametrize(
    ("cell", "unit", "seconds"),
    [
        ("1500", "ms", 1.5), ("7", "us", 7e-6), ("2.5", "h", 9000.0), ("1", "d", 86400.0), ("3", "min", 180.0),
        ("1-02:03:04", "hms", 93784.0), ("02:03:04", "hms", 7384.0), ("03:04.5", "hms", 184.5),
        ("1970-01-01T00:00:01.25Z", "iso", 1.25), ("1970-01-01 08:00+08:00", "iso", 0.0),
        ("1970-01-02 00:00:00+0000", "iso", 86400.0), ("1970-01-01 00:00:02 UTC", "iso", 2.0),
    ],
)  # fmt: skip
def test_units(cell: str, unit: str, seconds: float) -> None:
    assert columns(pl.DataFrame({"a b": [cell]}), {"duration_s": f"a b[{unit}]"}) == {"duration_s": [seconds]}
    quoted = columns(pl.DataFrame({"a b": [cell]}), {"duration_s": f'2 * "a b"[{unit}]'})
    assert quoted["duration_s"] == [pytest.approx(2 * seconds, abs=1e-6)]  # rounded to microseconds


def test_dates_of_frames_need_no_unit() -> None:
    day = dt.datetime(1970, 1, 2, tzinfo=dt.UTC)
    frame = pl.DataFrame(
        {"at": [day, None], "for": [dt.timedelta(milliseconds=1500)] * 2, "on": [dt.date(1970, 1, 3)] * 2}
    )
    found = columns(frame, {"submit_s": "at", "duration_s": "for"})
    assert found["submit_s"] == [86400.0, None] and found["duration_s"] == [1.5, 1.5]
    assert columns(frame, {"duration_s": "on - at"})["duration_s"] == [86400.0, None]


def test_types() -> None:
    frame = {"a": ["1.5", "NA"], "b": ["True", "0"], "m": ["T4|A10", ""], "x": ["nic=1;disk=2", None]}
    found = columns(frame, {"memory_mib": "a * 1024", "spot": "b", "models": "m", "more": "x"})
    assert found["memory_mib"] == [1536, None] and found["spot"] == [True, False]
    assert found["models"] == [["T4", "A10"], None] and found["more"] == [[("nic", 1), ("disk", 2)], None]
    large = columns({"a": ["9007199254740993"]}, {"memory_mib": "a"})
    assert large["memory_mib"] == [2**53 + 1]


def test_names_that_fit_need_no_entry_and_none_leaves_out() -> None:
    frame = {"num": [1, 2], "user": ["a", "b"], "rest": [1, 2]}
    assert columns(frame, {"user": None}) == {"num": [1, 2], "native_user": ["a", "b"], "native_rest": ["1", "2"]}
    assert columns(frame, {"memory_mib": "7"}, identity=False)["memory_mib"] == [7, 7]


def test_a_condition_leaves_rows_out_and_messages_keep_the_lines(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n1,x\n2,y\nz,y\n3,y\n4,y\n")
    assert columns(path, {"num": "a"}, keep="b = 'y' AND a <> 'z'")["num"] == [2, 3, 4]
    with pytest.raises(InputError, match=r"t\.csv:4: a: found 'z', expected a number"):
        columns(path, {"num": "a"}, keep="b = 'y'")
    with pytest.raises(InputError, match="expected a condition"):
        columns(path, {"num": "a"}, keep="1 + 1")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"num": "gpu"}, r"t\.csv: num = gpu: found no column 'gpu', expected one of: start, .*did you mean 'gpus'"),
        ({"num": "gpus +"}, r"t\.csv: num = gpus \+: found .*, expected a column or an expression over start"),
        ({"num": "(select 1)"}, "found a query"),
        ({"num": "__import__(1)"}, "unsupported function"),
        ({"num": "gpus / 75"}, r"t\.csv:2: num = gpus / 75: found 1\.33.*, expected a whole number"),
        ({"num": "gpus * 1000"}, r"t\.csv:2: num = gpus \* 1000: found 100000\.0, expected a number of type int16"),
        ({"num": "state"}, r"t\.csv:2: state: found 'OK', expected a number"),
        ({"num": "state * 2"}, r"t\.csv:2: state: found 'OK', expected a number"),
        ({"submit_s": "start"}, r"t\.csv:2: start: found '2020-06-09 18:41:01', expected a number; write start\[iso\]"),
        ({"submit_s": "state[iso]"}, r"t\.csv:2: state: found 'OK', expected a date and time"),
        ({"submit_s": "start[hms]"}, r"expected \[D-\]HH:MM:SS"),
        ({"submit_s": "start[week]"}, "found unit 'week', expected one of: s, ms, us"),
        ({"spot": "state"}, r"t\.csv:2: spot = state: found 'OK', expected true or false"),
        ({"more": "state"}, r"t\.csv:2: more: found 'OK', expected A\|B, or name=value"),
        ({"nums": "gpus"}, "nums: found no canonical column, expected one of: .*did you mean 'num'"),
    ],
)  # fmt: skip
def test_a_wrong_mapping_is_one_clear_error(entries: dict[str, str | None], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        columns(written(tmp_path, TEXT), entries)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"t\.csv:1: found columns \(none\), expected a header"),
        ("a,a\n1,2\n", r"t\.csv:1: found columns a, a, expected a header of names, each once"),
        ("gpus,b\n1,2\n3\n", r"t\.csv:3: found 1 fields, expected 2 fields"),
        ("gpus,b\n1,2\n3,4,5\n", r"t\.csv:3: found 3 fields, expected 2 fields"),
        ("gpus,b\n1,2\nx,4\n", r"t\.csv:3: gpus: found 'x', expected a number"),
        (gzip.compress(TEXT.encode(), mtime=0)[:-20], "damaged gzip|complete CSV"),
        (b"gpus\n\xff\xfe\n", "t.csv"),
    ],
)  # fmt: skip
def test_broken_files(text: str | bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        columns(written(tmp_path, text, "t.csv.gz" if text[:2] == b"\x1f\x8b" else "t.csv"), {"num": "gpus"})
    with pytest.raises(InputError, match="no such file"):
        source_of(tmp_path / "none.csv")


class Pandas:
    """A frame without an Arrow stream, as older versions of pandas have."""

    def __init__(self, **columns: list[Any]) -> None:
        self.columns = columns

    def to_dict(self, orient: str) -> dict[str, list[Any]]:
        """The columns as lists."""
        assert orient == "list"
        return self.columns


def test_frames_without_arrow() -> None:
    assert columns(Pandas(gpus=[1.0, float("nan")], at=["a", float("nan")]), {"num": "gpus"}) == {
        "num": [1, None], "native_at": ["a", None],
    }  # fmt: skip
    for odd in ([1, 2], 7, Pandas(a=[1], b=[1, 2])):
        with pytest.raises(InputError, match="frame: found"):
            source_of(odd)
    with pytest.raises(InputError, match="frame: a: found"):
        source_of(Pandas(a=[1, "x"]))


def test_nodes(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"cpus": [8, 8], "mem": [64.0, 64.5], "gpus": [0, 4], "model": [None, "T4"], "rack": ["a", "b"]}
    )
    cluster = Cluster.from_polars(frame.lazy(), NODES)
    assert cluster.nodes["memory_mib"].to_pylist() == [65_536, 66_048]
    assert cluster.nodes["native_rack"].to_pylist() == ["a", "b"] and cluster.total_gpus == 4
    cluster.to_csv(tmp_path / "n.csv")
    cluster.to_parquet(tmp_path / "n.parquet")
    frame.write_csv(tmp_path / "raw.csv")
    copies = [Cluster.from_csv(tmp_path / "n.csv"), Cluster.from_parquet(tmp_path / "n.parquet"),
              Cluster.from_csv(tmp_path / "raw.csv", NODES), Cluster.from_arrow(frame.to_arrow(), NODES),
              Cluster.from_pandas(Pandas(**frame.to_dict(as_series=False)), NODES)]  # fmt: skip
    assert {copy.checksum() for copy in copies} == {cluster.checksum()}
    assert len(Cluster.from_arrow(frame, NODES, where="gpus > 0")) == 1
    with pytest.raises(InputError, match=r"raw\.csv: max_pod: found an unknown column, expected max_pods"):
        frame.with_columns(max_pod=1).write_csv(tmp_path / "raw.csv")
        Cluster.from_csv(tmp_path / "raw.csv", NODES)


def test_half_a_character_in_an_expression_is_refused() -> None:
    with pytest.raises(InputError, match=r"num = a \S+ 'x': found .*surrogates not"):
        columns({"a": ["1"]}, {"num": "a \ud800 'x'"})


def test_columns_that_have_no_meaning_are_refused_by_name_and_others_keep_their_values() -> None:
    for values in (pl.Series("x", ["a"], dtype=pl.Object), pl.Series("x", [1], dtype=pl.Int128)):
        with pytest.raises(InputError, match="frame: x: found"):
            source_of(pl.DataFrame([values]))
    with pytest.raises(InputError, match="frame: x: found type fixed_size_binary"):
        source_of(pa.table({"x": pa.array([b"12345678"], pa.binary(8))}))
    wide = pa.table({"x": pa.array([decimal.Decimal("1.5")], pa.decimal256(60, 1)), "y": pa.array([b"anna"])})
    assert mapped(source_of(wide), {}, {"x": pa.float64(), "y": pa.string()}).table.to_pydict() == {
        "x": [1.5],
        "y": ["anna"],
    }

"""Strict CSV: empty fields are null, everything else that does not belong is named by line and column."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from fastsim.errors import InputError
from fastsim.foundation.csv_table import csv_line, csv_texts, read_csv, without_formulas

TYPES = {"name": pa.string(), "cpu": pa.int64(), "watts": pa.float64()}


def written(folder: Path, text: str) -> Path:
    path = folder / "t.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_types_are_those_asked_for_and_empty_is_null(tmp_path: Path) -> None:
    table = read_csv(written(tmp_path, "cpu,name\n1,1\n,\n"), TYPES, ("cpu",))
    assert table.to_pydict() == {"cpu": [1, None], "name": ["1", None]}
    assert table.schema.types == [pa.int64(), pa.string()]


def test_compressed_is_read_and_judged_alike(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"name,cpu\na,1\nb,x\n"))
    with pytest.raises(InputError, match=r"t\.csv\.gz:3: cpu: found 'x', expected an integer \(int64\)"):
        read_csv(path, TYPES, ())
    path.write_bytes(gzip.compress(b"name,cpu\na,1\n"))
    assert read_csv(path, TYPES, ()).to_pydict() == {"name": ["a"], "cpu": [1]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"t\.csv:1: found columns \(none\), expected at least: cpu"),
        ("name\na\n", r"t\.csv:1: found columns name, expected at least: cpu"),
        ("cpu,cpu\n1,2\n", r"t\.csv:1: found columns cpu, cpu"),
        ("cpu,gpu\n1,2\n", r"t\.csv:1: gpu: found an unknown column, expected columns from: name, cpu, watts"),
        ("cpu\n1.5\n", r"t\.csv:2: cpu: found '1\.5', expected an integer"),
        ("cpu,watts\n1,2\n\n3,many\n", r"t\.csv:4: watts: found 'many', expected a number \(double\)"),
        ("cpu,watts\n1,2\n1\n", r"t\.csv:3: found 1 fields, expected 2 fields: cpu,watts"),
        ("cpu,name\n1,a\n2,b,c\n", r"t\.csv:3: found 3 fields"),
    ],
)
def test_the_first_fault_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_csv(written(tmp_path, text), TYPES, ("cpu",))


def test_files_that_are_no_csv_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.csv: found no such file, expected a CSV file"):
        read_csv(tmp_path / "none.csv", TYPES, ())
    path = tmp_path / "t.csv.gz"
    path.write_bytes(b"cpu\n1\n")
    with pytest.raises(InputError, match="plain or gzipped"):
        read_csv(path, TYPES, ())
    path.write_bytes(gzip.compress(b"cpu\n" + b"1\n" * 100_000)[:-40])
    with pytest.raises(InputError, match=r"t\.csv\.gz: found .*, expected a .*CSV file"):
        read_csv(path, TYPES, ())
    latin = tmp_path / "t.csv"
    latin.write_bytes("näme\n".encode("latin-1"))
    with pytest.raises(InputError, match="utf-8"):
        read_csv(latin, TYPES, ())


def test_lines_count_the_header_and_blank_lines(tmp_path: Path) -> None:
    path = written(tmp_path, "cpu\n\n1\n\n\n2\n")
    assert [csv_line(path, row) for row in (0, 1)] == [3, 6]
    assert csv_line(path, 7) == 9  # past the end: as if no line were blank


def test_texts_that_spreadsheets_run_are_marked() -> None:
    names = ["=1+1", "+a", "-a", "@a", "\ta", "\ra", "a=b", "", None]
    frame = without_formulas(pl.DataFrame({"name": names, "delta": [-1] * 9}))
    assert frame["name"].to_list() == ["'=1+1", "'+a", "'-a", "'@a", "'\ta", "'\ra", "a=b", "", None]
    assert frame["delta"].to_list() == [-1] * 9


def test_texts_of_any_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfa b|c\r\n01|\r\n\r\n2|x\r\n")
    assert csv_texts(path, delimiter="|").to_pydict() == {"a b": ["01", "2"], "c": [None, "x"]}
    assert csv_line(path, 1) == 4
    assert csv_texts(path, ["x"], delimiter=";").to_pydict() == {"x": ["a b|c", "01|", "2|x"]}
    assert csv_line(path, 0, headed=False) == 1
    for text, names, message in (
        ("", None, r"t\.csv:1: found columns \(none\), expected a header of names, each once"),
        ("a,a\n", None, "found columns a, a"),
        ("a,b\n1,2\n3\n", None, r"t\.csv:3: found 1 fields, expected 2 fields: a,b"),
        ("1,2\n3\n", ["a", "b"], r"t\.csv:2: found 1 fields, expected 2 fields: a,b"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            csv_texts(path, names)
    for names in (None, ["a"]):
        with pytest.raises(InputError, match="no such file"):
            csv_texts(tmp_path / "none.csv", names)
    with pytest.raises(InputError, match="expected at least: z"):
        csv_texts(path, ["a"], ["z"])


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    path = written(tmp_path, "\ufeffcpu,name\n1,a\n")
    assert read_csv(path, TYPES, ("cpu",)).to_pydict() == {"cpu": [1], "name": ["a"]}


@pytest.mark.parametrize("text", ["na\0me,cpu\na,1\n", "\0\n1\n"])
def test_no_name_of_a_column_holds_the_character_nul(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"t\.csv:1: found a name of a column with the character NUL, expected a"):
        csv_texts(written(tmp_path, text))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n".encode("utf-16"), r"t\.csv: found text in UTF-16, expected a CSV file; save it in UTF-8"),
        (b"PK\x03\x04...", "found a workbook of Excel, or another ZIP archive, .* save the sheet as CSV"),
        (b"\xd0\xcf\x11\xe0...", "found a workbook of Excel, .* save the sheet as CSV"),
        (b"PAR1...", r"found a Parquet file, .* its name must end in \.parquet"),
        (b"ARROW1...", r"found a file of Arrow, .* polars\.read_ipc"),
        (gzip.compress(b"a,b\n", mtime=0), r"found a file packed by gzip, .* its name must end in \.gz"),
        (b'[\n {"a": 1}]', r"found a JSON list, .* polars\.read_json"),
        (b'{"a": 1}\n{"a": 2}\n', r"found lines of JSON, .* its name must end in \.jsonl or \.ndjson"),
        (b"a;b\n1;2\n", r"t\.csv:1: found one column 'a;b', expected columns parted by ','; delimiter=';', or csv:"),
        (b"a\tb\n1\t2\n", r"found one column .* delimiter='\\t', or csv:.*\?delimiter=%09"),
        (b"a|b\n1|2\n", r"delimiter='\|', or csv:"),
    ],
)
def test_files_of_another_kind_say_what_they_are(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        csv_texts(path)
    with pytest.raises(InputError, match=message):
        read_csv(path, TYPES, ())


def test_one_column_is_a_table_and_braces_may_begin_a_name(tmp_path: Path) -> None:
    assert csv_texts(written(tmp_path, "name\na;b\n")).to_pydict() == {"name": ["a;b"]}
    assert csv_texts(written(tmp_path, "{x},b\n1,2\n")).column_names == ["{x}", "b"]
    with pytest.raises(InputError, match="delimiter=','"):
        csv_texts(written(tmp_path, "a,b\n1,2\n"), delimiter=";")

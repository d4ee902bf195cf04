"""Readings in files of every kind, and what is wrong with some."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fastsim.errors import InputError
from fastsim.telemetry.exporter import Record
from fastsim.telemetry.files import OF_A_RUN, readings_of, scanned, write_csv_files
from fastsim.telemetry.openmetrics import write_files
from fastsim.telemetry.readings_table import ordered, write
from tests.telemetry import table

MADE = table({"power_w": [(1000, 1.5), (3000, 2.0)], "util_pct": [(1000, 3.0)]})


def answer(path: Path, result: object) -> Path:
    """A saved answer to a range query."""
    content = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    path.write_text(json.dumps(content))
    return path


def test_every_kind_tells_the_same(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    write(MADE, tmp_path / "a.parquet")
    write(MADE, tmp_path / "run" / OF_A_RUN)
    lines = write_files(MADE, tmp_path / "om")
    labels: dict[str, object] = {"gpu": "0", "UUID": "GPU-1", "modelName": "V100", "Hostname": "n1", "namespace": "ns",
              "pod": "p", "container": "c"}  # fmt: skip
    saved = answer(tmp_path / "a.json", [
        {"metric": labels | {"__name__": "DCGM_FI_DEV_POWER_USAGE"}, "values": [[1, "1.5"], [3, "2"]]},
        {"metric": labels | {"__name__": "DCGM_FI_DEV_GPU_UTIL"}, "values": [[1, "3"]]},
        {"metric": {"__name__": "up"}, "values": [[1, "1"]]},
    ])  # fmt: skip
    unknown: Counter[str] = Counter()
    for path in (tmp_path / "a.parquet", tmp_path / "run", *lines, saved):
        assert readings_of([path], unknown=unknown) == MADE
    assert readings_of([tmp_path / "a.parquet", saved]) == MADE
    assert unknown == {"up": 1}


def test_tables_are_not_read_before_they_are_looked_at(tmp_path: Path) -> None:
    """Out of order, in two files that overlap: what is written is the same, and so is what an exporter tells."""
    pq.write_table(MADE.take([2, 0]), tmp_path / "a.parquet")
    pq.write_table(MADE.take([1, 0]), tmp_path / "b.parquet")
    both = scanned([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    texts = [
        [path.read_text() for path in write_files(rows, tmp_path / f"om{place}", slice_s=2)]
        for place, rows in enumerate((MADE, both))
    ]
    assert len(texts[0]) == 2 and texts[0] == texts[1]
    csv = [
        [path.read_text() for path in write_csv_files(rows, tmp_path / f"csv{place}")]
        for place, rows in enumerate((MADE, both))
    ]
    assert csv[0] == csv[1] == ["t_rel,value\n0.0,1.5\n2.0,2.0\n", "t_rel,value\n0.0,3.0\n"]
    assert [Record(both).text(place) for place in (0, 1.9, 2)] == [Record(MADE).text(place) for place in (0, 1.9, 2)]
    pq.write_table(MADE.take([1]).set_column(9, "value", pa.array([7.0])).cast(MADE.schema), tmp_path / "b.parquet")
    pq.write_table(MADE, tmp_path / "a.parquet")
    with pytest.raises(InputError, match="found 2 and 7, expected one value"):
        write_files(scanned([tmp_path / "a.parquet", tmp_path / "b.parquet"]), tmp_path / "om3")
    whole = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(whole[:100] + bytes(len(whole) // 3) + whole[100 + len(whole) // 3 :])
    with pytest.raises(InputError):
        write_files(scanned([tmp_path / "a.parquet"]), tmp_path / "om4")


def test_small_tables_for_each_series(tmp_path: Path) -> None:
    source = ordered(pa.concat_tables([MADE, table({"power_w": [(2000, 9.0)]}, gpu_index=1, pod="a/b")]))
    written = write_csv_files(source, tmp_path)
    assert [path.name for path in written] == ["n1-0-p-power_w.csv", "n1-1-a_b-power_w.csv", "n1-0-p-util_pct.csv"]
    assert written[0].read_text() == "t_rel,value\n0.0,1.5\n2.0,2.0\n"
    assert written[1].read_text() == "t_rel,value\n1.0,9.0\n"


def test_names_that_would_be_equal(tmp_path: Path) -> None:
    source = ordered(pa.concat_tables([table({"power_w": [(0, 1.0)]}, gpu_uuid=uuid) for uuid in ("a", "b")]))
    assert [path.name for path in write_csv_files(source, tmp_path)] == [
        "n1-0-p-power_w.csv",
        "n1-0-p-power_w-2.csv",
    ]


def test_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "half.parquet").write_bytes(b"PAR1 and no more")
    pq.write_table(MADE.drop_columns(["value"]), tmp_path / "less.parquet")
    pq.write_table(MADE.set_column(9, "value", pa.array(["a"] * 3)), tmp_path / "text.parquet")
    pq.write_table(MADE.set_column(9, "value", pa.array([None] * 3, pa.float64())), tmp_path / "null.parquet")
    (tmp_path / "half.json").write_text('{"status": "success", "data": {"resultTy')
    (tmp_path / "late.om").write_text("dcgm_fb_used 1 2.0\ndcgm_fb_used 1 1.0\n# EOF\n")
    for name, found in {
        "half.parquet": "complete Parquet", "less.parquet": "no column value",
        "text.parquet": "1: value: found 'a', expected a value of type double",
        "null.parquet": "1: value: found null, expected a value", "half.json": "a matrix of series",
        "none.json": "No such file",
        "late.om": "in order of time", "none.om": "no such file or folder", "none.parquet": "no such file",
        ".": "no telemetry",
    }.items():  # fmt: skip
        with pytest.raises(InputError, match=found):
            readings_of([tmp_path / name])


def test_every_series_has_a_file_of_its_own_whatever_its_names(tmp_path: Path) -> None:
    rows = MADE.to_pylist()
    names = ["p", "p-2", "P", "/p", "!p", "x" * 300, "x" * 301, "é" * 150]
    several = pa.Table.from_pylist([row | {"node": name, "pod": None} for name in names for row in rows], MADE.schema)
    paths = write_csv_files(several, tmp_path / "series")
    assert len({str(path).lower() for path in paths}) == 2 * len(names) == len(list((tmp_path / "series").iterdir()))
    assert {len(path.read_text().splitlines()) for path in paths} == {2, 3}

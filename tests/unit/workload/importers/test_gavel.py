"""Gavel's traces: the three formats, what writing cuts, what is refused and where."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from fastsim.errors import InputError
from fastsim.workload import Workload
from fastsim.workload.importers.gavel import import_jobs, write_trace

SEVEN = "LM (batch size 5)\tpython main.py\t--steps\t1\t900\t{}\t2"
TEN = "LM (batch size 5)\tpython main.py\tlanguage_modeling\t--steps\t1\t900\t2\t5\t{}\t{}"
TWELVE = "A3C\tpython3 main.py\trl\t--max-steps\t0\t900\t1\tgns\t1\t-1.000000\t1418\t{}"


def written(path: Path, *lines: str) -> Path:
    text = "".join(f"{line}\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def test_seven_fields(tmp_path: Path) -> None:
    jobs = import_jobs(written(tmp_path / "a.trace", SEVEN.format("0.000000"), SEVEN.format("10.5")))
    assert jobs.table().to_pylist() == [
        {"pod_id": i, "submit_s": submit_s, "cpu_milli": 0, "memory_mib": 0, "num_gpu": 2, "gpu_milli": 1000,
         "workload": "LM (batch size 5)", "total_work": 900.0} for i, submit_s in enumerate([0.0, 10.5])
    ]  # fmt: skip


def test_ten_fields_have_weights_and_slos(tmp_path: Path) -> None:
    lines = TEN.format("-1.000000", "0"), TEN.format("1.2", "3"), TEN.format("0", "3")
    table = Workload.from_gavel(written(tmp_path / "a.trace.gz", *lines)).table()
    assert table["slo"].to_pylist() == [None, 1.2, 0.0] and table["weight"].to_pylist() == [5.0] * 3
    assert table["submit_s"].to_pylist() == [0, 3, 3]


def test_twelve_fields_have_durations_and_modes(tmp_path: Path) -> None:
    table = import_jobs(written(tmp_path / "a.trace", TWELVE.format("7"))).table()
    row = table.to_pylist()[0]
    assert (row["duration_s"], row["task_role"], row["submit_s"], row["slo"]) == (1418.0, "gns", 7.0, None)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "a.trace: found no jobs"),
        (["A3C\t3"], "a.trace:1: found 2 fields, expected 7, 10, 12 fields"),
        ([SEVEN.format(1), TWELVE.format(2)], "a.trace:2: found 12 fields, expected 7, as in line 1"),
        ([SEVEN.format(1), SEVEN.format(0.5)], "a.trace:2: submit_s: found '0.5', expected seconds, never less"),
        ([SEVEN.format("x")], "a.trace:1: submit_s: found 'x'"),
        ([SEVEN.format("nan")], "a.trace:1: submit_s: found 'nan'"),
        ([SEVEN.format(1).replace("900", "9.5")], "a.trace:1: total_work: found '9.5', expected a whole number"),
        ([SEVEN.format(1)[:-1] + "0"], "a.trace:1: num_gpu: found '0'"),
        ([SEVEN.format(1)[17:]], "a.trace:1: workload: found ''"),
        ([TEN.format("inf", 1)], "a.trace:1: slo: found 'inf'"),
        ([TEN.format(1, 1).replace("\t5\t", "\t0\t")], "a.trace:1: weight: found '0'"),
        ([TEN.format(1, 1), ""], "a.trace:2: found 1 fields"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        import_jobs(written(tmp_path / "a.trace", *lines))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        import_jobs(tmp_path / "none.trace")
    (tmp_path / "a.trace.gz").write_bytes(b"plain")
    with pytest.raises(InputError, match="plain or gzipped"):
        import_jobs(tmp_path / "a.trace.gz")
    (tmp_path / "a.trace").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="plain or gzipped"):
        import_jobs(tmp_path / "a.trace")


def jobs(**changed: object) -> Workload:
    columns = {
        "pod_id": [0, 1], "submit_s": [0.25, 1.1234567], "cpu_milli": [0, 0], "memory_mib": [0, 0],
        "num_gpu": [1, 4], "gpu_milli": [1000, 1000], "workload": ["A3C", "own"], "total_work": [10.9, 11.0],
        "weight": [None, 2.7], "slo": [1.25, None],
    }  # fmt: skip
    return Workload.from_arrow(pa.table({k: v for k, v in (columns | changed).items() if v is not None}), name="jobs")


def test_writing_cuts_what_the_format_cannot_say(tmp_path: Path) -> None:
    a3c = "A3C\tpython3 main.py --env PongDeterministic-v4 --workers 4 --amsgrad True\trl\t--max-steps\t0"
    assert write_trace(jobs(), tmp_path / "a.trace") == 2
    first, second = (tmp_path / "a.trace").read_text().splitlines()
    assert first == f"{a3c}\t10\t1\t1\t1.250000\t0.250000"
    assert second == "own\t-\t-\t-\t0\t11\t4\t2\t-1.000000\t1.123457"
    write_trace(jobs(weight=None, slo=None), tmp_path / "b.trace", whole_seconds=True)
    assert [line.split("\t")[-3:] for line in (tmp_path / "b.trace").read_text().splitlines()] == [
        ["1", "-1.000000", "0"], ["1", "-1.000000", "1"],
    ]  # fmt: skip


def test_gzip_is_the_same_bytes_every_time(tmp_path: Path) -> None:
    write_trace(jobs(), tmp_path / "a.trace.gz")
    write_trace(jobs(), tmp_path / "b.trace.gz")
    assert (tmp_path / "a.trace.gz").read_bytes() == (tmp_path / "b.trace.gz").read_bytes()
    write_trace(jobs(), tmp_path / "c.trace")
    assert gzip.decompress((tmp_path / "a.trace.gz").read_bytes()) == (tmp_path / "c.trace").read_bytes()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"total_work": None}, "jobs: total_work: found no such column"),
        ({"total_work": [1.0, None]}, "jobs:2: found workload 'own', total_work None"),
        ({"workload": ["a\tb", "c"]}, "jobs:1: found workload"),
        ({"weight": [1.0, 0.5]}, "jobs:2: weight: found 0.5"),
    ],
)
def test_what_the_format_cannot_hold_leaves_no_file(tmp_path: Path, changed: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        write_trace(jobs(**changed), tmp_path / "a.trace")
    assert list(tmp_path.iterdir()) == []

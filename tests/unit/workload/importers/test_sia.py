"""Job lists of Sia and Pollux: there and back, and one clear error for a wrong line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from fastsim.errors import InputError
from fastsim.scenario.run_inputs import workload_from
from fastsim.workload import Workload
from fastsim.workload.importers.sia import write_trace

HEAD = "name,time,application,num_replicas,batch_size"
PLAIN = f"{HEAD}\ncifar10-0,107.0,cifar10,6,2048\nbert-1,110.5,bert,1,12\n"
MIXED = f"{HEAD},category\ncifar10-0,107.0,cifar10,6,2048,rigid\nbert-1,110.5,bert,1,12,adaptive\n"


@pytest.mark.parametrize("text", [PLAIN, MIXED])
@pytest.mark.parametrize("name", ["jobs.csv", "jobs.csv.gz"])
def test_there_and_back(name: str, text: str, tmp_path: Path) -> None:
    path, again = tmp_path / name, tmp_path / f"again-{name}"
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    found = Workload.from_sia(path)
    assert write_trace(found, again) == 2
    assert (gzip.decompress(again.read_bytes()) if name.endswith(".gz") else again.read_bytes()) == text.encode()


def test_columns(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(MIXED)
    rows = workload_from(f"sia:{path}").workload.table().to_pylist()
    first = {
        name: rows[0][name] for name in ("submit_s", "num_gpu", "gpu_milli", "workload", "batch_size", "task_role")
    }
    assert list(first.values()) == [107.0, 6, 1000, "cifar10", 2048, "rigid"]
    assert [row["native_id"] for row in rows] == ["cifar10-0", "bert-1"]


def test_jobs_without_names_get_some(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(PLAIN)
    table = Workload.from_sia(path).table().drop_columns(["native_id"])
    write_trace(Workload.from_arrow(table), path)
    assert [line.split(",")[0] for line in path.read_text().splitlines()] == ["name", "cifar10-0", "bert-1"]
    with pytest.raises(InputError, match="batch_size"):
        write_trace(Workload.from_arrow(table.drop_columns(["batch_size"])), path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a,,cifar10,1,128", ":3: time: found None"),
        ("a,5,cifar10,1,128", ":3: time: found 5.0"),
        ("a,120,cifar10,0,128", ":3: num_replicas: found 0"),
        ("a,120,cifar10,one,128", ":3: num_replicas: found 'one'"),
        ("a,120,,1,128", ":3: application: found None"),
    ],
)
def test_a_wrong_line_is_one_clear_error(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(f"{HEAD}\nb,107.0,cifar10,6,2048\n{line}\n")
    with pytest.raises(InputError, match=message):
        Workload.from_sia(path)


def test_an_unknown_category_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(MIXED.replace("rigid", "stiff"))
    with pytest.raises(InputError, match=":2: category: found 'stiff', expected one of adaptive"):
        Workload.from_sia(path)

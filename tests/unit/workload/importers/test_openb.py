"""The openb importer: every oddity of the lists, the options, and broken files named to the line."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.errors import InputError, ScenarioError
from fastsim.workload import Workload

Shared = Callable[[str], Path]

HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
ROWS = [
    "pod-00000,14000,0,1,1000,V100M16|V100M32|V100M32,LS,Running,50,12902960,60",
    "pod-00001,8000,16384,0,0,,BE,Pending,40,134,",
    "pod-00002,6000,12288,1,460,T4,LS,Succeeded,40,100,100",
    "pod-10003,88000,327680,8,1000,|G2|,Burstable,Failed,45,145,55",
]


def listed(tmp_path: Path, rows: list[str], header: str = HEADER, name: str = "pods.csv") -> Path:
    path = tmp_path / name
    text = "\n".join([header, *rows])  # no final newline, as in one of the copies in circulation
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def columns(workload: Workload) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = workload.table().to_pydict()
    return found


@pytest.mark.parametrize("name", ["pods.csv", "pods.csv.gz"])
def test_every_oddity_of_an_eleven_column_list(tmp_path: Path, name: str) -> None:
    pods = columns(Workload.from_openb(listed(tmp_path, ROWS, name=name)))
    # Sorted by creation time, stably: 00001 stands before 00002 in the file.
    assert pods["native_id"] == ["pod-00001", "pod-00002", "pod-10003", "pod-00000"]
    assert pods["pod_id"] == [0, 1, 2, 3]
    assert pods["submit_s"] == [0, 0, 5, 10]
    assert pods["duration_s"] == [94, 0, 90, 12_902_900]  # 00001 was cancelled unscheduled, after 94 s
    assert pods["orig_start_s"] == [None, 60, 15, 20]
    assert pods["orig_end_s"] == [94, 60, 105, 12_902_920]
    assert pods["censored"] == [False, False, False, True]
    assert pods["gpu_models"] == [None, ["T4"], ["G2"], ["V100M16", "V100M32", "V100M32"]]
    assert pods["memory_mib"] == [16384, 12288, 327680, 0]
    assert pods["qos"] == ["BE", "LS", "Burstable", "LS"]
    assert pods["orig_status"] == ["Pending", "Succeeded", "Failed", "Running"]


def test_five_columns_keep_file_order_and_have_no_durations(tmp_path: Path) -> None:
    header = ",".join(HEADER.split(",")[:5])
    rows = [",".join(row.split(",")[:5]) for row in reversed(ROWS)]
    workload = Workload.from_openb(listed(tmp_path, rows, header))
    pods = columns(workload)
    assert pods["native_id"] == ["pod-10003", "pod-00002", "pod-00001", "pod-00000"]
    assert pods["submit_s"] == [0, 1, 2, 3] and "duration_s" not in workload.columns
    dropped = Workload.from_openb(listed(tmp_path, rows, header), drop=["cpu_only", "never_scheduled"])
    assert columns(dropped)["native_id"] == ["pod-10003", "pod-00002", "pod-00000"]
    assert Workload.from_openb(listed(tmp_path, rows, header), on_missing_duration="drop").rows == 0


@pytest.mark.parametrize(
    ("options", "names", "submit", "durations"),
    [
        ({"drop": ["never_scheduled"]}, ["00002", "10003", "00000"], [0, 5, 10], [0, 90, 12_902_900]),
        ({"drop": ["cpu_only", "zero_duration"]}, ["10003", "00000"], [0, 5], [90, 12_902_900]),
        ({"drop": ["zero_duration"]}, ["00001", "10003", "00000"], [0, 5, 10], [94, 90, 12_902_900]),
        (
            {"on_missing_duration": "null", "drop": ["zero_duration"]},
            ["00001", "10003", "00000"],
            [0, 5, 10],
            [None, 90, 12_902_900],
        ),
        ({"on_missing_duration": "drop", "origin": "keep"}, ["00002", "10003", "00000"], [40, 45, 50], None),
        ({"duration": "lifetime"}, ["00001", "00002", "10003", "00000"], [0, 0, 5, 10], [94, 60, 100, 12_902_910]),
        ({"time_scale": 0.5}, ["00001", "00002", "10003", "00000"], [0, 0, 2.5, 5], [47, 0, 45, 6_451_450]),
    ],
)
def test_options(tmp_path: Path, options: dict[str, Any], names: list[str], submit: Any, durations: Any) -> None:
    pods = columns(Workload.from_openb(listed(tmp_path, ROWS), **options))
    assert [name[-5:] for name in pods["native_id"]] == names
    assert pods["submit_s"] == submit
    assert durations is None or pods["duration_s"] == durations


def test_no_durations_wanted(tmp_path: Path) -> None:
    assert "duration_s" not in Workload.from_openb(listed(tmp_path, ROWS), duration="none").columns


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("p,1,1,1,500,,LS,Running,0,1,0,9", [":4:", "12 fields", "11 fields"]),
        ("p,1,1,1", [":4:", "4 fields", "11 fields"]),
        ("p,1x,1,1,500,,LS,Running,0,1,0", [":4: cpu_milli", "'1x'", "an integer"]),
        ("p,NaN,1,1,500,,LS,Running,0,1,0", [":4: cpu_milli", "'NaN'", "an integer"]),
        ("p,1.5,1,1,500,,LS,Running,0,1,0", [":4: cpu_milli", "'1.5'", "an integer"]),
        ("p,1,-2,1,500,,LS,Running,0,1,0", [":4: memory_mib", "-2", "0 to"]),
        ("p,,2,1,500,,LS,Running,0,1,0", [":4: cpu_milli", "nothing", "a value"]),
        (",1,2,1,500,,LS,Running,0,1,0", [":4: name", "nothing", "a value"]),
        ("p,1,1,1,1001,,LS,Running,0,1,0", [":4: gpu_milli", "1001", "1 to 1000"]),
        ("p,1,1,1,99999,,LS,Running,0,1,0", [":4: gpu_milli", "99999", "1 to 1000"]),
        ("p,1,1,3,500,,LS,Running,0,1,0", [":4: gpu_milli", "500", "1000"]),
        ("p,1,1,-1,500,,LS,Running,0,1,0", [":4: num_gpu", "-1"]),
        ("p,1,1,1,500,,LS,Running,,1,0", [":4: creation_time", "nothing", "a value"]),
        ("p,1,1,1,500,,LS,Running,9007199254740993,1,0", [":4: creation_time", "9007199254740993", "seconds"]),
        ("p,1,1,1,500,,LS,Running,0,-9223372036854775808,0", [":4: deletion_time", "-9223372036854775808"]),
        ("p,1,1,1,500,,LS,Running,0,5,9", [":4: deletion_time", "5 (duration -4 s)", "no earlier"]),
    ],
)
def test_broken_line_is_named(tmp_path: Path, row: str, words: list[str]) -> None:
    # The blank line is skipped but counted; the bad row would sort before the good ones.
    path = listed(tmp_path, [ROWS[0], "", row, ROWS[1]])
    with pytest.raises(InputError) as error:
        Workload.from_openb(path)
    assert all(word in str(error.value) for word in [str(path), *words]), str(error.value)


def test_broken_files_and_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r":1: cpus: found an unknown column"):
        Workload.from_openb(listed(tmp_path, [], HEADER.replace("cpu_milli", "cpus")))
    with pytest.raises(InputError, match=r":1: found columns name, expected at least"):
        Workload.from_openb(listed(tmp_path, [], "name"))
    path = listed(tmp_path, ROWS * 500, name="pods.csv.gz")
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match=r"pods.csv.gz.*complete CSV"):
        Workload.from_openb(path)
    with pytest.raises(InputError, match="no such file"):
        Workload.from_openb(tmp_path / "none.csv")
    good = listed(tmp_path, ROWS)
    for options, words in [
        ({"drop": ["everything"]}, "import.drop: found 'everything'"),
        ({"drop": "cpu_only"}, "import.drop: found 'cpu_only', expected a list"),
        ({"origin": "max"}, "import.origin: found 'max', expected one of: min, keep"),
        ({"duration": "long"}, "import.duration"),
        ({"time_scale": 0.0}, "import.time_scale"),
    ]:
        with pytest.raises(ScenarioError, match=words):
            Workload.from_openb(good, **options)  # type: ignore[arg-type]


def test_parquet_copies_name_the_row(tmp_path: Path) -> None:
    path = tmp_path / "pods.parquet"
    columns = {"name": ["a", "b"], "cpu_milli": [1, -1], "memory_mib": [1, 1], "num_gpu": [0, 0], "gpu_milli": [0, 0]}
    pq.write_table(pa.table(columns), path)
    with pytest.raises(InputError, match=r"pods.parquet:2: cpu_milli: found -1"):
        Workload.from_openb(path)
    pq.write_table(pa.table(columns).drop_columns(["gpu_milli"]), path)
    with pytest.raises(InputError, match=r"pods.parquet: gpu_milli: found columns"):
        Workload.from_openb(path)


def test_node_lists(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,32000,262144,0,\nn1,64000,262144,2,P100")
    cluster = Cluster.from_openb(path)
    assert cluster.nodes["name"].to_pylist() == ["n0", "n1"]
    assert cluster.nodes["gpu_model"].to_pylist() == [None, "P100"]
    assert cluster.nodes["max_pods"].to_pylist() == [1001, 1001]
    path.write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,32000,262144,0,\nn1,64000,262144,2,P9")
    with pytest.raises(InputError, match=r"nodes.csv:3: gpu_model: found 'P9'"):
        Cluster.from_openb(path)
    path.write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,32000,262144,0,,\n")
    with pytest.raises(InputError, match=r"nodes.csv:2: found 6 fields, expected 5 fields"):
        Cluster.from_openb(path)


# ------------------------------------------------------------------ the recorded lists


@pytest.mark.parametrize("name", ["default", "cpu0", "cpu250", "gpushare100", "gpuspec33", "multigpu20"])
def test_parquet_and_csv_copies_are_one_workload(shared: Shared, name: str) -> None:
    folder = shared("data/openb")
    table = Workload.from_openb(folder / f"openb_pod_list_{name}.parquet")
    assert table.checksum() == Workload.from_openb(folder / f"native/openb_pod_list_{name}.csv.gz").checksum()


@pytest.mark.parametrize(
    ("name", "rows", "cpu_only", "shared_gpu", "gpu_milli", "cpu_milli"),
    [
        ("default", 8152, 1088, 3078, 6_086_800, 85_436_012),
        ("cpu250", 9420, 2356, 3078, 6_086_800, 107_460_312),
        ("gpushare80", 8152, 1088, 6279, 4_408_190, 67_189_456),
        ("multigpu40", 8746, 1088, 3078, 9_442_800, 118_032_212),
        ("gpuspec33", 8152, 1088, 3078, 6_086_800, 85_436_012),
    ],
)
def test_published_totals(
    shared: Shared, name: str, rows: int, cpu_only: int, shared_gpu: int, gpu_milli: int, cpu_milli: int
) -> None:
    pods = pl.DataFrame(Workload.from_openb(shared("data/openb") / f"openb_pod_list_{name}.parquet").table())
    count, milli = pods["num_gpu"].cast(pl.Int64), pods["gpu_milli"].cast(pl.Int64)
    assert pods.height == rows and (count == 0).sum() == cpu_only
    assert ((count == 1) & (milli < 1000)).sum() == shared_gpu
    assert (count * milli).sum() == gpu_milli and pods["cpu_milli"].sum() == cpu_milli
    assert pods["submit_s"].is_sorted() and pods["pod_id"].to_list() == list(range(rows))


def test_recorded_default_list_in_numbers(shared: Shared) -> None:
    path = shared("data/openb") / "openb_pod_list_default.parquet"
    pods = pl.DataFrame(Workload.from_openb(path, on_missing_duration="null").table())
    assert pods["duration_s"].null_count() == 897 and pods["censored"].sum() == 34
    assert pods["duration_s"].median() == 616 and (pods["memory_mib"] == 0).sum() == 1


def test_recorded_constraints(shared: Shared) -> None:
    pods = pl.DataFrame(Workload.from_openb(shared("data/openb") / "openb_pod_list_gpuspec33.parquet").table())
    models = pods["gpu_models"].drop_nulls().list.join("|")
    assert models.len() == 2388 and models.n_unique() == 16
    assert (models == "T4").sum() == 1291 and (models == "V100M16|V100M32|V100M32").sum() > 0


def test_recorded_nodes(shared: Shared) -> None:
    folder = shared("data/openb")
    for name, nodes in (("all_node", 1523), ("gpu_node", 1213)):
        cluster = Cluster.from_openb(folder / f"openb_node_list_{name}.parquet")
        assert (len(cluster), cluster.total_gpus) == (nodes, 6212)
        assert cluster.checksum() == Cluster.from_openb(folder / f"native/openb_node_list_{name}.csv.gz").checksum()

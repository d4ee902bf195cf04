"""Pods from tables under other names: what follows from the mapping, order, origin, errors in the source's terms."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import fastsim as fs
from fastsim.cluster.cluster import Cluster
from fastsim.errors import InputError, ScenarioError
from fastsim.workload import Workload
from fastsim.workload.mapped_pods import OF_GPUS
from fastsim.workload.row_checks import PARTNERS
from fastsim.workload.schema import POD_SCHEMA
from tests.needs import needed

JOBS = {"submit_s": "start", "duration_s": "60 * minutes", "num_gpu": "gpus"}
FRAME = pl.DataFrame({"start": [90, 30, 60], "minutes": [20, 10, 5], "gpus": [4.0, 0.5, 0.0], "who": ["c", "a", "b"]})


def rows(workload: Workload, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(workload.table()[name].to_pylist() for name in names), strict=True))


def test_pods_are_sorted_numbered_and_begin_at_zero() -> None:
    pods = Workload.from_polars(FRAME, JOBS)
    assert rows(pods, "pod_id", "submit_s", "duration_s", "num_gpu", "gpu_milli") == [
        (0, 0.0, 600.0, 1, 500), (1, 30.0, 300.0, 0, 0), (2, 60.0, 1200.0, 4, 1000),
    ]  # fmt: skip
    assert pods.metadata["fastsim.origin_s"] == "30.0"
    assert pods.table()["native_who"].to_pylist() == ["a", "b", "c"]
    kept = Workload.from_polars(FRAME.lazy(), JOBS, origin="keep", where="gpus >= 1")
    assert rows(kept, "submit_s", "cpu_milli", "memory_mib") == [(90.0, 0, 0)]


def test_dates_keep_their_origin_and_all_moments_move(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("at,end,due,gpus\n2020-06-09 18:41:01.1,2020-06-09 18:42:00.3+00:00,2020-06-09 20:41:01.1Z,1\n")
    pods = Workload.from_csv(path, {
        "submit_s": "at[iso]", "orig_end_s": "end[iso]", "deadline_s": "due[iso]", "num_gpu": "gpus",
        "duration_s": "end[iso] - at[iso]",
    })  # fmt: skip
    assert rows(pods, "submit_s", "orig_end_s", "deadline_s", "duration_s") == [(0.0, 59.2, 7200.0, 59.2)]
    assert pods.metadata["fastsim.origin_utc"] == "2020-06-09T18:41:01.100000+00:00"


def test_every_maker_reads_the_same(tmp_path: Path) -> None:
    FRAME.write_csv(tmp_path / "jobs.csv")
    FRAME.write_parquet(tmp_path / "jobs.parquet")
    FRAME.write_csv(tmp_path / "jobs.tsv", separator="\t")
    found = [
        Workload.from_csv(tmp_path / "jobs.csv", JOBS), Workload.from_csv(tmp_path / "jobs.parquet", JOBS),
        Workload.from_csv(str(tmp_path / "jobs.tsv"), JOBS, delimiter="\t"), Workload.from_csv(FRAME, JOBS),
        Workload.from_arrow(FRAME.to_arrow(), JOBS), Workload.from_pandas(FRAME.to_dict(as_series=False), JOBS),
    ]  # fmt: skip
    assert {one.checksum() for one in found} == {Workload.from_polars(FRAME, JOBS).checksum()}


def test_a_frame_of_pandas() -> None:
    pandas = needed("pandas")
    frame = pandas.DataFrame({"at": pandas.to_datetime(["2020-01-01", "2020-01-02"]), "gpus": [1, None]}, index=[5, 9])
    pods = Workload.from_pandas(frame, {"submit_s": "at", "num_gpu": "gpus"}, where="gpus IS NOT NULL")
    assert rows(pods, "submit_s", "num_gpu") == [(0.0, 1)] and not [one for one in pods.columns if "native" in one]


def test_canonical_names_need_no_mapping_and_native_columns_live_on(tmp_path: Path) -> None:
    pods = Workload.from_polars(FRAME, JOBS)
    pl.DataFrame(pods.table()).write_csv(tmp_path / "pods.csv")
    again = Workload.from_csv(tmp_path / "pods.csv")
    assert again.checksum() == pods.checksum()
    pods.write(tmp_path / "pods.parquet")
    assert Workload.scan(tmp_path / "pods.parquet").checksum() == pods.checksum()
    cluster = fs.Cluster.uniform(nodes=1, gpu="T4", gpus=4)
    assert fs.simulate(cluster, pods, "best_fit", queue="fifo").summary["pods_finished"].to_list() == [3]
    assert len(pods.shuffled(1).table()) == 3


def test_ids_stay_in_any_order_and_jobs_may_have_names() -> None:
    frame = FRAME.with_columns(pod_id=pl.Series([7, 8, -9]), job_id=pl.Series(["x", "y", "x"]))
    pods = Workload.from_polars(frame, {**JOBS, "num_gpu": "1"})
    assert rows(pods, "pod_id", "native_who", "job_id", "native_job_id") == [
        (8, "a", 1, "y"), (-9, "b", 0, "x"), (7, "c", 0, "x"),
    ]  # fmt: skip
    numbers = Workload.from_polars(frame.with_columns(job_id=pl.Series([5, 6, 5])), {**JOBS, "num_gpu": "1"})
    assert rows(numbers, "pod_id", "job_id") == [(8, 6), (-9, 5), (7, 5)] and "native_job_id" not in numbers.columns
    mapped = Workload.from_polars(FRAME.with_columns(id=pl.Series([7, 8, 9])), {**JOBS, "pod_id": "id"})
    assert rows(mapped, "pod_id", "native_who") == [(8, "a"), (9, "b"), (7, "c")]


@pytest.mark.parametrize(
    ("names", "numbers", "kept"),
    [
        (["07", "7", "7"], [0, 1, 1], ["07", "7", "7"]), (["1", None, "b"], [0, None, 1], ["1", None, "b"]),
        ([7.0, None, 7.0], [7, None, 7], None), (["12", None, "-3"], [12, None, -3], None),
    ],
)  # fmt: skip
def test_numbers_of_jobs_are_written_as_numbers(names: list[Any], numbers: list[Any], kept: list[Any] | None) -> None:
    frame = FRAME.sort("start").with_columns(pl.Series("job_id", names))
    table = Workload.from_polars(frame, {**JOBS, "num_gpu": "1"}).table()
    assert table["job_id"].to_pylist() == numbers
    assert (table["native_job_id"].to_pylist() if kept else None) == kept
    again = Workload.from_polars(pl.DataFrame(table)).table()
    assert again["job_id"].to_pylist() == numbers and again.column_names == table.column_names


def test_names_as_ids_become_native_ones() -> None:
    frame = FRAME.with_columns(pod_id=pl.Series(["z", "8", "a"]))
    pods = Workload.from_polars(frame, JOBS)
    assert rows(pods, "pod_id", "native_id", "native_who") == [(0, "8", "a"), (1, "a", "b"), (2, "z", "c")]
    assert rows(Workload.from_polars(FRAME, {**JOBS, "pod_id": "who"}), "pod_id", "native_id") == [
        (0, "a"), (1, "b"), (2, "c"),
    ]  # fmt: skip
    same = Workload.from_polars(FRAME, {**JOBS, "pod_id": "who", "native_id": "who"})
    assert rows(same, "native_id") == [("a",), ("b",), ("c",)]


TWO = {"pod_id": [7, 8, 7]}
NAMED = {"pod_id": ["x", "y", "x"]}


@pytest.mark.parametrize(
    ("more", "change", "message"),
    [
        (TWO, {}, "^frame:3: pod_id: found 7, as in frame:1, expected every id once$"),
        (NAMED, {}, "^frame:3: pod_id: found 'x', as in frame:1, expected every id once$"),
        ({"id": [7, 8, 7]}, {"pod_id": "id"}, "^frame:3: pod_id = id: found 7, as in frame:1, expected every id once$"),
        ({"id": ["7", "y", "7"]}, {"pod_id": "id"}, "^frame:3: pod_id = id: found '7', as in frame:1, expected"),
        ({"pod_id": [7, None, 8]}, {}, "^frame:2: pod_id: found nothing, expected a value"),
        ({"pod_id": ["x", None, "y"]}, {}, "^frame:2: pod_id: found nothing, expected an id in every row$"),
        ({**NAMED, "native_id": ["c", "b", "a"]}, {}, "^frame: pod_id: found names, beside native_id, expected whole"),
        ({"job_id": ["x", "y", "z"], "native_job_id": ["c", "b", "a"]}, {"num_gpu": "1"},
         "^frame: native_job_id: found a column beside names in job_id, expected one column of names"),
    ],
)  # fmt: skip
def test_ids_that_are_missing_or_stand_twice_are_named(
    more: dict[str, list[Any]], change: dict[str, str | None], message: str, tmp_path: Path
) -> None:
    frame = FRAME.with_columns(pl.Series(name, values) for name, values in more.items())
    with pytest.raises(InputError, match=message):
        Workload.from_polars(frame, {**JOBS, **change})
    path = tmp_path / "jobs.csv"
    frame.write_csv(path)
    lines = re.sub(r"frame:(\d)", lambda match: f"{re.escape(str(path))}:{int(match[1]) + 1}", message)
    with pytest.raises(InputError, match=lines.replace("frame", re.escape(str(path)))):
        Workload.from_csv(path, {**JOBS, **change})


def test_a_row_left_out_may_repeat_an_id() -> None:
    frame = FRAME.with_columns(pod_id=pl.Series([7, 8, 7]))
    assert rows(Workload.from_polars(frame, JOBS, where="start <> 60"), "pod_id") == [(8,), (7,)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"submit_s": None}, "frame: submit_s: found columns start, .*expected an entry for submit_s"),
        ({"num_gpu": None}, "frame: num_gpu: found columns start, .*expected an entry for num_gpu"),
        ({"num_gpu": "gpus * 3"}, r"frame:2: num_gpu = gpus \* 3: found 1\.5, expected whole GPUs, or a part of one"),
        ({"num_gpu": "gpus - 2"}, r"frame:2: num_gpu = gpus - 2: found -1\.5, expected whole GPUs"),
        ({"num_gpu": "NULLIF(gpus, 0)"}, r"frame:3: num_gpu = NULLIF\(gpus, 0\): found nothing, expected GPUs"),
        ({"duration_s": "minutes - 10"}, r"frame:3: duration_s = minutes - 10: found -5\.0, expected .* not negative"),
        ({"submit_s": "NULLIF(start, 30)"}, r"frame:2: submit_s = .*: found nothing, expected a value .*where="),
        ({"num_gpu": "1", "gpu_milli": "1500"}, "frame:1: gpu_milli = 1500: found 1500, expected 1 to 1000"),
        ({"gang_size": "2"}, "frame:1: job_id: found nothing, expected the job"),
    ],
)
def test_a_row_that_breaks_a_rule_is_named(change: dict[str, str | None], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Workload.from_polars(FRAME, {**JOBS, **change})
    with pytest.raises(ScenarioError, match="origin: found 'max', expected one of: min, keep"):
        Workload.from_polars(FRAME, JOBS, origin="max")


def test_a_likely_misspelling_is_refused() -> None:
    frame = FRAME.with_columns(memory_mb=5)
    with pytest.raises(
        InputError, match="frame: memory_mb: found an unknown column, expected memory_mib; rename it or"
    ):
        Workload.from_polars(frame, JOBS)
    assert "native_memory_mb" in Workload.from_polars(frame, {**JOBS, "memory_mib": None}).columns


VALUES: dict[str, Any] = {"gpu_milli": 500, "gpu_memory_mib": 100, "gpu_models": ["T4"], "bound_gpus": [0],
                          "gang_size": 2, "after_gang": True, "max_per_node": 1}  # fmt: skip
PARTNER = {**dict.fromkeys(OF_GPUS, "num_gpu"), **{name: partner for name, partner, *_ in PARTNERS}}
ALONE = {
    "pod_id", "submit_s", "duration_s", "cpu_milli", "memory_mib", "num_gpu", "job_id", "task_role", "qos", "priority",
    "preemptible", "preempts", "budgets", "tenant", "group",
    "spread", "spread_sets", "near", "preferences", "preference_sets",
    "extra_resources", "mig", "constraints", "pinned_node",
    "bound_node", "workload", "batch_size", "total_work", "min_replicas", "max_replicas", "deadline_s", "slo", "weight",
    "est_duration_s", "orig_start_s", "orig_end_s", "orig_status", "censored", "native_id", "native_job_id",
}  # fmt: skip


def test_every_column_means_something_alone_or_has_a_partner() -> None:
    assert PARTNER.keys() == VALUES.keys()
    assert sorted([*ALONE, *PARTNER]) == sorted(POD_SCHEMA.names)


@pytest.mark.parametrize("name", PARTNER)
@pytest.mark.parametrize("maker", ["polars", "arrow", "arrow mapped", "csv"])
def test_a_column_without_its_partner_is_refused_by_name(name: str, maker: str, tmp_path: Path) -> None:
    columns = {"pod_id": [0, 1], "submit_s": [0.0, 1.0], "cpu_milli": [1, 1], "memory_mib": [1, 1],
               name: [VALUES[name]] * 2}  # fmt: skip
    columns |= {} if PARTNER[name] == "num_gpu" else {"num_gpu": [1, 1], "gpu_milli": [1000, 1000]}
    frame = pl.DataFrame(columns)
    with pytest.raises(InputError, match=PARTNER[name]) as error:
        if maker == "polars":
            Workload.from_polars(frame)
        elif maker == "csv":
            texts = [pl.col(key).list.join(";") for key, kind in frame.schema.items() if kind == pl.List(pl.String)]
            kept = frame.select(pl.exclude(pl.List(pl.Int64))).with_columns(texts)
            kept.write_csv(tmp_path / "pods.csv")
            Workload.from_csv(tmp_path / "pods.csv", {} if name in kept.columns else {name: "cpu_milli"})
        else:
            Workload.from_arrow(frame.to_arrow(), {} if "mapped" in maker else None).table()
    if maker != "arrow" and name not in ("bound_gpus", "gang_size", "after_gang", "max_per_node"):
        assert f"{name}: found" in str(error.value), "the column that was given is named"


def test_zero_shares_of_no_gpu_are_pods_without_gpus() -> None:
    frame = pl.DataFrame({"submit_s": [0.0], "cpu_milli": [1], "gpu_milli": [0]})
    assert rows(Workload.from_polars(frame), "num_gpu", "gpu_milli") == [(0, 0)]


def test_requests_for_gpu_models_are_spelled_as_people_do() -> None:
    wanted = ["v100", "A-100", "h100|t4", None, "Made-Up", "T4"]
    frame = pl.DataFrame({"submit_s": range(6), "num_gpu": [1, 1, 1, 0, 1, 1], "gpu_models": wanted})
    models = Workload.from_polars(frame).frame()["gpu_models"].to_list()
    assert [set(row or ()) for row in models] == [
        {"v100", "V100", "V100M16", "V100M32"}, {"A-100", "A100"},
        {"h100", "H100", "H100-80GB", "H100-94GB", "H100-PCIe", "t4", "T4"}, set(), {"Made-Up"}, {"T4"}]  # fmt: skip


@pytest.mark.parametrize(
    "models",
    [
        pa.nulls(2),
        pa.array([None, None], pa.list_(pa.null())),
        pa.array([["T4"], None], pa.large_list_view(pa.string())),
    ],
    ids=str,
)
def test_models_of_any_physical_type(models: pa.Array) -> None:
    table = pa.table({"submit_s": [0.0, 1.0], "num_gpu": [1, 1], "gpu_models": models})
    assert fs.Workload.from_csv(table).table()["gpu_models"].to_pylist() == models.to_pylist()


def test_models_that_are_no_lists_are_one_clear_error() -> None:
    table = pa.table({"submit_s": [0.0], "num_gpu": [1], "gpu_models": [7]})
    with pytest.raises(InputError, match=r"^frame:1: gpu_models: found 7, expected a value of type list"):
        fs.Workload.from_csv(table)


def test_lines_of_json_and_lists_of_rows_are_tables(tmp_path: Path) -> None:
    rows = [{"name": "a", "submit_s": 0.0, "num_gpu": 1}, {"name": "b", "submit_s": 5, "num_gpu": 2, "tags": ["x"]}]
    text = "\n".join(map(json.dumps, rows))
    (tmp_path / "own.jsonl").write_text(text)
    (tmp_path / "own.ndjson.gz").write_bytes(gzip.compress(text.encode()))
    found = [Workload.from_csv(tmp_path / "own.jsonl"), Workload.from_csv(tmp_path / "own.ndjson.gz")]
    found += [Workload.from_text(tmp_path / "own.jsonl"), Workload.from_text(f"csv:{tmp_path}/own.jsonl")]
    assert {one.checksum() for one in found} == {found[0].checksum()} and found[0].rows == 2
    assert Workload.from_polars(rows).frame()["num_gpu"].to_list() == [1, 2]
    (tmp_path / "own.jsonl").write_text(text + "\n{")
    with pytest.raises(InputError, match=r"own\.jsonl: found .*, expected one JSON object a line"):
        Workload.from_csv(tmp_path / "own.jsonl")


def test_own_columns_need_no_word_before_the_file(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("submit_s,num_gpu,duration_s\n0,1,5\n")
    assert Workload.from_text(tmp_path / "own.csv").checksum() == Workload.from_csv(tmp_path / "own.csv").checksum()
    (tmp_path / "own.csv").write_text("start,gpus\n0,1\n")
    with pytest.raises(InputError, match=r"found columns start, gpus, .* csv:.*own\.csv\?map=submit_s=COLUMN,num_gpu="):
        Workload.from_text(tmp_path / "own.csv")


def test_dates_of_any_format(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("start,gpus\n03/15/2024 10:00,1\n3/15/2024 11:30,2\n")
    columns = {"submit_s": "start[%m/%d/%Y %H:%M]", "num_gpu": "gpus"}
    pods = Workload.from_csv(path, columns)
    text = f"csv:{path}?map=submit_s=start[%m/%d/%Y %H:%M],num_gpu=gpus"
    assert pods.frame()["submit_s"].to_list() == Workload.from_text(text).frame()["submit_s"].to_list() == [0.0, 5400.0]
    span = {"submit_s": "0", "duration_s": "start[%m/%d/%Y %H:%M] - start[%m/%d/%Y %H:%M]", "num_gpu": "gpus"}
    assert Workload.from_csv(path, span).frame()["duration_s"].to_list() == [0.0, 0.0]
    for unit, message in (
        ("", r"expected a number; a format in brackets reads other dates: start\[%m/%d/%Y %H:%M\]"),
        ("[iso]", r"expected a date and time such as 2024-03-15 10:00:00; a format in brackets"),
        ("[%d.%m.%Y]", r"expected a date such as %d\.%m\.%Y; a format in brackets"),
        ("[%d.%m.%Y %H]", r"expected a format of dates"),
        ("[wk]", r"expected one of: s, ms, us, ns, min, h, d, iso, hms, or a format such as"),
    ):
        with pytest.raises(InputError, match=message):
            Workload.from_csv(path, {"submit_s": f"start{unit}", "num_gpu": "gpus"})


def test_tables_of_nodes_without_cpus_say_how_to_give_them(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text("num_gpu,gpu_model\n8,T4\n")
    with pytest.raises(InputError, match="map it: cpu_milli=COLUMN, or cpu_milli=96000 for every node"):
        Cluster.from_csv(path)
    cluster = Cluster.from_text(f"csv:{path}?map=cpu_milli=96000,memory_mib=393216")
    assert cluster.nodes.equals(Cluster.from_csv(path, {"cpu_milli": "96000", "memory_mib": "393216"}).nodes)

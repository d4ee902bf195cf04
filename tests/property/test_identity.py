"""A user's ids come back: joined on them, every table of every engine tells about the user's own rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.cli.main import exit_code
from fastsim.errors import InputError
from fastsim.reports.charts.job_charts import completion_hours
from fastsim.workload import Workload, importers, published_traces
from fastsim.workload.pod_rows import PodRows
from fastsim.workload.texts import PUBLISHED
from tests.unit.workload.published_traces.test_published_traces import TEXTS

pytestmark = pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.ColumnIgnored")
"""One table serves all engines, of which some do not look at all of its columns."""
REQUEST = {"cpu_milli": 0, "memory_mib": 0, "gpu_milli": 1000}
SUBMIT_S, NUM_GPU = [0.0, 300.0, 600.0, 900.0], [1, 2, 3, 4]
IDS: dict[str, tuple[list[Any], str]] = {
    "rising": ([0, 1, 2, 3], ""),
    "with gaps": ([10, 20, 31, 45], ""),
    "not rising": ([3, 0, 2, 1], ""),
    "falling, with gaps": ([70, 50, 30, 5], ""),
    "negative": ([-1, 4, -7, 0], ""),
    "large": ([2**62, 2**53 + 1, 2**53, 7], ""),
    "names": (["b", "a", "7", "c d"], ""),
    "twice": ([4, 5, 6, 5], "every id once"),
    "missing": ([4, None, 6, 5], "expected a value|an id in every row|a value"),
}
"""Ids of four rows, in order of arrival; a pattern of the message if they are refused."""
ORDERS = {"by arrival": [0, 1, 2, 3], "out of order": [2, 0, 3, 1]}
"""Orders of the rows."""
ENTRIES: dict[str, Callable[[pl.DataFrame, Path], Any]] = {
    "from_polars": lambda frame, _: Workload.from_polars(frame),
    "from_polars, lazy": lambda frame, _: Workload.from_polars(frame.lazy()),
    "from_polars, mapped": lambda frame, _: Workload.from_polars(frame.rename({"pod_id": "id"}), {"pod_id": "id"}),
    "from_pandas": lambda frame, _: Workload.from_pandas(frame.to_dict(as_series=False)),
    "from_csv": lambda frame, folder: Workload.from_csv(csv(frame, folder)),
    "from_csv, Parquet": lambda frame, folder: Workload.from_csv(parquet(frame, folder)),
    "from_arrow, mapped": lambda frame, _: Workload.from_arrow(frame.to_arrow(), {}),
    "text, CSV": lambda frame, folder: f"csv:{csv(frame, folder)}",
    "written and scanned": lambda frame, folder: scanned(Workload.from_polars(frame), folder),
    "text, written": lambda frame, folder: str(scanned(Workload.from_polars(frame), folder).name),
    "from_arrow": lambda frame, _: Workload.from_arrow(frame),
    "scan": lambda frame, folder: Workload.scan(parquet(frame, folder)),
    "from_parquet": lambda frame, folder: Workload.from_parquet(parquet(frame, folder)),
    "from_text, CSV": lambda frame, folder: Workload.from_text(f"csv:{csv(frame, folder)}"),
    "text, Parquet": lambda frame, folder: str(parquet(frame, folder)),
}  # fmt: skip
"""Ways in for a table of the user's."""
STRICT = ("from_arrow", "scan", "from_parquet", "text, Parquet")
"""Those of canonical tables: rows are in order of arrival, ids are numbers."""
APPLICATION = {"workload": "cifar10", "batch_size": 128}
ENGINES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "pods": ("uniform?nodes=4&gpu=T4&gpus=4", {}, {"policy": "best_fit", "queue": "fifo"}),
    "shares": ("uniform?nodes=4&gpu=T4&gpus=4", {}, {"policy": "max_min_fairness"}),
    "ideal": ("uniform?nodes=4&gpu=T4&gpus=4", {}, {"policy": "max_min_fairness", "ideal": True}),
    "orders": ("uniform?nodes=4&gpu=T4&gpus=4", {}, {"policy": "las"}),
    "adaptive": ("sia:2:0:2", APPLICATION, {"policy": "pollux(generations=10)", "round_s": 300.0}),
    "monitored": ("uniform?nodes=4&gpu=T4&gpus=4", {"gpu_memory_mib": 4000}, {"policy": "monitored"}),
}  # fmt: skip
"""Cluster, further columns and options of a run of each engine."""


def csv(frame: pl.DataFrame, folder: Path) -> Path:
    frame.write_csv(folder / "own.csv")
    return folder / "own.csv"


def parquet(frame: pl.DataFrame, folder: Path) -> Path:
    frame.write_parquet(folder / "own.parquet")
    return folder / "own.parquet"


def scanned(workload: Workload, folder: Path) -> Workload:
    workload.write(folder / "written.parquet")
    return Workload.scan(folder / "written.parquet")


def table(ids: list[Any], order: list[int], engine: str = "pods") -> pl.DataFrame:
    """Rows of a user: the later a pod arrives, the more GPUs it requests and the longer it runs."""
    gpus = [1] * 4 if engine == "monitored" else NUM_GPU
    frame = pl.DataFrame(
        {"pod_id": ids, "submit_s": SUBMIT_S, "num_gpu": gpus, "duration_s": [700.0, 800.0, 900.0, 1000.0]}
    )
    more = {name: pl.lit(value) for name, value in {**REQUEST, **ENGINES[engine][1]}.items()}
    return frame.with_columns(**more)[order]


def own_rows(frame: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Rows of a result joined with the user's on the user's ids; all of them have one."""
    on = "pod_id" if frame["pod_id"].dtype.is_integer() else "native_id"
    joined = found.join(frame, left_on=on, right_on="pod_id", how="left", suffix="_own", maintain_order="left")
    assert joined["submit_s_own" if "submit_s" in found.columns else "submit_s"].null_count() == 0
    assert sorted(set(found[on].to_list())) == sorted(frame["pod_id"].to_list())
    return joined


def check(frame: pl.DataFrame, jobs: pl.DataFrame, placements: pl.DataFrame) -> None:
    own = own_rows(frame, jobs)
    assert len(own) == 4 and own["submit_s"].to_list() == own["submit_s_own"].to_list()
    if not len(placements):  # of the ideal
        return
    held = own_rows(frame, placements)
    first = held.group_by("submit_s").agg(
        pl.col("start_s").min(), pl.col("gpu_ids").list.len().sum(), pl.first("num_gpu")
    )
    assert (first["start_s"] - first["submit_s"]).is_between(0.0, 400.0).all()
    if "profile" not in held.columns and "charged_restarts" not in jobs.columns:
        assert set(held.group_by("pod_id", "attempt").agg(pl.col("gpu_ids").list.len().sum(), pl.first("num_gpu"))
                   .select(pl.col("gpu_ids") == pl.col("num_gpu")).to_series()) == {True}  # fmt: skip


@pytest.mark.spread(40)
@pytest.mark.parametrize("state", IDS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("entry", ENTRIES)
def test_every_way_in_keeps_ids(entry: str, order: str, state: str, tmp_path: Path) -> None:
    ids, refused = IDS[state]
    frame = table(ids, ORDERS[order])
    if entry in STRICT and order == "out of order":
        refused = refused or "rows sorted by submit_s"
        refused += "|rows sorted by submit_s"
    if entry in STRICT and state == "names":
        refused = "a value of type int64"
    cluster, _, options = ENGINES["pods"]
    if refused:
        with pytest.raises(InputError, match=refused):
            fs.simulate(cluster, ENTRIES[entry](frame, tmp_path), **options)
        return
    result = fs.simulate(cluster, ENTRIES[entry](frame, tmp_path), **options)
    check(frame, result.jobs, result.placements)
    own = own_rows(frame, result.jobs)
    assert own["jct_s"].to_list() == own["duration_s"].to_list()


@pytest.mark.spread(9)
@pytest.mark.parametrize("state", ["with gaps", "negative", "names"])
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_tells_about_own_rows(engine: str, state: str, tmp_path: Path) -> None:
    frame = table(IDS[state][0], ORDERS["out of order"], engine)
    cluster, _, options = ENGINES[engine]
    workload = scanned(Workload.from_polars(frame), tmp_path)
    for given in (Workload.from_polars(frame), workload):
        result = fs.simulate(cluster, given, **options)
        check(frame, result.jobs, result.placements)
        folder = result.save(tmp_path / "run", overwrite=True)
        check(frame, *(pl.read_parquet(folder / f"{name}.parquet") for name in ("jobs", "placements")))
    streamed = fs.simulate(cluster, workload, out=tmp_path / "streamed", **options)
    (tmp_path / "written.parquet").unlink()
    check(frame, streamed.jobs, streamed.placements)
    about = streamed.timeline["pod_id"].drop_nulls()
    if frame["pod_id"].dtype.is_integer():
        assert set(about.to_list()) <= set(frame["pod_id"].to_list())


@pytest.mark.parametrize("engine", ENGINES)
def test_jobs_keep_their_names(engine: str, tmp_path: Path) -> None:
    names = ["z", "7", "a", "z"]
    frame = table([30, 10, 40, 20], ORDERS["by arrival"], engine).with_columns(job_id=pl.Series(names))
    cluster, _, options = ENGINES[engine]
    workload = scanned(Workload.from_polars(frame[[2, 0, 3, 1]]), tmp_path)
    assert workload.table()["job_id"].to_pylist() == [1, 2, 0, 1]
    assert workload.table()["native_job_id"].to_pylist() == names
    runs = [fs.simulate(cluster, workload, **options), fs.simulate(cluster, workload, out=tmp_path / "run", **options)]
    if engine == "pods":
        runs.append(fs.simulate(cluster, workload, out=tmp_path / "kept", checkpoint_pods=1, **options))
    jobs = dict(frame.select("pod_id", "job_id").rows())
    for found in (found for run in runs for found in (run.jobs, run.placements)):
        assert [jobs[pod] for pod in found["pod_id"].to_list()] == found["native_job_id"].to_list()
        assert len(found) or engine == "ideal"
    assert runs[0].jobs.schema == runs[1].jobs.schema and runs[0].placements.schema == runs[1].placements.schema
    assert runs[0].jobs["native_id"].null_count() == 4 and "native_job_id" not in runs[0].timeline.columns
    text = tmp_path / "jobs.csv"
    assert exit_code(["export", "table", str(tmp_path / "run"), "jobs", "-o", str(text)]) == 0
    assert dict(pl.read_csv(text).select("pod_id", pl.col("native_job_id").cast(pl.String)).rows()) == jobs


LOADS: dict[str, Callable[[Workload], Workload]] = {
    "ordered": lambda pods: pods.ordered(),
    "shuffled": lambda pods: pods.shuffled(3),
    "tuned": lambda pods: pods.tune(2.0, 10_000, 1),
    "thinned": lambda pods: pods.tune(0.3, 10_000, 1),
    "inflated": lambda pods: pods.inflated(1.6, fs.Cluster.uniform(nodes=20, gpu="T4", gpus=4)),
}  # fmt: skip


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("load", LOADS)
def test_pods_of_a_changed_load_are_known_by_their_ids(load: str, named: bool) -> None:
    names = {"native_id": pl.Series(["d", "c", "b", "a"])} if named else {}
    frame = table([70, -50, 30, 5], ORDERS["by arrival"]).with_columns(**names)
    pods = LOADS[load](Workload.from_polars(frame))
    found = fs.simulate("uniform?nodes=20&gpu=T4&gpus=4", pods).placements.join(frame, on="pod_id")
    assert len(found) == (4 if load != "thinned" else pods.rows)
    assert found["gpu_ids"].list.len().to_list() == found["num_gpu"].to_list()
    clones = pods.table()["pod_id"].to_pylist()[4:]
    assert clones == list(range(71, 71 + len(clones))) and bool(clones) == (load in ("tuned", "inflated"))


def test_readings_tell_of_pods_with_negative_ids() -> None:
    frame = table([-1, 7, -9, 0], ORDERS["by arrival"])
    for policy in ("best_fit", "las"):
        readings = fs.simulate("uniform?nodes=4&gpu=T4&gpus=4", Workload.from_polars(frame), policy, telemetry=300.0)
        assert set(readings.telemetry["pod"].drop_nulls().to_list()) == {"-1", "7", "-9", "0"}


def test_windows_count_arrivals_whatever_the_ids() -> None:
    frame, cluster = table([9, 70, -50, 30], ORDERS["by arrival"]), "uniform?nodes=4&gpu=T4&gpus=4"
    plain = frame.with_columns(pod_id=pl.int_range(4))
    own, usual = (fs.simulate(cluster, Workload.from_polars(one), "max_min_fairness", window="1:3")
                  for one in (frame, plain))  # fmt: skip
    assert own.summary.equals(usual.summary) and completion_hours(own).equals(completion_hours(usual))
    scenario = fs.Scenario(
        cluster=cluster, workload=Workload.from_polars(frame), policy="max_min_fairness", window="1:3"
    )
    assert not own.audit(scenario).differences


def test_explain_takes_an_id_below_zero() -> None:
    pods = Workload.from_polars(table([-1, 7, -9, 0], ORDERS["by arrival"]))
    scenario = fs.Scenario(cluster="uniform?nodes=4&gpu=T4&gpus=4", workload=pods, policy="best_fit")
    assert set(fs.explain(scenario, pods=[-9, "-1"])["pod_id"].to_list()) == {-1, -9}


def test_every_public_maker_is_a_way_in() -> None:
    members = {**vars(PodRows), **vars(Workload)}
    makers = {name for name, value in members.items() if isinstance(value, classmethod)} - {"of"}
    ways = {entry.partition(",")[0] for entry in ENTRIES} & makers
    assert makers == ways | {"from_trace", "synth"} | {f"from_{kind}" for kind in RECORDED if kind not in PUBLISHED}


OPENB = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p-b,1000,1,1,500,,LS,Running,20,30,20
p-a,1000,1,1,500,,LS,Running,10,30,20
"""
PHILLY_JOB = {"status": "Pass", "vc": "v", "submitted_time": "2017-08-01 00:00:10", "jobid": "late", "attempts": [
    {"start_time": "2017-08-01 01:00:00", "end_time": "2017-08-01 02:00:00", "detail": [{"ip": "m", "gpus": ["gpu0"]}]},
]}  # fmt: skip
PHILLY = json.dumps([PHILLY_JOB, PHILLY_JOB | {"submitted_time": "2017-08-01 00:00:00", "jobid": "early"}])
SIA = "name,time,application,num_replicas,batch_size\nb-1,107.0,cifar10,6,2048\na-0,110.5,bert,1,12\n"
POD = {"kind": "Pod", "apiVersion": "v1", "spec": {"containers": [{"name": "c", "image": "i"}]}}
KUBERNETES = json.dumps({"kind": "List", "apiVersion": "v1", "items": [
    POD | {"metadata": {"name": name, "namespace": "n", "creationTimestamp": f"2024-01-01T00:00:0{second}Z"}}
    for name, second in (("b", 5), ("a", 1))
]})  # fmt: skip
RECORDED: dict[str, tuple[str, str, list[str | None]]] = {
    "openb": ("t.csv", OPENB, ["p-a", "p-b"]),
    "gavel": ("t.trace", "", []),  # its lines have no ids
    "sia": ("t.csv", SIA, ["b-1", "a-0"]),
    "synergy": ("t.csv", "7,res18,20,30,1\n3,gnmt,.5,40,16\n", ["3", "7"]),
    "philly": ("t.json", PHILLY, ["early", "late"]),
    "kubernetes": ("t.json", KUBERNETES, ["n/a", "n/b"]),
    "helios": ("t.csv", TEXTS["helios"], ["6", "7"]),
    "acme": ("t.csv", TEXTS["acme"], ["da"]),
    "pai": ("t.csv", TEXTS["pai"], ["0", "1", "1"]),
    "swf": ("t.csv", TEXTS["swf"], ["1", "3"]),
    "slurm": ("t.csv", TEXTS["slurm"], ["7", "9"]),
    "alibaba": ("t.csv", TEXTS["alibaba"], ["10", "10", "11"]),
    "tiresias": ("t.csv", TEXTS["tiresias"], ["0", "1"]),
    "opendc": ("", "", []),  # of a folder: see its own test
}  # fmt: skip
"""Recorded traces: a file, and the names of its pods by arrival."""


def test_every_importer_of_traces_is_listed() -> None:
    folders = (Path(folder.__path__[0]) for folder in (importers, published_traces))
    modules = {path.stem for folder in folders for path in folder.glob("*.py")}
    assert modules - {"__init__", "running_pods"} == RECORDED.keys()


@pytest.mark.parametrize("kind", [kind for kind, (_, text, _) in RECORDED.items() if text])
def test_importers_keep_the_names_of_the_source(kind: str, tmp_path: Path) -> None:
    name, text, expected = RECORDED[kind]
    path = tmp_path / name
    path.write_text(text)
    pods = Workload.from_trace(kind, path) if kind in PUBLISHED else getattr(Workload, f"from_{kind}")(path)
    assert pods.table()["native_id"].to_pylist() == expected
    assert pods.table()["pod_id"].to_pylist() == list(range(len(expected)))

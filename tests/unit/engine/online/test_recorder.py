"""Tables that are written while a run goes on: the same rows as in memory, the same bytes whatever the timing."""

from __future__ import annotations

import errno
import random
import tempfile
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings

import fastsim as fs
from fastsim.engine.online import run as engine
from fastsim.engine.online.closing_stages import Deschedule, Inflation
from fastsim.engine.online.options import OnlineOptions
from fastsim.engine.online.recorder import TABLES, NativeIds
from fastsim.engine.online.run import run_online
from fastsim.engine.result import FRAMES, Result
from fastsim.engine.tables import INTERVAL, OUTCOME, POD, arrow
from fastsim.errors import ResultError
from fastsim.foundation import parquet
from fastsim.foundation.parquet import TableWriter, replacing_folder
from fastsim.policies.deschedule import DESCHEDULERS
from fastsim.workload import Workload
from tests.strategies import Scenario, scenarios, scenarios_per_run

CLUSTER = "openb:40?seed=1"
QUEUED: dict[str, Any] = {"policy": "best_fit", "queue": "fifo-skip", "seed": 2}
KEYS = {"timeline": ["event_seq"], "placements": ["pod_id", "attempt"], "jobs": ["pod_id"]}


@pytest.fixture(scope="module")
def pods() -> Workload:
    """Pods that come, wait and go, with names."""
    table = pl.DataFrame(
        Workload.synth("openb", pods=3_000, seed=4, load=2.0, cluster=fs.Cluster.scaled(nodes=40, seed=1)).table()
    )
    return Workload.from_arrow(table.with_columns(native_id="p" + pl.col("pod_id").cast(pl.String)))


def written(pods: Workload, out: Path, **options: Any) -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fs.simulate(CLUSTER, pods, out=out, **{**QUEUED, **options})


def in_memory(pods: Workload, **options: Any) -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fs.simulate(CLUSTER, pods, **{**QUEUED, **options})


def small_groups(monkeypatch: pytest.MonkeyPatch, rows: int = 500) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP", rows)


def equal(streamed: Result, held: Result) -> None:
    """The same rows of every table, and the same bytes of those that have an order of their own."""
    for name in FRAMES:
        one, two = streamed.frames[name], held.frames[name]
        assert one.schema == two.schema, name
        keys = KEYS.get(name)
        assert (one.sort(keys, maintain_order=True) if keys else one).equals(two), name


def test_rows_on_disk_are_the_rows_in_memory(pods: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_groups(monkeypatch)
    streamed, held = written(pods, tmp_path / "run"), in_memory(pods)
    assert len(held.placements) > 2000 and held.summary["wait_max_s"].item() > 0
    equal(streamed, held)
    assert streamed.provenance == held.provenance
    loaded = Result.load(tmp_path / "run")
    equal(loaded, held)
    assert loaded.cite() == held.cite()
    for name in FRAMES:
        assert streamed.scan(name).collect().equals(streamed.frames[name]), name
        assert held.scan(name).collect().equals(held.frames[name]), name


def test_rows_on_disk_stand_in_the_order_of_leaving(pods: Workload, tmp_path: Path) -> None:
    streamed = written(pods, tmp_path / "run")
    ends = streamed.jobs["end_s"].drop_nulls().to_list()
    assert ends == sorted(ends) and streamed.jobs["pod_id"].to_list() != sorted(streamed.jobs["pod_id"].to_list())
    finished = streamed.placements.filter(pl.col("reason") == "finished")["end_s"].to_list()
    assert finished == sorted(finished)


@settings(max_examples=scenarios_per_run(60), deadline=None)
@given(scenarios(bound=True))
def test_random_runs_are_the_same_on_disk_and_in_memory(scenario: Scenario) -> None:
    s, found = scenario, []
    steps = (Deschedule(DESCHEDULERS["frag_one_pod"](), 0.5),)
    options = {"seed": s.seed, "sample_s": s.sample_s, "until_s": s.until_s, "deschedule": steps,
               "inflation": Inflation(1.5, s.seed)}  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        small_groups(patch, 3)
        for folder in (None, "run"):
            found.append(_run(s, options, folder))
    equal(found[1], found[0])


@settings(max_examples=scenarios_per_run(60), deadline=None)
@given(scenarios(bound=True))
def test_what_is_not_listed_sums_up_to_the_same(scenario: Scenario) -> None:
    s, options = scenario, {"seed": scenario.seed, "sample_s": scenario.sample_s, "until_s": scenario.until_s}
    brief, full = (_run(s, options | {"record": record}, None) for record in ("summary", "all"))
    assert brief.summary.equals(full.summary) and brief.summary.schema == full.summary.schema
    assert brief.stages.equals(full.stages) and not brief.recorded("jobs")


def _run(s: Scenario, options: Any, folder: str | None) -> Result:
    if folder is None:
        return run_online(s.cluster, s.workload, s.plan, s.typical, OnlineOptions(**options))

    with tempfile.TemporaryDirectory() as place:
        result = run_online(s.cluster, s.workload, s.plan, s.typical, OnlineOptions(**options, folder=Path(place)))
        for name in FRAMES:
            assert result.frames[name] is not None  # read while the folder is there
    return result


@pytest.mark.long
@pytest.mark.parametrize(("rows", "breath_s"), [(7, 0.1), (1000, 1e-9)])
def test_bytes_do_not_depend_on_batches_or_breaths(
    pods: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, breath_s: float
) -> None:
    small_groups(monkeypatch)
    few = Workload.from_arrow(pods.table().slice(0, 600))
    written(few, tmp_path / "one")
    monkeypatch.setattr(engine, "CHECK_S", breath_s)
    monkeypatch.setattr(few, "batches", lambda _=0: Workload.batches(few, rows))
    written(few, tmp_path / "two")
    for name in FRAMES:
        one, two = (tmp_path / run / f"{name}.parquet" for run in ("one", "two"))
        assert one.read_bytes() == two.read_bytes(), name


@pytest.mark.parametrize("record", ["none", "summary", "timeline", "placements"])
def test_only_what_is_recorded_is_written(pods: Workload, tmp_path: Path, record: str) -> None:
    few = Workload.from_arrow(pods.table().slice(0, 200))
    streamed, held = written(few, tmp_path / "run", record=record), in_memory(few, record=record)
    equal(streamed, held)
    assert [len(held.frames[name]) > 0 for name in TABLES] == {
        "none": [False] * 3, "summary": [False] * 3, "timeline": [True, False, False],
        "placements": [False, True, True],
    }[record]  # fmt: skip


@pytest.mark.parametrize("method", ["_write", "close"])
def test_a_full_disk_stops_the_run_and_leaves_nothing(
    pods: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    small_groups(monkeypatch)
    monkeypatch.setattr(TableWriter, method, full)
    with pytest.raises(ResultError, match=r"run: cannot be written: No space left on device"):
        written(pods, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
    assert not [thread for thread in threading.enumerate() if thread.name == "fastsim-background"]


def test_ctrl_c_leaves_nothing(pods: Workload, tmp_path: Path) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        written(pods, tmp_path / "run", progress=interrupt)
    assert list(tmp_path.iterdir()) == []
    assert not [thread for thread in threading.enumerate() if thread.name == "fastsim-background"]


def test_a_folder_in_use_is_kept_unless_overwritten(pods: Workload, tmp_path: Path) -> None:
    few = Workload.from_arrow(pods.table().slice(0, 20))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").write_text("keep")
    with pytest.raises(ResultError, match="exists already"):
        written(few, tmp_path / "run")
    with pytest.raises(ResultError, match=r"not of fastsim \(mine.txt\)"):
        written(few, tmp_path / "run", overwrite=True)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["mine.txt"]
    (tmp_path / "run" / "mine.txt").unlink()
    written(few, tmp_path / "run")
    written(few, tmp_path / "run", overwrite=True)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == sorted(
        ["run.json", "workload.parquet", *(f"{name}.parquet" for name in FRAMES)]
    )


def test_a_run_on_disk_is_saved_elsewhere_as_it_is(pods: Workload, tmp_path: Path) -> None:
    few = Workload.from_arrow(pods.table().slice(0, 50))
    written(few, tmp_path / "run").save(tmp_path / "copy")
    for path in (tmp_path / "run").iterdir():
        assert path.read_bytes() == (tmp_path / "copy" / path.name).read_bytes(), path.name


def test_memory_holds_no_more_than_a_row_group(tmp_path: Path) -> None:
    # What a writer holds between two calls is at most one row group, whatever came.
    frame = pl.DataFrame({"x": list(range(1000))})
    table = arrow(frame)
    with pytest.MonkeyPatch.context() as patch, replacing_folder(tmp_path / "out") as folder:
        patch.setattr(parquet, "ROW_GROUP", 300)
        writer = TableWriter(folder / "x.parquet", table.schema)
        for batch in table.to_batches():
            writer.add(batch)
        assert (writer.rows, writer._count) == (900, 100)
        assert writer.close() == 1000


def test_a_known_checksum_is_the_one_that_would_be_found(tmp_path: Path) -> None:
    def made() -> Workload:
        return Workload.from_arrow(Workload.synth("openb", pods=50, seed=3).table())

    pods = made()
    runs = [fs.simulate("openb:20", pods, "fgd") for _ in range(2)]
    runs.append(fs.simulate("openb:20", pods, "fgd", out=tmp_path / "run"))
    assert [run.provenance["workload"]["sha256"] for run in runs] == [made().checksum()] * 3


def rows(*ends: tuple[int, int]) -> Any:
    """Outcome rows from (arrival number, closes)."""
    out = np.zeros(len(ends), OUTCOME)
    for k, (seq, closes) in enumerate(ends):
        out["seq"][k], out["closes"][k] = seq, closes
    return out


def batch(first: int, count: int) -> pa.RecordBatch:
    names = [None if k % 5 == 0 else f"pod-{k}" for k in range(first, first + count)]
    jobs = [f"job-{k // 3}" for k in range(first, first + count)]
    return pa.record_batch({"native_id": pa.array(names, pa.string()), "native_job_id": pa.array(jobs, pa.string())})


def test_without_the_column_there_are_no_names() -> None:
    names = NativeIds([])
    names.add(pa.record_batch({"pod_id": [1]}))
    assert names.of(rows((0, INTERVAL | POD))) is None


@pytest.mark.parametrize("seed", range(4))
def test_names_follow_their_pods_through_any_order(seed: int) -> None:
    names, chance = NativeIds(["native_id", "native_job_id"]), random.Random(seed)
    for first in range(0, 60, 12):
        names.add(batch(first, 12))
    waiting = list(range(60))
    while waiting:
        picked = chance.sample(waiting, min(len(waiting), chance.randint(1, 9)))
        ends = [(k, chance.choice((INTERVAL, INTERVAL | POD, POD))) for k in picked]
        found = names.of(rows(*ends))
        assert found is not None
        assert found["native_id"].to_list() == [None if k % 5 == 0 else f"pod-{k}" for k in picked]
        assert found["native_job_id"].to_list() == [f"job-{k // 3}" for k in picked]
        waiting = [k for k in waiting if not any(seq == k and closes & POD for seq, closes in ends)]
    assert len(names._batches) == 0


def test_memory_follows_the_pods_that_are_left() -> None:
    names = NativeIds(["native_id"])
    for first in range(0, 1000, 100):
        names.add(batch(first, 100))
        names.of(rows(*((k, INTERVAL | POD) for k in range(first, first + 99))))
    assert sum(len(held.names) for held in names._batches) == 10
    last = names.of(rows((99, INTERVAL | POD), (999, INTERVAL)))
    assert last is not None and last.rows() == [("pod-99",), ("pod-999",)]

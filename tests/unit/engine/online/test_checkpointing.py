"""When a checkpoint is due, what it refuses to go on with, and that stopping anywhere changes no byte."""

from __future__ import annotations

import hashlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fastsim as fs
from fastsim.engine.checkpoints.clock import Checkpoints
from fastsim.engine.checkpoints.folder import STATE, working_folder
from fastsim.engine.checkpoints.state import RunState
from fastsim.engine.online.checkpointing import JournalTables, OnlineCheckpointWriter
from fastsim.engine.online.closing_stages import Deschedule, Inflation
from fastsim.engine.online.options import OnlineOptions
from fastsim.engine.online.plan import QUEUES
from fastsim.engine.online.recorder import TABLES, FileTables
from fastsim.engine.online.restored_state import ACCOUNT, DEPARTURE, SLOT
from fastsim.engine.online.run import run_online
from fastsim.engine.result import FRAMES
from fastsim.engine.tables import INTERVAL, OUTCOME, POD, ROW
from fastsim.errors import StoredError
from fastsim.foundation import parquet
from fastsim.policies.deschedule import DESCHEDULERS
from fastsim.workload import Workload
from tests.strategies import OWN_QUEUES, Scenario, ruled, scenarios, scenarios_per_run

NAMES = pl.Series(["node-a", "node-b"])


class Stopped(Exception):
    """The process ends here, as far as the test is concerned."""


def folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def options_of(s: Scenario, **rest: Any) -> OnlineOptions:
    steps = (Deschedule(DESCHEDULERS["frag_one_pod"](), 0.5, 3.0), Deschedule(DESCHEDULERS["frag_one_pod"](), 0.5))
    return OnlineOptions(seed=s.seed, sample_s=s.sample_s, until_s=s.until_s, rules=s.rules,
                         deschedule=() if "gang_size" in s.workload.columns else steps,
                         inflation=Inflation(1.5, s.seed), **rest)  # fmt: skip


def played(s: Scenario, place: Path, work: Path, every: int, taken: RunState | None, writes: int | None) -> bool:
    """Play to the folder ``place``; False if it was stopped after so many checkpoints."""
    writer = OnlineCheckpointWriter(work, Checkpoints(pods=every), {"fields": {}, "objects": []}, taken)
    original, count = writer.write, [0]

    def write(*args: Any) -> None:
        original(*args)
        count[0] += 1
        if count[0] == writes:
            raise Stopped

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "write", write)
        try:
            run_online(s.cluster, s.workload, s.plan, s.typical, options_of(s, folder=place), writer)
        except Stopped:
            return False
    return True


@settings(max_examples=scenarios_per_run(60), deadline=None)
@given(scenarios(bound=True), st.integers(1, 4), st.lists(st.integers(1, 3), max_size=3))
def test_a_run_stopped_at_checkpoints_writes_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, s: Scenario, every: int, stops: list[int]
) -> None:
    same_bytes(tmp_path_factory, s, every, stops)


@pytest.mark.spread(4)
@pytest.mark.parametrize("queue", [*QUEUES, *OWN_QUEUES[:3]])
@settings(max_examples=scenarios_per_run(6), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), every=st.integers(1, 9), stops=st.lists(st.integers(1, 4), min_size=1, max_size=2))
def test_a_run_with_rules_stopped_at_checkpoints_writes_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, queue: str, data: st.DataObject, every: int, stops: list[int]
) -> None:
    crowded = queue != "drop" and data.draw(st.booleans())
    same_bytes(tmp_path_factory, data.draw(ruled(bound=True, queues=(queue,), crowded=crowded)), every, stops)


def same_bytes(tmp_path_factory: pytest.TempPathFactory, s: Scenario, every: int, stops: list[int]) -> None:
    """Stopped after so many checkpoints each time and taken up again, the run ends as one that nothing stopped."""
    base = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "ROW_GROUP", 3)
        run_online(s.cluster, s.workload, s.plan, s.typical, options_of(s, folder=folder(base / "plain")))
        work, taken = folder(base / "work"), None
        for number, writes in enumerate([*stops, None]):
            place = folder(base / str(number))
            if played(s, place, work, every, taken, writes):
                break
            taken = RunState.read(work / STATE)
    for name in FRAMES:
        assert (place / f"{name}.parquet").read_bytes() == (base / "plain" / f"{name}.parquet").read_bytes(), name


def test_checkpoints_are_due_after_pods_after_seconds_and_never_without_events(monkeypatch: pytest.MonkeyPatch) -> None:
    class Online:
        arrived = events = 0

    class Run:
        online, pods = Online(), 0

    run: Any = Run()
    clock = [100.0]
    monkeypatch.setattr("fastsim.engine.checkpoints.clock.time.monotonic", lambda: clock[0])

    def due(writer: OnlineCheckpointWriter, arrived: int, read: int | None = None) -> bool:
        run.online.arrived = run.online.events = arrived
        run.pods = arrived if read is None else read
        return writer.due(run)

    by_pods = OnlineCheckpointWriter(Path(), Checkpoints(pods=10), {})
    assert [due(by_pods, n) for n in (9, 10, 10, 19, 20)] == [False, True, False, False, True]
    assert not due(by_pods, 35, read=40)  # some pods that were read have not arrived
    by_time = OnlineCheckpointWriter(Path(), Checkpoints(wall_s=5.0), {})
    assert not due(by_time, 1)
    clock[0] += 5.0
    assert due(by_time, 1)
    clock[0] += 5.0
    assert not due(by_time, 1) and due(by_time, 2)


@pytest.fixture
def stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run that was interrupted after its second checkpoint."""
    pods = Workload.synth("openb", pods=300, seed=4, arrivals="order", durations="forever")
    pods.write(tmp_path / "pods.parquet")
    reported: list[int] = []

    def interrupt(arrived: int) -> None:
        reported.append(arrived)
        if arrived >= 250:
            raise KeyboardInterrupt

    with warnings.catch_warnings(), pytest.raises(KeyboardInterrupt):
        warnings.simplefilter("ignore")
        fs.simulate("openb:9", str(tmp_path / "pods.parquet"), "best_fit", queue="fifo", out=tmp_path / "run",
                    checkpoint_pods=100, progress=interrupt)  # fmt: skip
    assert [path.name for path in tmp_path.iterdir() if path.name != "pods.parquet"] == ["run.checkpoint"]
    return tmp_path / "run"


def rewritten(out: Path, **meta: Any) -> None:
    state = RunState.read(working_folder(out) / STATE)
    state.having(**meta).write(working_folder(out) / STATE)


@pytest.mark.parametrize(("name", "value"), [
    ("gpu_left", -1), ("gpu_left", 1001), ("gpu_left", 2**31 - 1), ("cpu_left", -1), ("cpu_left", 2**62),
    ("mem_left", -1), ("pods", -1), ("mig_used", 1), ("tags", -1), ("tags", 2**31 - 1), ("present", 2),
    ("in_system", -1), ("in_system", 2**62), ("cpu_left", 7), ("pods", 1000),
])  # fmt: skip
def test_changed_values_of_a_checkpoint_are_refused_by_name(stopped: Path, name: str, value: int) -> None:
    folder = working_folder(stopped)
    state = RunState.read(folder / STATE)
    changed = state.arrays[name].copy()
    changed.flat[0] = value
    RunState("pods", state.meta, state.arrays | {name: changed}).write(folder / STATE)
    with pytest.raises(StoredError, match=rf"found .*{name}.*expected the checkpoint of a run"):
        fs.resume(stopped)


@pytest.mark.parametrize(("field", "value", "message"), [
    ("cls", 1 << 20, r"slots\.cls"), ("node", 9, r"slots\.node"), ("gpus", 1 << 63, "gpus"),
    ("submit", float("nan"), r"slots\.submit"), ("start", 1e299, r"slots\.start"), ("after", 1 << 20, r"slots\.after"),
    ("seq", -1, "."), ("duration", -1.0, r"slots\.duration"), ("attempt", -1, r"slots\.attempt"),
])  # fmt: skip
def test_changed_pods_of_a_checkpoint_are_refused_by_name(
    stopped: Path, field: str, value: float, message: str
) -> None:
    folder = working_folder(stopped)
    state = RunState.read(folder / STATE)
    slots = state.arrays["slots"].copy()
    count = len(slots) // (SLOT.itemsize + ACCOUNT.itemsize)
    rows = slots[: count * SLOT.itemsize].view(SLOT)
    rows[field][rows["node"] >= 0] = value
    RunState("pods", state.meta, state.arrays | {"slots": slots}).write(folder / STATE)
    with pytest.raises(StoredError, match=rf"found .*{message}.*expected the checkpoint of a run"):
        fs.resume(stopped)


def test_a_departure_at_another_time_than_the_end_of_the_work_is_refused(tmp_path: Path) -> None:
    Workload.synth("openb", pods=60, seed=1, arrivals="order").write(tmp_path / "pods.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fs.simulate("openb:20", str(tmp_path / "pods.parquet"), "best_fit", queue="fifo", out=tmp_path / "run",
                    checkpoint_pods=50, keep_checkpoint=True)  # fmt: skip
    folder = working_folder(tmp_path / "run")
    state = RunState.read(folder / STATE)
    departures = state.arrays["departures"].copy()
    departures.view(DEPARTURE)["t"][-1] += 1e9
    RunState("pods", state.meta, state.arrays | {"departures": departures}).write(folder / STATE)
    with pytest.raises(StoredError, match=r"departures\.t"):
        fs.resume(tmp_path / "run", overwrite=True)


def test_other_pods_are_refused(stopped: Path) -> None:
    Workload.synth("openb", pods=300, seed=5, arrivals="order", durations="forever").write(
        stopped.with_name("pods.parquet")
    )
    with pytest.raises(fs.ScenarioError, match=r"run.checkpoint: typical_pods: found .*, expected .*, as before"):
        fs.resume(stopped)
    decided = RunState.read(working_folder(stopped) / STATE).meta["decided"]
    typical = fs.TypicalPods.of(Workload.scan(stopped.with_name("pods.parquet")))
    rewritten(stopped, decided=decided | {"typical_pods": hashlib.sha256(repr(typical).encode()).hexdigest()})
    with pytest.raises(fs.InputError, match=r"pods.parquet: found other pods, expected those that had arrived"):
        fs.resume(stopped)
    assert working_folder(stopped).exists() and not stopped.exists()


def test_fewer_pods_are_refused(stopped: Path) -> None:
    path = stopped.with_name("pods.parquet")
    few = Workload.from_arrow(Workload.scan(path).table().slice(0, 60))
    few.write(path)
    decided = RunState.read(working_folder(stopped) / STATE).meta["decided"]
    typical = hashlib.sha256(repr(fs.TypicalPods.of(few)).encode()).hexdigest()
    rewritten(stopped, decided=decided | {"typical_pods": typical})
    with pytest.raises(fs.InputError, match=r"found 60 pods, expected at least \d00,"):
        fs.resume(stopped)


@pytest.mark.parametrize(("field", "value"), [("cluster", "openb:9?seed=3"), ("policy", "pwr"), ("seed", 9),
                                              ("cluster", "openb:8")])  # fmt: skip
def test_another_scenario_is_refused(stopped: Path, field: str, value: Any) -> None:
    state = RunState.read(working_folder(stopped) / STATE)
    stored = state.note["scenario"]
    changed = stored | {"fields": stored["fields"] | {field: value}}
    state.noted(scenario=changed).write(working_folder(stopped) / STATE)
    with pytest.raises(fs.ScenarioError, match=r"run.checkpoint: (cluster|plan|seed): found"):
        fs.resume(stopped)


def test_a_checkpoint_follows_the_pods_in_the_system(tmp_path: Path) -> None:
    pods = Workload.synth("openb", pods=4000, seed=4, rate_per_hour=3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fs.simulate("openb:40", pods, "best_fit", out=tmp_path / "run", checkpoint_pods=3000, keep_checkpoint=True)
    state = RunState.read(tmp_path / "run.checkpoint" / STATE)
    assert state.arrived == 3000 and len(state.arrays["in_system"]) < 300
    assert (tmp_path / "run.checkpoint" / "state.npz").stat().st_size < 100_000
    assert np.isin(state.arrays["in_system"], np.arange(3000)).all()


def test_instances_in_use_are_there_again_after_a_stop(tmp_path: Path) -> None:
    cluster = fs.Cluster.uniform(nodes=1, gpu="A100", gpus=1, mig="3g.40gb+2g.20gb+2g.20gb")
    request = {"cpu_milli": 1000, "memory_mib": 10, "num_gpu": 0, "gpu_milli": 0}
    rows = [request | {"pod_id": k, "submit_s": float(k), "duration_s": 9.0, "mig": "2g.20gb"} for k in range(6)]
    workload = Workload.from_arrow(pl.DataFrame(rows))
    whole = fs.simulate(cluster, workload, "best_fit", out=tmp_path / "whole")
    fs.simulate(cluster, workload, "best_fit", out=tmp_path / "kept", checkpoint_pods=2, keep_checkpoint=True)
    other = fs.fork(tmp_path / "kept", tmp_path / "other", at_s=5.5, cluster=cluster, workload=workload)
    assert other.timeline.equals(whole.timeline)
    assert other.timeline["gpu_milli_alloc"].max() == 570


def outcomes(first: int, count: int) -> Any:
    out = np.zeros(count, OUTCOME)
    out["seq"] = out["pod_id"] = np.arange(first, first + count)
    out["node"], out["reason"] = np.arange(first, first + count) % 3 - 1, np.arange(first, first + count) % 5
    out["closes"], out["gpus"], out["end"] = INTERVAL | POD, out["seq"] % 4, out["seq"] * 1.5
    return out


def timeline(first: int, count: int) -> Any:
    rows = np.zeros(count, ROW)
    rows["t"], rows["seq"], rows["kind"] = np.arange(first, first + count) * 0.1, np.arange(first, first + count), 5
    return rows


def written(tables: Any, first: int, count: int) -> None:
    names = pl.Series("native_id", [None if k % 4 else f"p{k}" for k in range(first, first + count)], dtype=pl.String)
    tables.outcomes(outcomes(first, count), names.to_frame())
    tables.events(timeline(first, count), 7)


def journal_folder(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.parametrize("cuts", [[], [0], [7], [7, 7], [3, 40, 41], [60]])
def test_a_journal_that_was_cut_and_continued_is_the_same_parquet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuts: list[int]
) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP", 16)
    at_once = FileTables(NAMES, journal_folder(tmp_path / "plain"))
    written(at_once, 0, 60)
    at_once.close()
    work, out = journal_folder(tmp_path / "work"), journal_folder(tmp_path / "out")
    kept, begin = None, 0
    for cut in cuts:
        journal = JournalTables(NAMES, out, work, kept)
        if cut > begin:
            written(journal, begin, cut - begin)
        kept, begin = journal.durable(), cut
        written(journal, 900, 5)  # lost: the process ends after the checkpoint
        journal.drop()
    journal = JournalTables(NAMES, out, work, kept)
    if begin < 60:
        written(journal, begin, 60 - begin)
    journal.close()
    for name in TABLES:
        one, two = (tmp_path / place / f"{name}.parquet" for place in ("plain", "out"))
        assert one.read_bytes() == two.read_bytes(), name


def test_segments_of_a_start_that_counts_for_nothing_are_removed(tmp_path: Path) -> None:
    work = journal_folder(tmp_path / "work")
    journal = JournalTables(NAMES, tmp_path, work)
    written(journal, 0, 5)
    journal.drop()
    assert len(list(work.iterdir())) == 3
    JournalTables(NAMES, tmp_path, work)
    assert list(work.iterdir()) == []


def test_a_checkpoint_before_the_first_pod_has_left_can_be_continued(tmp_path: Path) -> None:
    work, out = journal_folder(tmp_path / "work"), journal_folder(tmp_path / "out")
    moved = outcomes(0, 3)
    moved["closes"] = INTERVAL  # rows of placements, none of jobs
    first = JournalTables(NAMES, out, work)
    first.outcomes(moved, None)
    kept = first.durable()
    first.drop()
    second = JournalTables(NAMES, out, work, kept)
    written(second, 3, 2)
    second.close()
    assert [len(pl.read_parquet(out / f"{name}.parquet")) for name in TABLES] == [2, 5, 2]

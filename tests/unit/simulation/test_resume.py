"""Killed at any moment and resumed, a run writes the same bytes; a fork shares its past."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import fastsim as fs
from fastsim.engine.checkpoints.folder import STATE, working_folder
from fastsim.engine.result import FRAMES
from fastsim.errors import PolicyError, ResultError, ScenarioError
from fastsim.foundation.folder_lock import held
from fastsim.workload import Workload

SCRIPT = """
import sys, warnings
import fastsim as fs
from fastsim.engine.online import run as engine, checkpointing as saving
from fastsim.foundation import parquet as tabular

warnings.simplefilter("ignore")
tabular.ROW_GROUP, saving.BATCH_ROWS, engine.CHECK_S = 300, 50, 0.001
if sys.argv[1] == "run":
    fs.simulate("openb:15", "pods.parquet", "fgd", queue="fifo-skip", out="run", checkpoint_s=0.0)
else:
    fs.resume("run")
"""
KILLS = 3
JOBS = "synth:gavel?jobs=60&rate_per_hour=6&seed=1"
CLUSTER = "gavel:2:2:2"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pods that come, wait and go, and a run of them that nothing stopped."""
    folder = tmp_path_factory.mktemp("runs")
    cluster = fs.Cluster.scaled(nodes=15)
    table = Workload.synth("openb", pods=1500, seed=4, load=1.5, cluster=cluster).table()
    named = table.append_column("native_id", [[f"p{k}" for k in range(1500)]])
    Workload.from_arrow(named).write(folder / "pods.parquet")
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setattr("fastsim.foundation.parquet.ROW_GROUP", 300)
        fs.simulate("openb:15", str(folder / "pods.parquet"), "fgd", queue="fifo-skip", out=folder / "plain")
    return folder


def started(place: Path, verb: str) -> subprocess.Popen[bytes]:
    """The script in a process of its own."""
    (place / "script.py").write_text(SCRIPT)
    folders = [str(Path(fs.__file__).parent.parent), *filter(None, sys.path)]
    paths = os.pathsep.join(str(Path(path).resolve()) for path in folders)
    return subprocess.Popen([sys.executable, "script.py", verb], cwd=place, env=os.environ | {"PYTHONPATH": paths})


@pytest.mark.long
def test_a_run_killed_again_and_again_writes_the_same_bytes(place: Path) -> None:
    work = working_folder(place / "run")
    verb, killed = "run", 0
    for attempt in range(60):
        process = started(place, verb)
        try:
            before = _stamp(work)
            while process.poll() is None:
                if killed < KILLS and _stamp(work) > before:
                    time.sleep(0.013 * (attempt % 5))  # some way into what follows a checkpoint
                    process.send_signal(signal.SIGKILL)
                    break
                time.sleep(0.002)
            code = process.wait()
        finally:
            process.kill()
        if code == 0:
            break
        assert code == -signal.SIGKILL
        killed, verb = killed + 1, "resume"
        assert not (place / "run").exists()
    assert code == 0 and killed >= 3
    for name in FRAMES:
        one, two = (place / run / f"{name}.parquet" for run in ("plain", "run"))
        assert one.read_bytes() == two.read_bytes(), name
    left = {path.name for path in place.iterdir()}
    assert left == {"pods.parquet", "plain", "run", "script.py"}


def _stamp(work: Path) -> int:
    try:
        return (work / STATE).stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def simulated(out: Path, cluster: str = "openb:30", **options: Any) -> fs.Result:
    """A run of 300 pods that stay for ever."""
    pods = out.with_name("pods.parquet")
    Workload.synth("openb", pods=300, seed=4, arrivals="order", durations="forever").write(pods)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fs.simulate(cluster, str(pods), "best_fit", out=out, **options)


KEPT: dict[str, Any] = {"checkpoint_pods": 150, "keep_checkpoint": True, "until_s": 250.0}
"""The checkpoint after 150 pods stays: no later one is due before the end."""


@pytest.mark.filterwarnings("ignore::fastsim.simulation.simulate.RunWarning")
def test_a_fork_shares_the_past_and_then_differs(tmp_path: Path) -> None:
    base = simulated(tmp_path / "base", **KEPT)
    state = (tmp_path / "base.checkpoint" / STATE).read_bytes()
    other = fs.fork(tmp_path / "base", tmp_path / "other", policy="0.5*fgd + 0.5*pwr", queue="fifo", seed=8)
    again = fs.fork(tmp_path / "base.checkpoint", tmp_path / "same")
    assert (tmp_path / "base.checkpoint" / STATE).read_bytes() == state
    assert not working_folder(tmp_path / "other").exists()
    assert again.placements.equals(base.placements) and again.summary.equals(base.summary)
    one, two = (run.placements.sort("pod_id").select("pod_id", "node_id", "gpu_ids") for run in (base, other))
    early = pl.col("pod_id") < 150
    assert one.filter(early).equals(two.filter(early)) and not one.equals(two)
    assert other.provenance["policy"] == "0.5*fgd + 0.5*pwr" and "scenario" not in other.provenance
    past = other.provenance["forked_from"]
    assert (past["scenario"]["policy"], past["pods"], past["at_s"]) == ("best_fit", 150, 149.0)
    assert other.provenance["plan"]["queue"] == "fifo" and other.provenance["options"]["seed"] == 8
    assert len(other.jobs) == len(base.jobs)


@pytest.mark.filterwarnings("ignore::fastsim.simulation.simulate.RunWarning")
def test_a_fork_that_is_interrupted_goes_on_as_a_fork(tmp_path: Path) -> None:
    simulated(tmp_path / "base", **KEPT)
    whole = fs.fork(tmp_path / "base", tmp_path / "whole", policy="pwr")

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fs.fork(tmp_path / "base", tmp_path / "other", policy="pwr", progress=interrupt)
    resumed = fs.resume(tmp_path / "other")
    assert resumed.placements.equals(whole.placements) and resumed.provenance == whole.provenance


def waiting(out: Path, **options: Any) -> fs.Result:
    """A run of 600 pods that come, wait and go on few nodes, with samples and an eviction on the way."""
    pods = out.with_name("pods.parquet")
    cluster = fs.Cluster.scaled(nodes=9)
    Workload.synth("openb", pods=600, seed=4, load=1.5, cluster=cluster).write(pods)
    given = {"queue": "fifo-skip", "sample_s": 200.0, "deschedule": ("frag_one_pod:0.1@10000",), **options}
    return fs.simulate("openb:9", str(pods), "best_fit", out=out, **given)


@pytest.mark.spread(2)
@pytest.mark.filterwarnings("ignore::fastsim.simulation.simulate.RunWarning")
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 1000.0])
def test_a_fork_at_any_time_shares_the_past_until_then(tmp_path: Path, share: float) -> None:
    base = waiting(tmp_path / "base", checkpoint_pods=400, keep_checkpoint=True)
    at_s = share * float(np.max(base.jobs["submit_s"].to_numpy()))
    left = sorted((path.name, path.read_bytes()) for path in (tmp_path / "base.checkpoint").iterdir())
    same = fs.fork(tmp_path / "base", tmp_path / "same", at_s=at_s)
    other = fs.fork(tmp_path / "base", tmp_path / "other", at_s=at_s, policy="random", queue="fifo")
    assert sorted((path.name, path.read_bytes()) for path in (tmp_path / "base.checkpoint").iterdir()) == left
    assert all(same.frames[name].equals(base.frames[name]) for name in FRAMES)
    past = pl.col("t_s") <= at_s
    assert other.timeline.filter(past).equals(base.timeline.filter(past)) and base.timeline.filter(past).height > 1
    started = pl.col("start_s") <= at_s
    early = [run.placements.filter(started).select("pod_id", "start_s", "node_id", "gpu_ids") for run in (base, other)]
    assert early[0].sort("pod_id", "start_s").equals(early[1].sort("pod_id", "start_s"))
    assert other.placements.equals(base.placements) == (share > 1)
    assert other.provenance["forked_from"]["at_s"] == at_s
    assert not list(tmp_path.glob(".*")) and not working_folder(tmp_path / "other").exists()


@pytest.mark.filterwarnings("ignore::fastsim.simulation.simulate.RunWarning")
@pytest.mark.parametrize("queue", ["ftf", "las_skip", "-column(submit_s), -column(num_gpu)_skip"])
def test_an_order_goes_on_as_if_it_had_never_stopped(tmp_path: Path, queue: str) -> None:
    rules = {"failures": "mtbf=20000,mttr=2000", "on_node_loss": "requeue", "checkpoint_every_s": 100.0}
    base = waiting(tmp_path / "base", queue=queue, checkpoint_pods=400, keep_checkpoint=True, **rules)
    same = fs.fork(tmp_path / "base", tmp_path / "same")
    assert all(same.frames[name].equals(base.frames[name]) for name in FRAMES)
    assert (base.jobs["attempts"] > 1).any()


@pytest.mark.filterwarnings("ignore::fastsim.simulation.simulate.RunWarning")
def test_times_that_no_fork_can_begin_at(tmp_path: Path) -> None:
    waiting(tmp_path / "base", checkpoint_pods=400, keep_checkpoint=True)
    for at_s in (float("nan"), float("inf"), "5 m", True):
        with pytest.raises(fs.ScenarioError, match=r"fork: at_s: found .*, expected seconds of simulated time"):
            fs.fork(tmp_path / "base", tmp_path / "other", at_s=at_s)
    with pytest.raises(fs.ScenarioError, match=r"fork: out: found .*, expected another folder"):
        fs.fork(tmp_path / "base", tmp_path / "base", overwrite=True)

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # while the past is played, there is nothing to go on from
        fs.fork(tmp_path / "base", tmp_path / "other", at_s=1.0, policy="pwr", progress=interrupt)
    assert {path.name for path in tmp_path.iterdir()} == {"base", "base.checkpoint", "pods.parquet"}
    with pytest.raises(KeyboardInterrupt):
        fs.fork(tmp_path / "base", tmp_path / "other", policy="pwr", progress=interrupt)
    with pytest.raises(fs.ScenarioError, match="the past of another run"):  # that fork has a past before its own
        fs.fork(tmp_path / "other", tmp_path / "third", at_s=1.0)


@pytest.mark.filterwarnings("ignore::fastsim.simulation.simulate.RunWarning")
def test_a_run_that_is_at_work_is_left_alone(tmp_path: Path) -> None:
    simulated(tmp_path / "run", **KEPT)
    shutil.rmtree(tmp_path / "run")
    before = {path: path.read_bytes() for path in (tmp_path / "run.checkpoint").iterdir()}
    text = r"run: found process \d+ at work on it, expected a folder that no other run writes to"
    with held(tmp_path / "run", False):
        with pytest.raises(fs.ResultError, match=text):
            fs.resume(tmp_path / "run", overwrite=True)
        with pytest.raises(fs.ResultError, match=text):
            fs.resume(tmp_path / "run.checkpoint")
        with pytest.raises(fs.ResultError, match=text):
            simulated(tmp_path / "run", overwrite=True)
        with pytest.raises(fs.ResultError, match=text):
            simulated(tmp_path / "run", overwrite=True, checkpoint_pods=9)
        with pytest.raises(fs.ResultError, match=text):
            fs.fork(tmp_path / "run", tmp_path / "other").save(tmp_path / "run")
    assert {path: path.read_bytes() for path in (tmp_path / "run.checkpoint").iterdir()} == before
    fs.resume(tmp_path / "run")


@pytest.mark.filterwarnings("ignore::fastsim.simulation.simulate.RunWarning")
def test_a_journal_that_lost_its_end_is_one_clear_error(tmp_path: Path) -> None:
    simulated(tmp_path / "run", **KEPT)
    shutil.rmtree(tmp_path / "run")
    (journal,) = (tmp_path / "run.checkpoint").glob("timeline.*")
    journal.write_bytes(journal.read_bytes()[:9])
    text = r"timeline\.0\.arrows: found 9 bytes, expected at least \d+ bytes"
    with pytest.raises(fs.ResultError, match=text):
        fs.resume(tmp_path / "run")
    with pytest.raises(fs.ResultError, match=text):
        fs.fork(tmp_path / "run", tmp_path / "other")
    assert {path.name for path in tmp_path.iterdir()} == {"pods.parquet", "run.checkpoint"}


@pytest.mark.filterwarnings("ignore::fastsim.simulation.simulate.RunWarning")
def test_swapped_waits_are_refused(place: Path, tmp_path: Path) -> None:
    fs.simulate("openb:15", str(place / "pods.parquet"), "fgd", queue="fifo-skip", out=tmp_path / "run",
                checkpoint_pods=700, keep_checkpoint=True)  # fmt: skip
    shutil.rmtree(tmp_path / "run")
    wait, jct = (tmp_path / "run.checkpoint" / f"{name}.f8" for name in ("wait", "jct"))
    contents = wait.read_bytes(), jct.read_bytes()
    assert contents[0] != contents[1]
    longest = max(map(len, contents))
    for path, content in zip((wait, jct), reversed(contents), strict=True):
        path.write_bytes(content.ljust(longest, bytes(1)))
    text = r"\.f8: found other bytes than were written, expected those of the checkpoint"
    with pytest.raises(fs.ResultError, match=text):
        fs.resume(tmp_path / "run")
    with pytest.raises(fs.ResultError, match=text):
        fs.fork(tmp_path / "run", tmp_path / "other")
    assert {path.name for path in tmp_path.iterdir()} == {"run.checkpoint"}


@pytest.mark.spread(3)
@pytest.mark.filterwarnings("ignore::fastsim.simulation.simulate.RunWarning")
@pytest.mark.parametrize(
    "rules", [{"queue": "easy"}, {"queue": "conservative"}, {"queue": "drf"}, {"queue": "srtf"}, {"queue": "ftf_skip"},
              {"queue": "edf"}, {"queue": "-column(value), column(priority)_skip"},
              {"preempt": "priority", "restart_s": 5.0},
              {"quotas": "a:gpu_milli=30000"}],
)  # fmt: skip
def test_rules_begin_with_a_fork(tmp_path: Path, rules: dict[str, Any]) -> None:
    # No pod waits until the 60th, so the rules could as well have held from the begin.
    table = Workload.synth("openb", pods=300, seed=4, load=4.0, cluster=fs.Cluster.scaled(nodes=15)).table()
    columns = {"priority": [k % 3 for k in range(300)], "tenant": ["ab"[k % 2] for k in range(300)],
               "deadline_s": [1e6 - 7919 * k % 401 if k % 5 else None for k in range(300)],
               "native_value": [str(7919 * k % 401) if k % 5 else None for k in range(300)]}  # fmt: skip
    for name, values in columns.items():
        table = table.append_column(name, [values])
    Workload.from_arrow(table).write(tmp_path / "pods.parquet")
    given: dict[str, Any] = {"cluster": "openb:15", "workload": str(tmp_path / "pods.parquet"), "policy": "best_fit"}
    plain = fs.simulate(**given, queue="fifo", out=tmp_path / "base", checkpoint_pods=60, keep_checkpoint=True,
                        until_s=float(table["submit_s"][100].as_py()))  # fmt: skip
    forked = fs.fork(tmp_path / "base", tmp_path / "other", until_s=None, **rules)
    whole = fs.simulate(**(given | {"queue": "fifo"} | rules), out=tmp_path / "whole")
    assert (plain.jobs["start_s"] - plain.jobs["submit_s"]).head(60).max() == 0
    for name in ("placements", "jobs", "timeline"):
        assert getattr(forked, name).equals(getattr(whole, name)), name
    assert not whole.jobs.equals(fs.simulate(**given, queue="fifo", out=tmp_path / "fifo").jobs)


@pytest.mark.filterwarnings("ignore::fastsim.simulation.simulate.RunWarning")
def test_failures_and_their_seed_belong_to_the_past(tmp_path: Path) -> None:
    simulated(tmp_path / "base", "openb:9", queue="fifo", failures="mtbf=900,mttr=30", **KEPT)
    with pytest.raises(fs.ScenarioError, match=r"base.checkpoint|other.checkpoint: seed: found 3"):
        fs.fork(tmp_path / "base", tmp_path / "other", seed=3)
    with pytest.raises(fs.ScenarioError, match="fork: failures: found a change of the past"):
        fs.fork(tmp_path / "base", tmp_path / "other", failures="")


def test_what_decided_the_past_cannot_change(tmp_path: Path) -> None:
    simulated(tmp_path / "base", "openb:9", queue="fifo", **KEPT)
    with pytest.raises(fs.ScenarioError, match="fork: cluster: found a change of the past"):
        fs.fork(tmp_path / "base", tmp_path / "other", cluster="openb:31")
    with pytest.raises(fs.ScenarioError, match="waiting pods, expected a queue"):
        fs.fork(tmp_path / "base", tmp_path / "other", queue="drop")
    assert not working_folder(tmp_path / "other").exists() and not (tmp_path / "other").exists()


@pytest.mark.filterwarnings("ignore::fastsim.simulation.simulate.RunWarning")
def test_objects_in_memory_are_asked_for_again(tmp_path: Path) -> None:
    pods = Workload.synth("openb", pods=200, seed=4, arrivals="order", durations="forever")
    cluster = fs.Cluster.scaled(nodes=30)
    plain = fs.simulate(cluster, pods, "best_fit")
    (tmp_path / "kept").mkdir()
    fs.simulate(cluster, pods, "best_fit", out=tmp_path / "run", checkpoint_pods=90, keep_checkpoint=True)
    (tmp_path / "run").rename(tmp_path / "kept" / "run")
    with pytest.raises(fs.ResultError, match=r"cluster, workload was an object in memory; give it again"):
        fs.resume(tmp_path / "run")
    with pytest.raises(fs.ScenarioError, match="seed: found a new value"):
        fs.resume(tmp_path / "run", cluster=cluster, workload=pods, seed=3)
    resumed = fs.resume(tmp_path / "run", cluster=cluster, workload=pods)
    assert resumed.jobs.sort("pod_id").equals(plain.jobs)


def test_there_must_be_something_to_go_on_from(tmp_path: Path) -> None:
    with pytest.raises(fs.ResultError, match=r"state\.npz: found no such file, expected the checkpoint"):
        fs.resume(tmp_path / "run")
    with pytest.raises(fs.ScenarioError, match="checkpoint: found a run without a folder"):
        fs.simulate("openb:30", "synth:openb?pods=3", checkpoint_s=1.0)
    with pytest.raises(fs.ScenarioError, match="checkpoint_pods: found 0"):
        simulated(tmp_path / "x", checkpoint_pods=0)
    assert {path.name for path in tmp_path.iterdir()} == {"pods.parquet"}


def simulated_rounds(out: Path, policy: str = "fifo", **options: Any) -> fs.Result:
    return fs.simulate(CLUSTER, options.pop("workload", JOBS), policy, out=out, **options)


def contents(out: Path) -> dict[str, bytes]:
    """The tables of a run as bytes, and its record without the time it took."""
    record = json.loads((out / "run.json").read_text())
    assert record.pop("timing")["wall_s"] > 0
    tables = {name: (out / f"{name}.parquet").read_bytes() for name in FRAMES}
    return tables | {"record": json.dumps(record, sort_keys=True).encode()}


class Stop:
    """Interrupts a run once so many checkpoints were seen."""

    def __init__(self, out: Path, checkpoints: int) -> None:
        self.state, self.left, self.seen = working_folder(out) / STATE, checkpoints, 0

    def __call__(self, _: int) -> None:
        """Look, and interrupt."""
        stamp = self.state.stat().st_mtime_ns if self.state.exists() else 0
        if stamp != self.seen:
            self.seen, self.left = stamp, self.left - 1
        if self.left <= 0:
            raise KeyboardInterrupt


@pytest.mark.spread(3)
@pytest.mark.parametrize(
    ("policy", "options"),
    [
        ("fifo", {}),
        ("gandiva", {}),
        ("allox", {"window": "5:30", "workload": "synth:gavel?jobs=30&rate_per_hour=0.3"}),
        ("finish_time_fairness(mode=perf)", {"until_s": 60_000.0}),
        ("max_min_fairness(mode=packed)", {"prices": "fixed?v100=2.48&p100=1.46&k80=0.45", "sample_s": 1000.0}),
        ("isolated", {"compat": "gavel", "record": "summary"}),
        ("edf", {"workload": f"{JOBS}&slos=true", "restart_s": 20.0}),
        ("order(key='-column(weight), column(total_work)')", {"workload": f"{JOBS}&priorities=true"}),
    ],
)
def test_stopped_again_and_again_and_resumed_writes_the_same_bytes(
    tmp_path: Path, policy: str, options: dict[str, Any]
) -> None:
    plain, out = tmp_path / "plain", tmp_path / "run"
    simulated_rounds(plain, policy, **options)
    with pytest.raises(KeyboardInterrupt):
        simulated_rounds(out, policy, checkpoint_pods=7, progress=Stop(out, 2), **options)
    assert not out.exists() and (working_folder(out) / STATE).is_file()
    with pytest.raises(KeyboardInterrupt):
        fs.resume(out, progress=Stop(out, 3))
    resumed = fs.resume(working_folder(out))
    assert contents(out) == contents(plain)
    assert {path.name for path in tmp_path.iterdir()} == {"plain", "run"}
    assert resumed.provenance["policy"] == policy


def test_checkpoints_by_time_change_nothing(tmp_path: Path) -> None:
    simulated_rounds(tmp_path / "plain")
    simulated_rounds(tmp_path / "run", checkpoint_s=0.0, keep_checkpoint=True)
    assert contents(tmp_path / "run") == contents(tmp_path / "plain")
    shutil.rmtree(tmp_path / "run")
    fs.resume(tmp_path / "run")
    assert contents(tmp_path / "run") == contents(tmp_path / "plain")


KEPT_ROUNDS: dict[str, Any] = {"checkpoint_pods": 40, "keep_checkpoint": True}


def test_another_policy_shares_the_past(tmp_path: Path) -> None:
    base = simulated_rounds(tmp_path / "base", **KEPT_ROUNDS)
    before = (tmp_path / "base.checkpoint" / STATE).read_bytes()
    other = fs.fork(tmp_path / "base", tmp_path / "other", policy="max_min_fairness")
    same = fs.fork(tmp_path / "base", tmp_path / "same")
    assert (tmp_path / "base.checkpoint" / STATE).read_bytes() == before
    assert all(same.frames[name].equals(base.frames[name]) for name in FRAMES)
    past = other.provenance["forked_from"]
    early = pl.col("start_s") < past["at_s"]
    one, two = (run.placements.filter(early).select("pod_id", "start_s", "gpu_ids") for run in (base, other))
    assert one.sort(one.columns[:2]).equals(two.sort(two.columns[:2])) and one.height >= 10
    assert not other.jobs.equals(base.jobs) and len(other.jobs) == len(base.jobs)
    assert (past["scenario"]["policy"], other.provenance["policy"]) == ("fifo", "max_min_fairness")
    assert past["pods"] >= 40 and "scenario" not in other.provenance
    assert {path.name for path in tmp_path.iterdir()} == {"base", "base.checkpoint", "other", "same"}


def test_a_fork_reads_the_columns_of_jobs_that_had_arrived(tmp_path: Path) -> None:
    base = simulated_rounds(tmp_path / "base", "edf", workload=f"{JOBS}&slos=true", **KEPT_ROUNDS)
    same = fs.fork(tmp_path / "base", tmp_path / "same", policy="edf(starving_h=999)")
    other = fs.fork(tmp_path / "base", tmp_path / "other", policy="order(key='-column(deadline_s)')")
    assert same.placements.equals(base.placements) and not other.placements.equals(base.placements)
    assert same.provenance["forked_from"]["pods"] >= 40


@pytest.mark.parametrize("at_s", [0.0, 7200.0, 1e9])
def test_a_fork_at_any_time(tmp_path: Path, at_s: float) -> None:
    base = simulated_rounds(tmp_path / "base", **KEPT_ROUNDS)
    same = fs.fork(tmp_path / "base", tmp_path / "same", at_s=at_s)
    other = fs.fork(tmp_path / "base", tmp_path / "other", at_s=at_s, policy="max_min_fairness")
    assert all(same.frames[name].equals(base.frames[name]) for name in FRAMES)
    early = pl.col("t_s") < at_s
    assert other.timeline.filter(early).equals(base.timeline.filter(early))
    assert other.jobs.equals(base.jobs) == (at_s == 1e9)
    assert other.provenance["forked_from"]["at_s"] == at_s
    assert not list(tmp_path.glob(".*")) and not working_folder(tmp_path / "other").exists()


def test_an_interrupted_fork_of_rounds_goes_on_as_a_fork(tmp_path: Path) -> None:
    simulated_rounds(tmp_path / "base", **KEPT_ROUNDS)
    whole = fs.fork(tmp_path / "base", tmp_path / "whole", policy="isolated")

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fs.fork(tmp_path / "base", tmp_path / "other", policy="isolated", progress=interrupt)
    resumed = fs.resume(tmp_path / "other")
    assert contents(tmp_path / "other") == contents(tmp_path / "whole")
    assert resumed.provenance == whole.provenance
    with pytest.raises(KeyboardInterrupt):
        fs.fork(tmp_path / "base", tmp_path / "third", policy="isolated", progress=interrupt)
    with pytest.raises(ScenarioError, match="the past of another run"):
        fs.fork(tmp_path / "third", tmp_path / "fourth", at_s=1.0)


def test_what_cannot_change(tmp_path: Path) -> None:
    simulated_rounds(tmp_path / "base", **KEPT_ROUNDS)
    fs.simulate(
        "openb:9", "synth:openb?pods=90", "fgd", out=tmp_path / "pods", checkpoint_pods=30, keep_checkpoint=True
    )
    for changes, match in (({"seed": 3}, "fork: seed"), ({"round_s": 9.0}, "fork: round_s"), ({"at_s": "5 m"}, "at_s")):
        with pytest.raises(ScenarioError, match=match):
            fs.fork(tmp_path / "base", tmp_path / "other", **changes)
    for run, policy, kind in (("base", "fgd", "jobs"), ("base", "sia", "jobs"), ("pods", "isolated", "pods")):
        with pytest.raises(
            PolicyError, match=f"found {policy}, expected a policy for {kind}.*begin anew with fastsim run"
        ):
            fs.fork(tmp_path / run, tmp_path / "other", policy=policy)
    assert not (tmp_path / "other").exists() and not working_folder(tmp_path / "other").exists()


def test_damaged_and_foreign_files_are_one_clear_error(tmp_path: Path) -> None:
    simulated_rounds(tmp_path / "run", **KEPT_ROUNDS)
    shutil.rmtree(tmp_path / "run")
    state = working_folder(tmp_path / "run") / STATE
    whole = state.read_bytes()
    for damaged in (b"", b"no archive", whole[: len(whole) // 2], whole[:-200] + bytes(100) + whole[-100:]):
        state.write_bytes(damaged)
        with pytest.raises(ResultError, match=r"state\.npz: .*expected the checkpoint of a run"):
            fs.resume(tmp_path / "run")
        with pytest.raises(ResultError, match=r"state\.npz: .*expected the checkpoint of a run"):
            fs.fork(tmp_path / "run", tmp_path / "other")
    assert {path.name for path in tmp_path.iterdir()} == {"run.checkpoint"}


def test_an_unfinished_run_is_not_lost_by_accident(tmp_path: Path) -> None:
    simulated_rounds(tmp_path / "run", **KEPT_ROUNDS)
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(ResultError, match="an unfinished run is there"):
        simulated_rounds(tmp_path / "run", checkpoint_pods=5)
    with pytest.raises(ResultError, match="exists already"):
        simulated_rounds(tmp_path / "run.checkpoint")


def test_other_jobs_than_before_are_refused(tmp_path: Path) -> None:
    pods = fs.Workload.synth("gavel", jobs=60, rate_per_hour=6, seed=1)
    simulated_rounds(tmp_path / "run", workload=pods, **KEPT_ROUNDS)
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(ResultError, match="workload was an object in memory; give it again"):
        fs.resume(tmp_path / "run")
    with pytest.raises(fs.InputError, match="as when the checkpoint was written"):
        fs.resume(tmp_path / "run", workload=fs.Workload.synth("gavel", jobs=60, rate_per_hour=6, seed=2))
    assert len(fs.resume(tmp_path / "run", workload=pods).jobs) == 60


def test_readings_of_a_run_that_goes_on_are_the_same(tmp_path: Path) -> None:
    """Telemetry follows from the placements of the whole run, so what was stopped has it, too."""
    few = "synth:gavel?jobs=12&rate_per_hour=40&seed=1"
    whole = simulated_rounds(tmp_path / "whole", workload=few, telemetry=900)
    with pytest.raises(KeyboardInterrupt):
        simulated_rounds(
            tmp_path / "a", workload=few, telemetry=900, checkpoint_pods=2, progress=Stop(tmp_path / "a", 2)
        )
    fs.resume(tmp_path / "a")
    assert len(whole.telemetry) and contents(tmp_path / "a") == contents(tmp_path / "whole")
    readings = [(tmp_path / name / "telemetry.parquet").read_bytes() for name in ("a", "whole")]
    assert readings[0] == readings[1]

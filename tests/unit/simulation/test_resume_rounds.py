"""A run in rounds that was stopped anywhere goes on to the same bytes; a fork shares its past."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.engine.checkpoint_folder import STATE, working_folder
from fastsim.engine.result import FRAMES
from fastsim.errors import PolicyError, ResultError, ScenarioError

JOBS = "synth:gavel?jobs=60&rate_per_hour=6&seed=1"
CLUSTER = "gavel:2:2:2"


def simulated(out: Path, policy: str = "fifo", **options: Any) -> fs.Result:
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


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        ("fifo", {}),
        ("gandiva", {}),
        ("allox", {"window": "5:30", "workload": "synth:gavel?jobs=30&rate_per_hour=0.3"}),
        ("finish_time_fairness(mode=perf)", {"until_s": 60_000.0}),
        ("max_min_fairness(mode=packed)", {"prices": "fixed?v100=2.48&p100=1.46&k80=0.45", "sample_s": 1000.0}),
        ("isolated", {"compat": "gavel", "record": "summary"}),
    ],
)
def test_stopped_again_and_again_and_resumed_writes_the_same_bytes(
    tmp_path: Path, policy: str, options: dict[str, Any]
) -> None:
    plain, out = tmp_path / "plain", tmp_path / "run"
    simulated(plain, policy, **options)
    with pytest.raises(KeyboardInterrupt):
        simulated(out, policy, checkpoint_pods=7, progress=Stop(out, 2), **options)
    assert not out.exists() and (working_folder(out) / STATE).is_file()
    with pytest.raises(KeyboardInterrupt):
        fs.resume(out, progress=Stop(out, 3))
    resumed = fs.resume(working_folder(out))
    assert contents(out) == contents(plain)
    assert {path.name for path in tmp_path.iterdir()} == {"plain", "run"}
    assert resumed.provenance["policy"] == policy


def test_checkpoints_by_time_change_nothing(tmp_path: Path) -> None:
    simulated(tmp_path / "plain")
    simulated(tmp_path / "run", checkpoint_s=0.0, keep_checkpoint=True)
    assert contents(tmp_path / "run") == contents(tmp_path / "plain")
    shutil.rmtree(tmp_path / "run")
    fs.resume(tmp_path / "run")
    assert contents(tmp_path / "run") == contents(tmp_path / "plain")


KEPT: dict[str, Any] = {"checkpoint_pods": 40, "keep_checkpoint": True}


def test_another_policy_shares_the_past(tmp_path: Path) -> None:
    base = simulated(tmp_path / "base", **KEPT)
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


@pytest.mark.parametrize("at_s", [0.0, 7200.0, 1e9])
def test_a_fork_at_any_time(tmp_path: Path, at_s: float) -> None:
    base = simulated(tmp_path / "base", **KEPT)
    same = fs.fork(tmp_path / "base", tmp_path / "same", at_s=at_s)
    other = fs.fork(tmp_path / "base", tmp_path / "other", at_s=at_s, policy="max_min_fairness")
    assert all(same.frames[name].equals(base.frames[name]) for name in FRAMES)
    early = pl.col("t_s") < at_s
    assert other.timeline.filter(early).equals(base.timeline.filter(early))
    assert other.jobs.equals(base.jobs) == (at_s == 1e9)
    assert other.provenance["forked_from"]["at_s"] == at_s
    assert not list(tmp_path.glob(".*")) and not working_folder(tmp_path / "other").exists()


def test_a_fork_that_is_interrupted_goes_on_as_a_fork(tmp_path: Path) -> None:
    simulated(tmp_path / "base", **KEPT)
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
    simulated(tmp_path / "base", **KEPT)
    fs.simulate(
        "openb:9", "synth:openb?pods=90", "fgd", out=tmp_path / "pods", checkpoint_pods=30, keep_checkpoint=True
    )
    for changes, match in (({"seed": 3}, "fork: seed"), ({"round_s": 9.0}, "fork: round_s"), ({"at_s": "5"}, "at_s")):
        with pytest.raises(ScenarioError, match=match):
            fs.fork(tmp_path / "base", tmp_path / "other", **changes)
    with pytest.raises(PolicyError, match="found fgd, expected a policy for jobs"):
        fs.fork(tmp_path / "base", tmp_path / "other", policy="fgd")
    with pytest.raises(PolicyError, match="found isolated, expected a policy for pods"):
        fs.fork(tmp_path / "pods", tmp_path / "other", policy="isolated")
    assert not (tmp_path / "other").exists() and not working_folder(tmp_path / "other").exists()


def test_damaged_and_foreign_files_are_one_clear_error(tmp_path: Path) -> None:
    simulated(tmp_path / "run", **KEPT)
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
    simulated(tmp_path / "run", **KEPT)
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(ResultError, match="an unfinished run is there"):
        simulated(tmp_path / "run", checkpoint_pods=5)
    with pytest.raises(ResultError, match="exists already"):
        simulated(tmp_path / "run.checkpoint")


def test_other_jobs_than_before_are_refused(tmp_path: Path) -> None:
    pods = fs.Workload.synth("gavel", jobs=60, rate_per_hour=6, seed=1)
    simulated(tmp_path / "run", workload=pods, **KEPT)
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(ResultError, match="workload was an object in memory; give it again"):
        fs.resume(tmp_path / "run")
    with pytest.raises(fs.InputError, match="as when the checkpoint was written"):
        fs.resume(tmp_path / "run", workload=fs.Workload.synth("gavel", jobs=60, rate_per_hour=6, seed=2))
    assert len(fs.resume(tmp_path / "run", workload=pods).jobs) == 60


def test_readings_of_a_run_that_goes_on_are_the_same(tmp_path: Path) -> None:
    """Telemetry follows from the placements of the whole run, so what was stopped has it, too."""
    few = "synth:gavel?jobs=12&rate_per_hour=40&seed=1"
    whole = simulated(tmp_path / "whole", workload=few, telemetry=900)
    with pytest.raises(KeyboardInterrupt):
        simulated(tmp_path / "a", workload=few, telemetry=900, checkpoint_pods=2, progress=Stop(tmp_path / "a", 2))
    fs.resume(tmp_path / "a")
    assert len(whole.telemetry) and contents(tmp_path / "a") == contents(tmp_path / "whole")
    readings = [(tmp_path / name / "telemetry.parquet").read_bytes() for name in ("a", "whole")]
    assert readings[0] == readings[1]

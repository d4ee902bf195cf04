"""Runs under monitored schedulers through the public functions: tables, limits, mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.engine.monitored.plan import Binding, MonitoredPlan, SchedulerStep
from fastsim.errors import FastsimError, InputError, ScenarioError

V100 = "uniform?nodes=1&gpu=V100M32&gpus=1"
POD = {"cpu_milli": 1000, "memory_mib": 0, "num_gpu": 1, "gpu_milli": 1000, "gpu_memory_mib": 5000, "duration_s": 50.0}


def pods(*rows: dict[str, Any]) -> fs.Workload:
    return fs.Workload.from_arrow(pl.DataFrame([POD | {"pod_id": number} | row for number, row in enumerate(rows)]))


def test_pods_that_share_a_gpu() -> None:
    result = fs.simulate(V100, pods({"submit_s": 0.0}, {"submit_s": 1.0}, {"submit_s": 2.0}), "gpushare", telemetry=10)
    assert result.placements["start_s"].to_list() == pytest.approx([4.2, 5.2, 6.2])
    assert result.placements["reason"].to_list() == ["finished"] * 3
    assert result.jobs["queue_s"].to_list() == [0, 0, 0]
    assert result.jobs["wait_s"].to_list() == pytest.approx([4.2] * 3)
    # Nothing is known of these pods, so each holds what it declares; the device keeps a little for itself.
    used = result.telemetry.filter(metric="memory_used_mib")["value"].to_list()
    assert max(used) == 15_011 and result.summary["restarts"].item() == 0
    assert result.summary["pods_finished"].item() == 3 and result.summary["gpu_milli_alloc"].item() == 0
    alone = fs.simulate(V100, pods({"submit_s": 0.0}, {"submit_s": 1.0}), "exclusive")
    assert alone.jobs["queue_s"].to_list() == pytest.approx([0, 54.2 + 1 - 1])


def test_every_mechanism_on_many_gpus(tmp_path: Path) -> None:
    texts = ("uniform?nodes=2&gpu=V100M32&gpus=2", "synth:detectors?jobs=20&over=100&least_s=0&most_s=3")
    for policy in ("exclusive", "gpushare", "monitored"):
        held = fs.simulate(*texts, policy, telemetry=5, seed=3)
        assert held.summary["pods_finished"].item() == 20
        assert held.placements["node"].n_unique() == 2
        fs.simulate(*texts, policy, telemetry=5, seed=3, out=tmp_path / policy)
        loaded = fs.Result.load(tmp_path / policy)
        for name in held.frames:
            assert loaded.frames[name].equals(held.frames[name]), name


def test_containers_die_and_come_back() -> None:
    result = fs.simulate(V100, "synth:detectors?over=150", "monitored", telemetry=1)
    killed = result.placements.filter(pl.col("reason") == "out_of_memory")
    assert len(killed) == result.summary["restarts"].item() == result.jobs["restarts"].sum() > 0
    assert result.jobs["state"].unique().to_list() == ["finished"]
    assert set(result.jobs["admitted"]) == {"direct", "correlation", "peak"}
    assert result.summary["lost_work_s"].item() == pytest.approx(result.jobs["lost_work_s"].sum())
    # What the table says of memory is what containers had, not what they would have liked.
    most: Any = result.telemetry.filter(metric="memory_used_mib")["value"].max()
    assert 31_671 <= most <= 32_510
    assert result.placements["profile"].str.contains("@").any()


def test_until_somewhere() -> None:
    result = fs.simulate(V100, "synth:detectors?over=0", "monitored", until_s=320.0)
    assert set(result.jobs["state"]) == {"finished", "running", "pending"} and len(result.jobs) < 30
    assert result.summary["makespan_s"].item() == 320


def test_pods_without_an_end_and_pods_too_large() -> None:
    rows = pods({"submit_s": 0.0, "duration_s": None}, {"submit_s": 1.0, "gpu_memory_mib": 40_000}, {"submit_s": 2.0})
    result = fs.simulate(V100, rows, "exclusive")
    assert result.jobs["state"].to_list() == ["running", "unplaced", "pending"]
    assert result.jobs["reason"].to_list() == ["running", "no_gpu_memory", "pending"]
    assert fs.simulate(V100, rows, "monitored").jobs["state"].to_list() == ["running", "unplaced", "finished"]


def test_nothing_to_do() -> None:
    none = fs.Workload.from_arrow(pl.DataFrame([POD | {"pod_id": 0, "submit_s": 0.0}]).clear())
    result = fs.simulate(V100, none, "exclusive", telemetry=1)
    assert (result.summary["pods"].item(), len(result.jobs), len(result.placements)) == (0, 0, 0)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"queue": "fifo"}, "queue: found 'fifo', expected nothing: policy monitored is for pods that share"),
        ({"round_s": 60.0}, "round_s: found 60.0"),
        ({"cluster": "uniform?nodes=1"}, "cluster: found no GPUs"),
        ({"workload": "synth:openb?pods=50"}, "num_gpu: found"),
        ({"workload": "synth:detectors?unit=gb"}, "unit=gb"),
        ({"policy": "monitored(lag=0)"}, "admission.lag"),
    ],
)
def test_mistakes(changes: dict[str, Any], told: str) -> None:
    given: dict[str, Any] = {"cluster": V100, "workload": "synth:detectors?jobs=2", "policy": "monitored"}
    with pytest.raises(FastsimError) as caught:
        fs.simulate(**(given | changes))
    assert told in str(caught.value)


def test_no_checkpoints(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="keeps no checkpoints"):
        fs.simulate(V100, "synth:detectors?jobs=2", "monitored", out=tmp_path / "a", checkpoint_pods=1)


class Stubborn:
    """A scheduler that does one thing."""

    def __init__(self, turn: SchedulerStep) -> None:
        self.answer = turn

    def watch(self) -> MonitoredPlan:
        """It makes itself."""
        return MonitoredPlan(lambda capacity_mib, begin_s: self)

    def arrive(self, pod: int, request_mib: int) -> None:
        """It does not care."""

    def step(self, now_s: float, view: object) -> SchedulerStep:
        """The one thing."""
        return self.answer if self.answer.next_s > 0 else SchedulerStep(next_s=now_s + 1)


def test_a_scheduler_of_ones_own() -> None:
    one = pods({"submit_s": 5.0})
    with pytest.raises(FastsimError, match=r"gpu of pod 0: found 3 .*, expected the number of a GPU, 0 to 0"):
        fs.simulate(V100, one, Stubborn(SchedulerStep((Binding(0, 3, 9.0),))))  # type: ignore[arg-type]
    with pytest.raises(FastsimError, match="next_s"):
        fs.simulate(V100, one, Stubborn(SchedulerStep(next_s=4.0)))  # type: ignore[arg-type]
    # Who does nothing for ever is left alone after some time.
    assert fs.simulate(V100, one, Stubborn(SchedulerStep(next_s=0.0))).jobs["state"].to_list() == ["pending"]  # type: ignore[arg-type]


def test_a_pod_on_several_gpus_is_refused() -> None:
    with pytest.raises(InputError, match="num_gpu: found 2, expected 1"):
        fs.simulate(V100, pods({"submit_s": 0.0, "num_gpu": 2}), "exclusive")

"""Monitored pods that come no nearer to their end stop at the budget."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.engine.driving.headway import Headway
from fastsim.engine.monitored.containers import Containers
from fastsim.engine.monitored.plan import ContainerLifecycle
from fastsim.errors import ScenarioError
from fastsim.foundation.limits.work_budget import CHOICE
from fastsim.telemetry.reading_model import Device
from fastsim.telemetry.usage_profile import Phase, Profile

V100 = "uniform?nodes=1&gpu=V100M32&gpus=1"
POD = {"cpu_milli": 1000, "memory_mib": 0, "num_gpu": 1, "gpu_milli": 1000, "gpu_memory_mib": 5000}


@pytest.fixture(autouse=True)
def _small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHOICE, "0.00002")  # 400 steps, 100 stays


def run(*rows: dict[str, Any], **options: Any) -> fs.Result:
    pods = fs.Workload.from_arrow(pl.DataFrame([POD | {"pod_id": number} | row for number, row in enumerate(rows)]))
    return fs.simulate(V100, pods, record="none", **{"policy": "gpushare", **options})


def test_samples_of_a_pod_that_lasts_too_long_stop_at_the_budget() -> None:
    with pytest.raises(ScenarioError, match="0 pods ended: found 125,000,003 steps and samples since a pod ended"):
        run({"submit_s": 0.0, "duration_s": 1e9})
    assert run({"submit_s": 0.0, "duration_s": 1e9}, until_s=1000.0).summary["pods_finished"].item() == 0


def test_samples_until_the_next_event_are_foreseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refreshes by the nanosecond are refused at the full budget before the first of them."""
    monkeypatch.delenv(CHOICE)
    taken: list[float] = []
    monkeypatch.setattr(Headway, "add", lambda self, knob, amount, now_s: taken.append(now_s))
    with pytest.raises(ScenarioError, match=r"0 pods ended: found [\d,]+ steps and samples since a pod ended"):
        run({"submit_s": 0.0, "duration_s": 60.0}, telemetry="15?refresh_s=1e-9:2e-9")
    assert len(taken) < 10


def test_a_container_larger_than_its_gpu_is_not_killed_for_ever() -> None:
    at_once = ContainerLifecycle(wait_s=(0.0,))
    containers = Containers([Device(1000, 20, 100)], at_once)
    containers.bind(1, 0, Profile("p", (Phase(math.inf, 2000.0),)), 10.0, 0.0)
    with pytest.raises(ScenarioError, match=r"run at 4\.2 s, 0 pods ended: found 101 stays on nodes since a pod ended"):
        containers.advance(1000.0)

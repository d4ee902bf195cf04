"""GPUs that containers share: what two of them amount to is worked out by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import fastsim as fs
from fastsim.engine.monitored.containers import Container, Stay
from fastsim.engine.monitored.shared_devices import SharedDevices, costs, gpu_seconds, parts
from fastsim.telemetry.usage_profile import Phase, Profile
from fastsim.workload.typical_pods import TypicalPods
from fastsim_ext.state.gpu_prices import Tariff

NODES = fs.Cluster.uniform(nodes=2, gpu="T4", gpus=2)
STEADY = Profile("steady", (Phase(float("inf"), 100),))
GPUS = [(0, 0), (0, 1), (1, 0), (1, 1)]


def stay(pod: int, gpu: int, start_s: float, end_s: float, killed: bool = False) -> Stay:
    return Stay(Container(pod, gpu, STEADY, 10.0, start_s), 0, start_s, end_s, killed, 0.0, "steady")


def test_who_shares_has_an_equal_part() -> None:
    held = parts([stay(0, 0, 0.0, 30.0), stay(1, 0, 10.0, 40.0), stay(2, 1, 5.0, float("inf"))], 50.0)
    assert sorted(held) == [(0, 0, 0, 10, 1), (0, 0, 10, 30, 2), (1, 0, 10, 30, 2), (1, 0, 30, 40, 1), (2, 1, 5, 50, 1)]
    assert gpu_seconds(held) == {0: 20.0, 1: 20.0, 2: 45.0}


def test_a_pod_that_goes_and_comes_at_one_instant_keeps_its_part() -> None:
    held = parts([stay(0, 0, 0.0, 10.0, killed=True), stay(0, 0, 10.0, 20.0)], 20.0)
    assert gpu_seconds(held) == {0: 20.0}


def test_parts_cost_what_they_are() -> None:
    tariff = Tariff(np.zeros(1), np.full((1, 1), 3.6), np.zeros(2, np.int32))
    held = parts([stay(0, 2, 0.0, 1000.0), stay(1, 2, 0.0, 1000.0)], 1000.0)
    assert costs(held, GPUS, tariff) == pytest.approx({0: 0.5, 1: 0.5})


def test_a_gpu_counts_once() -> None:
    pods = fs.Workload.synth("detectors", jobs=2)
    devices = SharedDevices(NODES, TypicalPods.of(pods), GPUS)
    empty = devices.empty()
    first, second = devices.move(0, 1), devices.move(0, 1)
    assert first.any() and not second.any()
    assert not devices.move(0, -1).any() and (devices.move(0, -1) == -first).all()
    assert (empty + first != empty).any()


POD = {"cpu_milli": 1000, "memory_mib": 0, "num_gpu": 1, "gpu_milli": 1000, "gpu_memory_mib": 5000, "duration_s": 50.0,
       "submit_s": 0.0}  # fmt: skip
LAG_S = 4.2
"""Seconds from binding to the start of a container."""


def test_figures_of_two_pods_on_one_gpu() -> None:
    pods = fs.Workload.from_arrow(
        pl.DataFrame([POD | {"pod_id": 0, "tenant": "a"}, POD | {"pod_id": 1, "tenant": "b"}])
    )
    result = fs.simulate("uniform?nodes=1&gpu=T4&gpus=2", pods, "gpushare", prices="fixed?T4=3.6")
    row = result.summary.row(0, named=True)
    busy_s = result.jobs["end_s"].max() - LAG_S  # type: ignore[operator]
    assert result.placements["gpu_ids"].to_list() == [[0], [0]]
    assert result.jobs["gpu_hours"].to_list() == pytest.approx([busy_s / 7200] * 2)
    assert result.jobs["cost"].to_list() == pytest.approx([busy_s / 2000] * 2)
    assert (row["gpu_hours"], row["cost"]) == pytest.approx((busy_s / 3600, busy_s / 1000))
    assert (row["tenant_jain"], row["tenant_gini"]) == pytest.approx((1.0, 0.0))
    span_s = row["makespan_s"]
    assert row["mean_gpu_alloc_pct"] == pytest.approx(50 * busy_s / span_s)
    watts = result.timeline["power_w"]  # 70 W at work, 10 W idle; the sockets are idle all the time
    assert sorted(set(watts)) == pytest.approx([watts[0], watts[0] + 60])
    assert row["energy_kwh"] == pytest.approx((watts[0] * span_s + 60 * busy_s) / 3.6e6)
    assert row["eopc_w"] == watts[0]

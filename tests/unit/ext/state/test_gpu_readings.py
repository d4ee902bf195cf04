"""Readings of GPUs with more pods than there was room for at first."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np
import pytest

from fastsim.engine.sampling.telemetry_sampler import device_columns
from fastsim.telemetry.reading_model import Device
from fastsim.telemetry.telemetry import QUANTITIES
from fastsim_ext.state.gpu_readings import GpuReadings

GPUS, MIB = 3, 2.0


def idle_gpus() -> GpuReadings:
    """GPUs of one model; pods have one profile, which uses 2 MiB."""
    levels = ("util_pct__u", "power_w__u", "temperature_c__u", "energy_j__u", "at_s__u")
    columns = device_columns([Device(4000.0, 30.0, 130.0)]) | {name: np.zeros(GPUS) for name in levels}
    phase = {"after_s": 0.0, "memory_mib": MIB, "util_pct": 1.0, "power_w": math.nan}
    profiles = {"first__p": np.array([0, 1], np.int32)} | {name: np.array([value]) for name, value in phase.items()}
    device__u, head__u = np.zeros(GPUS, np.int32), np.zeros(GPUS, np.int32)
    return GpuReadings(device__u, columns | {"head__u": head__u}, profiles, 0.0)


def memory_mib(readings: GpuReadings, second: float) -> list[float]:
    out: dict[str, Any] = {name: np.zeros(GPUS) for name in QUANTITIES}
    readings.read(second, out | {"pod_id": np.zeros(GPUS, np.int64)})
    return list(out["memory_used_mib"])


@pytest.mark.parametrize("pods", [64, 65, 193, 400])
def test_every_pod_is_counted_until_it_leaves(pods: int) -> None:
    readings, dice = idle_gpus(), Random(pods)
    gpu = [dice.randrange(GPUS) for _ in range(pods)]
    order = [*range(pods), *dice.sample(range(pods), pods)]
    rows = {
        "t": np.arange(1.0, 2 * pods + 1), "pod_id": np.array(order),
        "gpu": np.array([gpu[pod] for pod in order], np.int32), "profile": np.repeat(np.array([0, -1], np.int32), pods),
    }  # fmt: skip
    there: set[int] = set()
    for row, pod in enumerate(order):
        second = row + 1.5
        assert readings.feed(rows, row, second) == row + 1
        there ^= {pod}
        assert readings.verify() == 0
        assert memory_mib(readings, second) == [MIB * sum(gpu[pod] == u for pod in there) for u in range(GPUS)]

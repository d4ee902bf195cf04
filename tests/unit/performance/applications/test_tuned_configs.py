"""Tuned sizes: GPUs that are put to good use, and the best batch size for them."""

from __future__ import annotations

import pytest

from fastsim.errors import InputError
from fastsim.performance.applications.application import Application
from fastsim.performance.applications.step_times import StepRow, StepTimes, packed
from fastsim.performance.applications.training_curve import EpochRow, TrainingCurve
from fastsim.performance.applications.tuned_configs import tuned_configs

CURVE = TrainingCurve("sample", [EpochRow(8, 0, 1000, 1000, 1, 1, 1), EpochRow(16, 0, 1000, 600, 1, 1, 1)])


def application(speedup: float, sizes: range = range(1, 9)) -> Application:
    """A step of a quarter of the samples takes a quarter of the time, by as much of the speedup as there is."""
    rows = []
    for gpus in sizes:
        for atomic in (1, 16):
            ring = packed(gpus, 4)
            digits = "".join(map(str, ring))
            rows.append(
                StepRow(digits, len(ring), gpus, atomic, 0.1 + (0.01 * atomic) / (speedup if gpus > 1 else 1), 0.0)
            )
    return Application("sample", CURVE, {"t4": StepTimes("sample on t4", rows)})


def test_the_fastest_batch_size_is_taken() -> None:
    (alone,) = tuned_configs(application(1.0), "t4", 4, 2)
    assert alone.jct_s == pytest.approx(600 * (0.1 + 0.16))
    assert alone[1:] == (1, 16)


def test_sizes_below_the_most_that_use_their_gpus_well() -> None:
    found = tuned_configs(application(3.0), "t4", 4, 8, low=0.5, high=2.0)
    assert [config.num_gpu for config in found] == [2, 4]
    assert tuned_configs(application(3.0), "t4", 4, 4, low=0.5, high=2.0) == found[:1]
    assert tuned_configs(application(3.0), "t4", 4, 8, low=2.0, high=3.0)[0].num_gpu == 1


def test_a_size_that_was_not_measured_is_left_out() -> None:
    assert [c.num_gpu for c in tuned_configs(application(3.0, range(1, 4)), "t4", 4, 8, 0.1, 2.0)] == [2]
    with pytest.raises(InputError, match="not measured on one GPU"):
        tuned_configs(application(3.0, range(2, 4)), "t4", 4, 8)

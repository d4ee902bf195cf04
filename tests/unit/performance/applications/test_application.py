"""One application: splits of its batch, rates, tuned sizes."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given

from fastsim.errors import InputError
from fastsim.performance.applications.application import Application, Split, fixed_split, tuned_configs
from fastsim.performance.applications.family import Applications
from fastsim.performance.applications.step_times import StepRow, StepTimes, packed
from fastsim.performance.applications.training_curve import EpochRow, TrainingCurve

APPS = Applications.default()
CURVE = TrainingCurve("sample", [EpochRow(8, 0, 1000, 1000, 1, 1, 1), EpochRow(16, 0, 1000, 600, 1, 1, 1)])


def test_ratios_compare_one_gpu_with_one() -> None:
    app = APPS["bert"]
    assert app.rate_ratio("dgx-ext", "aws") == pytest.approx(1 / app.rate_ratio("aws", "dgx-ext"))
    assert app.rate_ratio("aws", "aws") == 1.0


@given(st.integers(1, 4096), st.integers(1, 64), st.integers(1, 512), st.integers(0, 1))
def test_a_split_makes_up_the_batch_or_little_more(batch: int, gpus: int, high: int, least: int) -> None:
    atomic, accum = fixed_split(batch, gpus, high, 1 << 20, least)
    assert accum >= least and atomic <= high
    assert batch <= gpus * atomic * (accum + 1) < batch + gpus * (accum + 2)
    assert accum == least or gpus * high * accum < batch  # no turn too many


def test_a_split_stays_below_the_largest_batch() -> None:
    assert fixed_split(100, 3, 40, 100) == Split(33, 0)


def test_one_gpu_takes_two_turns_above_the_initial_size() -> None:
    app = APPS["cifar10"]
    assert app.split("aws", (1,), app.init_batch).accum == 0
    assert app.split("aws", (1,), 2 * app.init_batch) == (app.init_batch, 1)
    assert app.split("aws", (2,), 2 * app.init_batch) == (app.init_batch, 0)


def test_updates_per_second_are_those_of_the_split() -> None:
    app = APPS["cifar10"]
    two = app.on("aws").seconds((1,), app.init_batch)
    assert app.steps_per_s("aws", (1,), 2 * app.init_batch) == 1 / (two.step_s + two.turn_s)


@pytest.mark.parametrize("wrong", [{"steps": {}}, {"restart_s": -1.0}, {"slowdown": 0.0}])
def test_what_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError, match="application bert"):
        replace(APPS["bert"], **wrong)  # type: ignore[arg-type]


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

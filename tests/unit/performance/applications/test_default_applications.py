"""The family that ships with fastsim behaves as training does."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from fastsim.performance.applications.application import tuned_configs
from fastsim.performance.applications.default_applications import MACHINES, NETWORKS
from fastsim.performance.applications.family import Applications

APPS = Applications.default()
EACH = pytest.mark.parametrize("name", sorted(NETWORKS))


@EACH
def test_larger_batches_need_fewer_but_not_as_many_fewer_iterations(name: str) -> None:
    curve = APPS[name].curve
    needed = [curve.iteration(batch, curve.epochs - 1) for batch in curve.batches]
    assert needed == sorted(needed, reverse=True)
    for less, more in zip(needed[1:], needed, strict=False):
        assert more / 2 <= less < more


@EACH
@pytest.mark.parametrize("machine", sorted(MACHINES))
def test_steps_take_longer_with_more_samples_and_nodes(name: str, machine: str) -> None:
    times = APPS[name].on(machine)
    half = MACHINES[machine].gpus // 2
    assert times.seconds((half,), times.low).step_s < times.seconds((half,), times.high).step_s
    assert times.seconds((2 * half,), times.low).step_s < times.seconds((half, half), times.low).step_s
    assert times.seconds((1,), times.low).sync_s == 0
    beyond = times.seconds((2 * half,) * 5, times.low)  # interpolated
    assert beyond.step_s >= times.seconds((2 * half,) * 4, times.low).step_s


@EACH
def test_the_initial_batch_fits_a_gpu_or_a_few_turns(name: str) -> None:
    app = APPS[name]
    for machine in MACHINES:
        assert app.split(machine, (1,), app.init_batch).accum <= 1
        assert tuned_configs(app, machine, MACHINES[machine].gpus, 16)


@EACH
def test_training_ends_three_time_constants_after_its_start(name: str) -> None:
    curve = APPS[name].curve
    assert curve.best_metric(curve.init_batch, curve.epochs) == pytest.approx(1 - math.exp(-3), rel=1e-12)
    first = curve.best_metric(curve.init_batch, 1)
    assert first == pytest.approx(1 - math.exp(-3 / curve.epochs), rel=1e-12)


@EACH
@pytest.mark.parametrize("machine", sorted(MACHINES))
def test_every_placement_on_two_machines_is_measured_once_a_batch(name: str, machine: str) -> None:
    gpus, rows = MACHINES[machine].gpus, APPS[name].on(machine).rows
    times = Counter((row.placement, row.atomic) for row in rows if row.placement is not None)
    few = {str(n) for n in range(1, gpus + 1)} | {f"{a}{b}" for b in range(1, gpus + 1) for a in range(1, b + 1)}
    assert {placement for placement, _ in times} == few | {str(gpus) * 3, str(gpus) * 4}
    assert set(times.values()) == {1}

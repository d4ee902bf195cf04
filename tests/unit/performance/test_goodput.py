"""Goodput: the kernels say what the formulas by hand say, and what one can see without a computer."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given, settings

from fastsim.errors import InputError
from fastsim.performance.goodput import BatchLimits, Goodput, Noise, Perf
from tests.reference.rounds import goodput as by_hand
from tests.strategies import scenarios_per_run

PERF = Perf(0.1, 0.001, 0.05, 0.002, 0.02, 0.001, 1.5)
NOISE = Noise(1.0, 1000.0, 128)


def times_s(low: float, high: float) -> st.SearchStrategy[float]:
    """Seconds of any order of magnitude."""
    return st.floats(np.log(low), np.log(high)).map(np.exp).map(float)


perfs = st.builds(
    Perf, times_s(1e-4, 2), times_s(1e-7, 0.1), times_s(1e-8, 1), times_s(1e-8, 0.1), times_s(1e-8, 1),
    times_s(1e-8, 0.1), st.floats(1, 10),
)  # fmt: skip
noises = st.builds(Noise, times_s(1e-6, 1e15), times_s(1e-6, 1e15), st.integers(1, 512))


@st.composite
def limits(draw: st.DrawFn, init_batch: int) -> BatchLimits:
    """Batch sizes that the initial one is among."""
    low = draw(st.integers(1, 64))
    high = low + draw(st.integers(0, 4096))
    max_batch = init_batch * draw(st.integers(1, 256))
    return BatchLimits(max_batch, low, high, draw(st.booleans()), draw(st.booleans()), draw(st.booleans()))


@given(st.data(), perfs, noises, st.lists(st.integers(1, 64), min_size=1, max_size=6))
@settings(max_examples=scenarios_per_run(200))
def test_the_best_batch_sizes_are_those_by_hand(
    data: st.DataObject, perf: Perf, noise: Noise, replicas: list[int]
) -> None:
    bounds = data.draw(limits(noise.init_batch))
    nodes = [data.draw(st.integers(1, k)) for k in replicas]
    found = Goodput(perf, noise).best(nodes, replicas, bounds)
    expected = [by_hand.best(perf, noise, bounds, n, k) for n, k in zip(nodes, replicas, strict=True)]
    assert list(zip(*(column.tolist() for column in found), strict=True)) == expected


@pytest.mark.parametrize("field", range(7))
def test_times_that_are_no_numbers_are_worth_nothing_and_divide_nothing(field: int) -> None:
    perf = Perf(*(float("nan") if at == field else value for at, value in enumerate(PERF)))
    bounds = BatchLimits(4096, 32, 512, True, True, False)
    found = Goodput(perf, NOISE).best([1, 2], [2, 4], bounds)
    expected = [by_hand.best(perf, NOISE, bounds, n, k) for n, k in ((1, 2), (2, 4))]
    assert list(zip(*(column.tolist() for column in found), strict=True)) == expected
    assert (found.accum >= 0).all() and (found.atomic > 0).all() and not np.isnan(found.goodput).any()


@given(perfs, noises, st.integers(1, 8), st.integers(1, 64), st.integers(1, 4096), st.integers(0, 9))
@settings(max_examples=scenarios_per_run(200))
def test_evaluation_is_that_by_hand_and_within_its_parts(
    perf: Perf, noise: Noise, nodes: int, replicas: int, atomic: int, accum: int
) -> None:
    batch = replicas * atomic * (accum + 1)
    assume(batch >= noise.init_batch)
    found = Goodput(perf, noise).evaluated(nodes, replicas, atomic, accum)
    assert found.throughput.tolist() == [by_hand.throughput(perf, nodes, replicas, atomic, accum)]
    assert found.efficiency.tolist() == [by_hand.efficiency(noise, batch)]
    assert found.goodput[0] <= found.throughput[0] * (1 + 1e-12)  # rounding: an efficiency of 1 can be 1 + 2e-16
    turn_s = perf.alpha_c + perf.beta_c * atomic
    assert found.throughput[0] <= replicas * atomic / turn_s * (1 + 1e-12)  # the network never makes a step shorter


@given(perfs, noises, st.integers(1, 4), st.integers(1, 8), st.integers(1, 8), st.integers(1, 8))
@settings(max_examples=scenarios_per_run(50))
def test_pipelines_are_those_by_hand(
    perf: Perf, noise: Noise, nodes: int, pipelines: int, stages: int, batches: int
) -> None:
    micro = 48 + noise.init_batch
    found = Goodput(perf, noise).staged(nodes, pipelines, batches * micro, stages, micro)
    assert found.tolist() == [by_hand.staged(perf, noise, batches * micro, stages, micro, nodes, pipelines)]
    assert (found[0] > 0) == (pipelines <= batches)


def test_no_noise_asks_for_no_larger_batch() -> None:
    found = Goodput(PERF, Noise(1.0, 1e-12, 128)).best(1, 1, BatchLimits(4096, 1, 4096))
    assert (found.atomic.tolist(), found.accum.tolist()) == ([128], [0])


def test_much_noise_asks_for_the_largest_batch() -> None:
    found = Goodput(PERF, Noise(1e-12, 1e9, 128)).best([1, 2], [4, 8], BatchLimits(4096, 1, 4096))
    assert (found.atomic * [4, 8] * (found.accum + 1)).tolist() == [4096, 4096]


def test_a_batch_that_fits_nowhere_has_no_goodput() -> None:
    found = Goodput(PERF, NOISE).best(1, 1, BatchLimits(4096, 1, 64, accumulation=False))
    assert found.goodput.tolist() == [0.0]


def test_a_fixed_batch_is_split_evenly() -> None:
    found = Goodput(PERF, NOISE).best([1, 1], [1, 4], BatchLimits(1024, 1, 128, tuned=False))
    assert (found.atomic.tolist(), found.accum.tolist()) == ([128, 128], [7, 1])


def test_one_gpu_needs_two_turns_to_see_the_noise() -> None:
    found = Goodput(PERF, NOISE).best([1], [1], BatchLimits(256, 1, 4096, tuned=False))
    assert (found.atomic.tolist(), found.accum.tolist()) == ([128], [1])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda g: g.best([1], [0], BatchLimits(256, 1, 256)),
        lambda g: g.best([1], [1], BatchLimits(64, 1, 256)),
        lambda g: g.best([1], [1], BatchLimits(256, 0, 256)),
        lambda g: g.evaluated(1, 1, 64),
        lambda g: g.staged(1, 0, 4096, 2),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: object) -> None:
    with pytest.raises(InputError, match="goodput: "):
        wrong(Goodput(PERF, NOISE))  # type: ignore[operator]

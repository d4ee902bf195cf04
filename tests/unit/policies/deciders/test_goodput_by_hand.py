"""Rows of goodput: measured where a job has run, projected where it has not, one GPU where nothing is known."""

from __future__ import annotations

import numpy as np
import pytest

from fastsim.performance.goodput import Goodput, Limits, Noise, Perf
from fastsim.policies.deciders.configurations import Configurations, NodeGroup
from fastsim.policies.deciders.goodput_by_hand import LEAST, KnownGoodput, goodput_row, grown_replicas

SIZES = Configurations((NodeGroup("a", 2, 4), NodeGroup("b", 1, 8)))
LIMITS = Limits(4096, 32, 1024)
MODEL = Goodput(Perf(0.1, 0.001, 0.05, 0.002, 0.02, 0.001, 1.5), Noise(1.0, 5000.0, 128))


def row(a: KnownGoodput, b: KnownGoodput, ratio: float | None = None) -> list[float]:
    """The row of a job, a's configurations first."""
    told = {} if ratio is None else {(1, 0): ratio, (0, 1): 1 / ratio}
    return [float(value) for value in goodput_row((a, b), told, SIZES)]


def test_a_new_job_is_worth_one_gpu_of_every_model() -> None:
    new = KnownGoodput(None, LIMITS, 1)
    least = pytest.approx(LEAST)
    assert row(new, new, 2.0) == [1, least, least, least, 1, least, least, least]


def test_the_worst_measured_configuration_is_one() -> None:
    found = row(KnownGoodput(MODEL, LIMITS, 4), KnownGoodput(None, LIMITS, 4))
    best = MODEL.best([1, 1, 1], [1, 2, 4], LIMITS).goodput
    assert found[:3] == pytest.approx((best / best[0]).tolist())
    assert found[3] == pytest.approx(LEAST / best[0], abs=LEAST)
    assert found[4] == 1.0  # no ratio, so nothing is known of the other model


def test_another_model_is_projected_by_the_speed_of_one_gpu() -> None:
    found = row(KnownGoodput(MODEL, LIMITS, 8), KnownGoodput(None, LIMITS, 8), 3.0)
    there = MODEL.best([1, 1, 1, 2], [1, 2, 4, 8], LIMITS).goodput  # on nodes of the model it knows
    assert found[4:] == pytest.approx((3.0 * there / there[0]).tolist())
    assert found[:4] == pytest.approx((there / there[0]).tolist())


def test_sizes_beyond_the_most_replicas_are_out() -> None:
    found = row(KnownGoodput(MODEL, LIMITS, 2), KnownGoodput(MODEL, LIMITS, 1))
    assert [value > 0.5 for value in found] == [True, True, False, False, True, False, False, False]


def test_pipelines_come_in_whole_ones() -> None:
    model = Goodput(MODEL.perf, Noise(1.0, 5000.0, 12))
    pipe = KnownGoodput(model, LIMITS, 2, stages=4)
    found = row(pipe, KnownGoodput(None, LIMITS, 1, stages=2))
    there = model.staged([1, 2], [1, 2], LIMITS.max_batch, 4)
    assert found[2:4] == pytest.approx((4 * there / there[0]).tolist())
    assert found[:2] == pytest.approx([4 * LEAST / there[0]] * 2, abs=LEAST)
    assert found[5] == 2.0


def test_jobs_grow_by_doubling_as_far_as_their_batch_goes() -> None:
    assert [grown_replicas(profiled, 4096, 32) for profiled in (0, 1, 3, 40)] == [1, 2, 6, 64]
    assert grown_replicas(16, 128, 32) == 4
    assert grown_replicas(16, 16, 32) == 1


def test_rows_are_in_single_precision() -> None:
    assert goodput_row((KnownGoodput(MODEL, LIMITS, 4), KnownGoodput(None, LIMITS, 4)), {}, SIZES).dtype == np.float32

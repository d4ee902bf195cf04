"""Rows of many jobs are those of each by hand, to the last bit, whatever it knows."""

from __future__ import annotations

import dataclasses

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from fastsim.engine.adaptive.plan import AdaptiveJob, AdaptiveSetting, JobView, NodeGroup, SpeedEstimate
from fastsim.performance.applications.application import Application
from fastsim.performance.applications.family import Applications
from fastsim.performance.applications.step_times import StepRow, StepTimes
from fastsim.performance.goodput import BatchLimits, Goodput, Noise, Perf
from fastsim.policies.deciders.configurations import Configurations
from fastsim.policies.deciders.configurations import NodeShape as GoodputByHandNodeGroup
from fastsim.policies.deciders.goodput_table import LEAST, GoodputTable, KnownGoodput, goodput_row, grown_replicas
from fastsim.policies.deciders.sia_decider import node_groups
from tests.adaptive import APPS, adaptive_setting
from tests.strategies import scenarios_per_run

SECONDS = st.floats(1e-4, 1.0)
PERFS = st.builds(Perf, SECONDS, SECONDS, SECONDS, SECONDS, SECONDS, SECONDS, st.floats(1.0, 10.0))
SIZES = Configurations((GoodputByHandNodeGroup("a", 2, 4), GoodputByHandNodeGroup("b", 1, 8)))
LIMITS = BatchLimits(4096, 32, 1024)
MODEL = Goodput(Perf(0.1, 0.001, 0.05, 0.002, 0.02, 0.001, 1.5), Noise(1.0, 5000.0, 128))


def pipeline(sizes: dict[str, int]) -> Application:
    """An application whose replicas take several GPUs."""
    rows = {model: [StepRow(str(n), 1, n, 1.0, 0.1, 0.02)] for model, n in sizes.items()}
    steps = {model: StepTimes(model, rows[model], stages=n, low=1, high=48) for model, n in sizes.items()}
    return Application("pipes", APPS["bert"].curve, steps)


SETTING = dataclasses.replace(
    adaptive_setting(aws=3, dgx=2, rtx=2),
    applications=Applications({**APPS, "pipes": pipeline({"dgx-ext": 2, "rtx": 8})}),
)


@st.composite
def job(draw: st.DrawFn, number: int = 0) -> JobView:
    """A job that knows nothing, or something of some models."""
    app = SETTING.applications[draw(st.sampled_from(["cifar10", "bert", "yolov3", "pipes"]))]
    request = AdaptiveJob(
        0.0, app.name, draw(st.sampled_from([1, 2, 4])),
        draw(st.integers(app.init_batch, app.max_batch)), draw(st.sampled_from(["adaptive", "scale-gpus"])),
    )  # fmt: skip
    noise = draw(st.none() | st.builds(Noise, st.floats(0, 10), st.floats(1e-3, 1e5), st.just(app.init_batch)))
    models = [g for g, group in enumerate(SETTING.groups) if group.gpu_model in app.steps]
    some = draw(st.lists(st.sampled_from(models), unique=True))
    estimates = {g: SpeedEstimate(draw(PERFS), draw(st.sampled_from([1, 2, 8]))) for g in some}
    return JobView(number, request, app, 100.0, 0, 0.0, 0.0, 0, 0.0, noise, estimates, None)


def offers(setting: AdaptiveSetting = SETTING, project: bool = True, tuned: bool = True) -> GoodputTable:
    return GoodputTable(setting, Configurations(node_groups(setting)), project, tuned)


@given(st.lists(job(), min_size=1, max_size=5), st.booleans(), st.booleans())
@settings(max_examples=scenarios_per_run(150), deadline=None)
def test_rows_are_those_by_hand(jobs: list[JobView], project: bool, tuned: bool) -> None:
    table = offers(project=project, tuned=tuned)
    for _ in range(2):  # once made, once remembered
        assert table.rows(jobs).tolist() == [table.row_by_hand(job).tolist() for job in jobs]


def test_of_pipelines_nothing_is_guessed() -> None:
    noise, estimate = Noise(1.0, 500.0, 12), SpeedEstimate(Perf(0.1, 0.01, 0.05, 0.01, 0.02, 0.01, 1.5), 1)
    request = AdaptiveJob(0.0, "pipes", 2, 384)
    view = JobView(0, request, SETTING.applications["pipes"], 100.0, 0, 0.0, 0.0, 0, 0.0, noise, {1: estimate}, None)
    table = offers()
    (row,) = table.rows([view])
    sizes = table.configurations
    worth = {(int(g), int(n)): float(v) for g, n, v in zip(sizes.group__q, sizes.gpus__q, row, strict=True)}
    assert worth[1, 2] == pytest.approx(2.0) and worth[1, 4] > 2.0  # one pipeline of two GPUs, and two of them
    assert worth[2, 8] == 8.0  # one pipeline of eight is all that is known there
    assert worth[1, 1] < 0.1 and worth[0, 1] < 0.1


def test_no_jobs_are_no_rows() -> None:
    assert offers().rows([]).shape == (0, len(offers().configurations))


def test_models_without_nodes_are_no_columns() -> None:
    setting = dataclasses.replace(SETTING, groups=(NodeGroup("unheard-of", (4,), (0,)),))
    assert np.array_equal(GoodputTable(setting, Configurations(node_groups(setting))).rows([]), np.zeros((0, 0)))


def row(a: KnownGoodput, b: KnownGoodput, ratio: float | None = None) -> list[float]:
    """The row of a job, a's configurations first."""
    ratios = {} if ratio is None else {(1, 0): ratio, (0, 1): 1 / ratio}
    return [float(value) for value in goodput_row((a, b), ratios, SIZES)]


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

"""Rows of many jobs are those of each by hand, to the last bit, whatever it knows."""

from __future__ import annotations

import dataclasses

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from fastsim.engine.adaptive.plan import AdaptiveJob, AdaptiveSetting, Belief, JobView, NodeGroup
from fastsim.performance.applications.application import Application, Applications
from fastsim.performance.applications.step_times import StepRow, StepTimes
from fastsim.performance.goodput import Noise, Perf
from fastsim.policies.deciders.configurations import Configurations
from fastsim.policies.deciders.goodput_table import GoodputTable
from fastsim.policies.deciders.sia_decider import node_groups
from tests.adaptive import APPS, adaptive_setting
from tests.strategies import scenarios_per_run

SECONDS = st.floats(1e-4, 1.0)
PERFS = st.builds(Perf, SECONDS, SECONDS, SECONDS, SECONDS, SECONDS, SECONDS, st.floats(1.0, 10.0))


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
    asked = AdaptiveJob(
        0.0, app.name, draw(st.sampled_from([1, 2, 4])),
        draw(st.integers(app.init_batch, app.max_batch)), draw(st.sampled_from(["adaptive", "scale-gpus"])),
    )  # fmt: skip
    noise = draw(st.none() | st.builds(Noise, st.floats(0, 10), st.floats(1e-3, 1e5), st.just(app.init_batch)))
    models = [g for g, group in enumerate(SETTING.groups) if group.gpu_model in app.steps]
    some = draw(st.lists(st.sampled_from(models), unique=True))
    beliefs = {g: Belief(draw(PERFS), draw(st.sampled_from([1, 2, 8]))) for g in some}
    return JobView(number, asked, app, 100.0, 0, 0.0, 0.0, 0, 0.0, noise, beliefs, None)


def offers(setting: AdaptiveSetting = SETTING, project: bool = True, tuned: bool = True) -> GoodputTable:
    return GoodputTable(setting, Configurations(node_groups(setting)), project, tuned)


@given(st.lists(job(), min_size=1, max_size=5), st.booleans(), st.booleans())
@settings(max_examples=scenarios_per_run(150), deadline=None)
def test_rows_are_those_by_hand(jobs: list[JobView], project: bool, tuned: bool) -> None:
    made = offers(project=project, tuned=tuned)
    for _ in range(2):  # once made, once remembered
        assert made.rows(jobs).tolist() == [made.row_by_hand(job).tolist() for job in jobs]


def test_of_pipelines_nothing_is_guessed() -> None:
    noise, belief = Noise(1.0, 500.0, 12), Belief(Perf(0.1, 0.01, 0.05, 0.01, 0.02, 0.01, 1.5), 1)
    asked = AdaptiveJob(0.0, "pipes", 2, 384)
    view = JobView(0, asked, SETTING.applications["pipes"], 100.0, 0, 0.0, 0.0, 0, 0.0, noise, {1: belief}, None)
    made = offers()
    (row,) = made.rows([view])
    sizes = made.configurations
    worth = {(int(g), int(n)): float(v) for g, n, v in zip(sizes.group__q, sizes.gpus__q, row, strict=True)}
    assert worth[1, 2] == pytest.approx(2.0) and worth[1, 4] > 2.0  # one pipeline of two GPUs, and two of them
    assert worth[2, 8] == 8.0  # one pipeline of eight is all that is known there
    assert worth[1, 1] < 0.1 and worth[0, 1] < 0.1


def test_no_jobs_are_no_rows() -> None:
    assert offers().rows([]).shape == (0, len(offers().configurations))


def test_models_without_nodes_are_no_columns() -> None:
    setting = dataclasses.replace(SETTING, groups=(NodeGroup("unheard-of", (4,), (0,)),))
    assert np.array_equal(GoodputTable(setting, Configurations(node_groups(setting))).rows([]), np.zeros((0, 0)))

"""Plans some rounds ahead: everybody gets on, the longest job is begun early, GPUs suffice."""

from __future__ import annotations

from itertools import product
from typing import Any

import highspy
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from fastsim.engine.adaptive.plan import AdaptiveJob
from fastsim.engine.adaptive.run import run_adaptive
from fastsim.errors import PolicyError
from fastsim.policies.adaptive.planned import Planned
from fastsim.policies.deciders.planned_decider import GAP, OPTIONS, Prospect, planned_rounds
from tests.adaptive import adaptive_setting, told_of


def highs() -> Any:
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in OPTIONS.items():
        solver.setOptionValue(name, value)
    return solver


def worth(jobs: list[Prospect], plan: list[tuple[int, int]], makespan: float) -> float:
    """The objective of a plan."""
    added = [job.gain__g[g] * max(0.0, n - job.restart__g[g]) for job, (g, n) in zip(jobs, plan, strict=True)]
    done = [job.done + more for job, more in zip(jobs, added, strict=True)]
    logs = [
        job.weight * (np.log(np.clip(part, 1e-3, 1.0)) - np.log(max(job.done, 1e-3)))
        for job, part in zip(jobs, done, strict=True)
    ]
    left = [(1 - job.done) / max(job.gain__g) for job in jobs]
    after = [at - more / max(job.gain__g) for job, at, more in zip(jobs, left, added, strict=True)]
    return float(np.mean(logs) - makespan * max(0.0, *after) / max(1.0, *left))


PROSPECTS = st.lists(
    st.builds(
        Prospect, st.integers(1, 4), st.floats(0, 0.9), st.tuples(st.floats(0.01, 0.3), st.floats(0.01, 0.3)),
        st.tuples(st.floats(0, 2.5), st.sampled_from((0.0, 1.0, 1.5))), st.sampled_from((1.0, 0.5, 0.01)),
    ), min_size=1, max_size=3,
)  # fmt: skip


@given(PROSPECTS, st.sampled_from([0.0, 1.0, 12.0]))
@settings(max_examples=25, deadline=None)
def test_as_good_as_trying_everything(jobs: list[Prospect], makespan: float) -> None:
    gpus, ahead = (4, 3), 2
    plan = planned_rounds(jobs, gpus, ahead, makespan, highs())
    best = -np.inf
    for picked in product(product(range(2), range(ahead + 1)), repeat=len(jobs)):
        used = [sum(job.gpus * n for job, (at, n) in zip(jobs, picked, strict=True) if at == g) for g in range(2)]
        fits = all(job.gpus <= gpus[g] or not n for job, (g, n) in zip(jobs, picked, strict=True))
        if fits and all(u <= ahead * room for u, room in zip(used, gpus, strict=True)):
            best = max(best, worth(jobs, list(picked), makespan))
    assert worth(jobs, plan, makespan) >= best - 2 * GAP * max(1.0, abs(best))


def test_nobody_to_plan_for_is_no_plan() -> None:
    assert planned_rounds([], (4,), 5, 1.0, highs()) == []
    assert planned_rounds([Prospect(8, 0.0, (0.1,), (0.0,))], (4,), 5, 1.0, highs()) == [(0, 0)]


def test_a_run_ends_and_is_the_same_again() -> None:
    setting = adaptive_setting(round_s=360.0)
    jobs = [AdaptiveJob(30.0 * n, "cifar10", 2 + 2 * (n % 4), 1024) for n in range(8)]
    first, second = (run_adaptive(told_of(setting), setting, Planned().begin(setting), jobs) for _ in range(2))
    assert np.isfinite(first.jobs["finish_s"]).all()
    assert np.array_equal(first.jobs, second.jobs)


@pytest.mark.parametrize(
    ("nodes", "jobs"),
    [((1, 0, 1), [("imagenet", 1, 1600)]), ((1, 0, 0), 2 * [("bert", 4, 96)]), ((1, 0, 0), 3 * [("yolov3", 4, 64)])],
)
def test_rounds_shorter_than_a_restart_do_not_keep_a_job_from_its_end(
    nodes: tuple[int, int, int], jobs: list[tuple[str, int, int]]
) -> None:
    setting = adaptive_setting(*nodes, round_s=60.0)
    played = [AdaptiveJob(0.0, app, gpus, batch) for app, gpus, batch in jobs]
    run = run_adaptive(told_of(setting), setting, Planned().begin(setting), played, until_s=5 * 86_400.0)
    assert np.isfinite(run.jobs["finish_s"]).all()


def test_short_jobs_that_would_be_later_than_fair_go_before_long_ones() -> None:
    setting = adaptive_setting(1, 0, 0, round_s=360.0)
    jobs = 2 * [AdaptiveJob(0.0, "yolov3", 4, 64)] + [AdaptiveJob(360.0 * n, "cifar10", 4, 512) for n in (1, 2, 3)]
    weighted, equal = (
        run_adaptive(told_of(setting), setting, Planned(fairness=power).begin(setting), jobs).jobs["finish_s"]
        for power in (12.0, 0.0)
    )
    assert max(weighted[2:]) < min(weighted[:2]) and min(equal[2:]) > min(equal[:2])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ahead", 0), ("ahead", 2.0), ("makespan", -1), ("makespan", True),
        ("fairness", -1), ("fairness", float("inf")), ("fairness", "much"),
    ],
)  # fmt: skip
def test_parameters_are_checked(name: str, value: Any) -> None:
    with pytest.raises(PolicyError, match=name):
        Planned(**{name: value})

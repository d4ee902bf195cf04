"""Runs of adaptive jobs: what is handed out, and what is refused."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from fastsim.engine.adaptive.plan import AdaptiveJob, AdaptivePlan, AdaptiveSetting, AdaptiveView, Place
from fastsim.engine.adaptive.run import AdaptiveOutcome, run_adaptive
from fastsim.errors import InputError, PolicyError
from tests.adaptive import Whims, adaptive_setting, random_jobs, told_of

JOB = AdaptiveJob(10.0, "cifar10", 1, 128)


@dataclass
class Always:
    """The same places in every round."""

    places: Mapping[int, Place]
    solver_s: float = 0.0

    def decide(self, view: AdaptiveView) -> Mapping[int, Place]:
        """Those of the jobs that are there."""
        return {job.id: self.places[job.id] for job in view.jobs if job.id in self.places}


def played(
    setting: AdaptiveSetting, jobs: list[AdaptiveJob], places: Mapping[int, Place], until_s: float = 600.0
) -> AdaptiveOutcome:
    """A short run with the same places in every round."""
    return run_adaptive(
        told_of(setting), setting, AdaptivePlan(Always(places)), jobs, until_s=until_s, record_tasks=True
    )


def test_a_job_holds_gpus_from_the_round_after_it_came() -> None:
    run = played(adaptive_setting(), [JOB], {0: Place(0, (0, 1))})
    assert run.jobs["first_s"].tolist() == [60.0]
    assert run.jobs["rounds"].tolist() == [10]
    assert (run.rounds, run.job_rounds, run.tasks["round"].tolist()) == (10, 10, list(range(10)))
    assert run.trained["gpu_s"].tolist() == [2 * 540.0]
    assert run.trained["wasted_gpu_s"].tolist() == [2 * 50.0]
    assert run.trained["restarts"].tolist() == [0]
    assert run.trained["contention"].tolist() == [1.0]
    assert run.busy_s.sum() == 2 * (540.0 - 50.0)
    assert run.held.tolist() == [0, 4]  # the first GPU of each of the first two nodes
    assert run.tasks["held"].tolist() == [0] + [-1] * 9
    assert run.makespan_s == 600.0


def test_a_random_run_ends_and_adds_up() -> None:
    setting, draw = adaptive_setting(), random.Random(3)
    run = run_adaptive(told_of(setting), setting, AdaptivePlan(Whims(setting, draw)), random_jobs(draw, 3, 100.0))
    assert run.jobs["ended"].all()
    assert (run.jobs["run"] == run.jobs["total"]).all()
    assert run.makespan_s == run.jobs["finish_s"].max()
    assert (run.trained["contention"] <= run.max_active).all()
    held_s, restarts_s = run.jobs["gpu_s"].sum(), run.trained["wasted_gpu_s"].sum()
    assert run.busy_s.sum() == pytest.approx(held_s - restarts_s, rel=1e-12)


def test_no_jobs_are_no_rounds() -> None:
    run = played(adaptive_setting(), [], {})
    assert (run.rounds, len(run.jobs), run.makespan_s) == (0, 0, 0.0)


def test_a_gpu_is_given_once() -> None:
    with pytest.raises(PolicyError, match=r"found 5 GPUs of node 0 of group 0 \(aws\) for jobs 0, 1, expected at most"):
        played(adaptive_setting(), [JOB, JOB], {0: Place(0, (0,) * 4), 1: Place(0, (0,))})


@pytest.mark.parametrize(
    ("job", "complaint"),
    [
        (JOB._replace(application="nothing"), "application"),
        (JOB._replace(batch_size=64), "batch_size: found 64"),
        (JOB._replace(mode="wild"), "mode 'wild'"),
        (JOB._replace(num_gpu=0), "0 GPUs"),
        (JOB._replace(submit_s=5.0), "submit_s: found 5.0"),
    ],
)
def test_jobs_that_make_no_sense_are_refused(job: AdaptiveJob, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        played(adaptive_setting(), [JOB, job], {})

"""Turns of jobs of fixed size: shares come true, GPUs are kept, nobody idles who fits."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from fastsim.engine.adaptive.plan import AdaptiveJob, AdaptiveView, JobView
from fastsim.engine.adaptive.run import adaptive_driver, run_adaptive
from fastsim.engine.shares.plan import Allocation, Floats, RoundView
from fastsim.errors import PolicyError
from fastsim.policies.adaptive.rotation import Rotation
from fastsim.policies.deciders.rotation_decider import RotationDecider
from tests.adaptive import APPS, adaptive_setting, told_of


@dataclass
class Fixed:
    """The same shares for everyone."""

    share__g: Floats
    seen: list[RoundView] = field(default_factory=list)

    def allocate(self, view: RoundView) -> Allocation:
        """Those shares."""
        self.seen.append(view)
        return Allocation.of_singles(view.job_id, np.tile(self.share__g, (len(view), 1)), 0.5)


def jobs(*sizes: int) -> list[JobView]:
    """Jobs of cifar10 with so many GPUs."""
    requests = [AdaptiveJob(0.0, "cifar10", size, 1024) for size in sizes]
    return [
        JobView(n, job, APPS["cifar10"], 0.0, 0, 0.0, 0.0, 0, 0.0, None, {}, None) for n, job in enumerate(requests)
    ]


def decider(share: tuple[float, ...] = (1.0, 0.0, 0.0), aws: int = 1) -> RotationDecider:
    return RotationDecider(adaptive_setting(aws, 0, 0, 360.0), Fixed(np.array(share[:1])))  # type: ignore[arg-type]


def test_two_jobs_that_do_not_fit_together_take_turns() -> None:
    rotation, seen = decider(), []
    for turn in range(6):
        seen.append(tuple(rotation.decide(AdaptiveView(360.0 * turn, jobs(4, 4)))))
    assert seen.count((0,)) == seen.count((1,)) == 3


def test_the_same_jobs_are_asked_about_once_and_keep_their_gpus() -> None:
    rotation = decider(aws=2)
    first = rotation.decide(AdaptiveView(360.0, jobs(2, 4, 1)))
    again = rotation.decide(AdaptiveView(720.0, jobs(2, 4, 1)))
    assert first == again
    assert rotation.solver_s == 0.5
    assert {job: len(place.nodes) for job, place in first.items()} == {0: 2, 1: 4, 2: 1}
    assert first[1].nodes == (0, 0, 0, 0)  # the largest job chooses first


def test_jobs_without_a_share_take_what_is_left() -> None:
    rotation = decider(share=(0.0,))
    assert sorted(rotation.decide(AdaptiveView(360.0, jobs(3, 1, 1)))) == [0, 1]


def test_programs_see_rates_of_what_users_asked_for() -> None:
    rotation = RotationDecider(adaptive_setting(1, 1, 0, 360.0), Fixed(np.array([0.5, 0.5])))  # type: ignore[arg-type]
    rotation.decide(AdaptiveView(360.0, jobs(1, 8, 8)))
    (view,) = rotation.allocator.seen  # type: ignore[attr-defined]
    assert view.num_gpu.tolist() == [1, 8, 8]
    assert view.kind.tolist() == [0, 1, 1]
    times = APPS["cifar10"].on("dgx-ext").seconds((8,), 128)
    assert view.rate__jg[1, 1] == pytest.approx(1 / times.step_s)
    assert view.rate__jg[1, 0] == 0.1  # four GPUs are too few


def test_a_run_ends_with_every_program() -> None:
    setting = adaptive_setting(round_s=360.0)
    requests = [AdaptiveJob(100.0 * n, "cifar10", size, 1024) for n, size in enumerate((8, 4, 2, 8))]
    for program in ("max_sum_throughput", "max_min_fairness"):
        run = run_adaptive(told_of(setting), setting, Rotation(program).begin(setting), requests)
        assert np.isfinite(run.jobs["finish_s"]).all()
        assert run.trained["batch_mean"].tolist() == [1024.0] * 4
    rounds = adaptive_driver(setting, Rotation().begin(setting), requests)
    for _ in range(20):
        rounds.loop.work()
        rounds.decide()
        rounds.loop.verify()


def test_other_programs_are_refused() -> None:
    with pytest.raises(PolicyError, match="parameter shares"):
        Rotation("allox")

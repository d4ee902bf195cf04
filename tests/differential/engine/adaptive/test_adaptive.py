"""Whole runs of policies for adaptive jobs are those by hand: every job's end, restarts and GPU seconds."""

from __future__ import annotations

import random

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

from fastsim.engine.adaptive.plan import AdaptivePlan, AdaptiveSetting, JobView
from fastsim.engine.adaptive.run import run_adaptive
from fastsim.policies.adaptive.rotation import Rotation
from fastsim.policies.adaptive.sia import Sia
from fastsim.policies.deciders.goodput_table import GoodputTable
from fastsim.policies.deciders.sia_decider import SiaDecider
from fastsim.policies.deciders.sia_program import Singles
from tests.adaptive import adaptive_setting, random_jobs, told_of
from tests.reference.rounds.adaptive_rounds import played_by_hand
from tests.strategies import scenarios_per_run


class OffersByHand(GoodputTable):
    """Rows without the compiled ones."""

    def rows(self, jobs: list[JobView]) -> Singles:  # type: ignore[override]
        """A row for each job."""
        rows = [self.row_by_hand(job) for job in jobs]
        return np.array(rows, np.float32).reshape(len(jobs), len(self.configurations))


def by_hand(setting: AdaptiveSetting, policy: Sia | Rotation) -> AdaptivePlan:
    """The plan of a policy, without compiled code where there is another."""
    plan = policy.begin(setting)
    if isinstance(plan.decider, SiaDecider):
        sia = plan.decider
        sia.__dict__["offers"] = OffersByHand(setting, sia.configurations, sia.project, sia.tuned)
    return plan


POLICIES = st.sampled_from([
    Sia(), Sia(power=0.5, unserved=-1.0), Sia(project=False), Sia(tuned=False, ties=3),
    Sia(measured_nodes=2, measured_gpus=8), Rotation(), Rotation("max_min_fairness"),
])  # fmt: skip


@given(st.integers(0, 1 << 30), POLICIES)
@settings(max_examples=scenarios_per_run(10), deadline=None)
def test_runs_are_those_by_hand(seed: int, policy: Sia | Rotation) -> None:
    draw = random.Random(seed)
    setting, jobs = adaptive_setting(round_s=draw.choice((60.0, 360.0))), random_jobs(draw, 5)
    jobs = [job._replace(application="cifar10", batch_size=max(job.batch_size, 512)) for job in jobs]
    run = run_adaptive(told_of(setting), setting, policy.begin(setting), jobs)
    hands = played_by_hand(setting, by_hand(setting, policy), jobs)
    assert run.jobs["finish_s"].tolist() == [hand.finish_s for hand in hands]
    assert run.trained["restarts"].tolist() == [hand.restarts for hand in hands]
    assert run.trained["wasted_gpu_s"].tolist() == [hand.wasted_s for hand in hands]

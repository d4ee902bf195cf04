"""Runs without rounds, by hand and by what must always hold."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.engine.rounds.job_metrics import utilization_by_model
from fastsim.engine.rounds.options import Job, RoundOptions, Setting
from fastsim.engine.rounds.outcome import RoundOutcome
from fastsim.engine.shares.ideal import run_ideal
from fastsim.engine.shares.plan import ALONE, Allocation, RoundView, SharePlan
from fastsim.engine.shares.run import run_rounds
from fastsim.errors import InputError, PolicyError, ScenarioError
from fastsim.policies import registry
from tests.views import setting
from tests.views import settings as random_settings

NEVER = math.inf
Said = Callable[[RoundView], Allocation | None]


@dataclasses.dataclass
class Says:
    """Answers what a function says, and remembers when it was asked."""

    said: Said
    asked_s: list[float] = dataclasses.field(default_factory=list)

    def allocate(self, view: RoundView) -> Allocation | None:
        """What the function says."""
        self.asked_s.append(view.now_s)
        return self.said(view)

    def state(self) -> dict[str, Any]:
        """Nothing that matters."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Nothing to take back."""


def even(view: RoundView) -> Allocation:
    """Every model's GPUs shared equally by all, up to one GPU each."""
    share = np.minimum(view.setting.gpus__g / max(len(view), 1) / view.num_gpu[:, None], 1 / len(view.price__g))
    return Allocation.of_singles(view.job_id, share)


def played(where: Setting, said: Said | Says, jobs: list[Job], batches: int = 1, **more: Any) -> RoundOutcome:
    options = more.pop("options", RoundOptions())
    policy = said if isinstance(said, Says) else Says(said)
    parts = [JobBatch.of(jobs[at::1][:batches]) for at in range(0, len(jobs), batches)]
    plan = SharePlan(policy, overcommitted=more.pop("overcommitted", False))
    return run_ideal(where, plan, parts, options, **more)


def test_one_job_runs_at_the_sum_of_its_shares() -> None:
    where = setting((1, 1), [[1.0, 4.0]])
    run = played(where, lambda view: Allocation.of_singles(view.job_id, np.array([[0.5, 0.5]])), [Job(10, 0, 1, 100)])
    assert run.jobs["finish_s"].tolist() == [10 + 100 / 2.5]
    assert (run.jobs["first_s"][0], run.jobs["run"][0], run.makespan_s) == (10, 100, 50)
    assert run.busy_s.tolist() == [20, 20]
    assert (run.rounds, run.calls, run.jobs["rounds"][0], run.max_active) == (2, 1, 1, 1)
    assert (run.opportunities, len(run.tasks)) == (0, 0)


def test_jobs_that_come_and_go_change_the_rates_of_all() -> None:
    # One GPU. 0-10: job 0 alone does 10. Then both at 1/2: job 1 is done after 20 more, job 0 has 90 - 10 left: alone.
    run = played(setting((1,), [[1.0]]), even, [Job(0, 0, 1, 100), Job(10, 0, 1, 10)])
    assert run.jobs["finish_s"].tolist() == pytest.approx([110, 30], rel=1e-15)
    assert run.calls == 3
    assert run.busy_s.tolist() == pytest.approx([110], rel=1e-15)
    assert run.jobs["rounds"].tolist() == [3, 1]


def test_a_pair_has_its_rates_of_sharing_and_holds_its_gpus_once() -> None:
    shared = [[[0.5], [0.8]], [[0.2], [0.5]]]
    where = setting((2,), [[1.0], [1.0]], shared, sizes=(2, 2))

    def pair(view: RoundView) -> Allocation:
        if len(view) == 1:
            return Allocation.of_singles(view.job_id, np.array([[0.0]]))
        first, second = np.append(view.job_id, view.job_id[0]), np.array([ALONE, ALONE, view.job_id[1]])
        return Allocation(first, second, np.array([[0.25], [0.0], [0.5]]))

    run = played(where, pair, [Job(0, 0, 2, 6.5), Job(0, 1, 2, 1)], options=RoundOptions(window=(0, 1)))
    # 0.25 alone and 0.5 * 0.8 together: 0.65 steps/s; its partner does 0.5 * 0.2 = 0.1, so both end at 10 s.
    assert run.jobs["finish_s"].tolist() == pytest.approx([10, 10], rel=1e-15)
    assert run.busy_s.tolist() == pytest.approx([7.5, 7.5], rel=1e-15)


def test_a_partner_that_leaves_takes_the_pair_with_it_until_the_policy_is_asked() -> None:
    where = setting((1,), [[1.0]], [[[0.5]]])

    def pair(view: RoundView) -> Allocation:
        if len(view) == 1:
            return Allocation.of_singles(view.job_id, np.array([[1.0]]))
        first, second = np.append(view.job_id, view.job_id[0]), np.array([ALONE, ALONE, view.job_id[1]])
        return Allocation(first, second, np.array([[0.0], [0.0], [1.0]]))

    policy = Says(pair)
    run = played(where, policy, [Job(0, 0, 1, 5), Job(0, 0, 1, 20)], realloc_s=100.0)
    assert policy.asked_s == [0, 100]
    assert run.jobs["finish_s"].tolist() == [10, 115]  # 5 done together, idle until 100 s, then 15 alone
    assert run.busy_s.tolist() == [25]


def test_new_jobs_wait_for_the_next_allocation() -> None:
    policy = Says(even)
    run = played(setting((2,), [[1.0]]), policy, [Job(0, 0, 1, 50), Job(10, 0, 1, 10)], realloc_s=30.0)
    assert policy.asked_s == [0, 30]
    assert run.jobs["first_s"].tolist() == [0, 30]
    assert run.jobs["finish_s"].tolist() == [50, 40]


class Steps:
    """1 $/h until 100 s, then 3."""

    def at(self, now_s: float) -> Any:
        """Price of one GPU, $/h."""
        return np.array([1.0 if now_s < 100 else 3.0])

    def next_change_s(self, now_s: float) -> float:
        """Once."""
        return 100.0 if now_s < 100 else NEVER


def test_prices_are_paid_by_the_second_and_their_changes_are_events() -> None:
    policy = Says(even)
    options = RoundOptions(prices=Steps())
    run = played(setting((2,), [[1.0]], sizes=(2,)), policy, [Job(0, 0, 2, 136)], options=options)
    assert policy.asked_s == [0, 100]
    assert run.jobs["cost"][0] == pytest.approx(2 * (100 * 1 + 36 * 3) / 3600, rel=1e-15)


def test_the_end_of_the_run_and_the_window() -> None:
    jobs = [Job(0, 0, 1, 100), Job(0, 0, 1, 40), Job(500, 0, 1, 1)]
    where = setting((1,), [[1.0]])
    cut = played(where, even, jobs, options=RoundOptions(until_s=30.0))
    assert cut.makespan_s == 30
    assert cut.jobs["run"].tolist() == [15, 15]
    assert np.isnan(cut.jobs["finish_s"]).all()
    window = played(where, even, jobs, options=RoundOptions(window=(1, 2)))
    assert window.makespan_s == 80
    assert window.jobs["ended"].tolist() == [0, 1]


def test_what_cannot_run_on_a_model_has_no_share_of_it() -> None:
    where = setting((4, 1), [[1.0, 9.0], [1.0, 0.0]], sizes=(2, 1))  # two GPUs are not one, and w1 does not run on b
    run = played(where, lambda view: Allocation.of_singles(view.job_id, np.full((len(view), 2), 0.5)),
                 [Job(0, 0, 2, 10), Job(0, 1, 1, 10)])  # fmt: skip
    assert run.jobs["finish_s"].tolist() == [20, 20]
    assert run.busy_s.tolist() == [7.5, 7.5, 7.5, 7.5, 0]


def test_promises_beyond_the_gpus_shrink_alike() -> None:
    where = setting((2, 1), [[1.0, 1.0]])
    run = played(where, lambda view: Allocation.of_singles(view.job_id, np.full((len(view), 2), [0.7, 0.3])),
                 [Job(0, 0, 1, 9), Job(0, 0, 1, 9), Job(0, 0, 1, 9), Job(0, 0, 1, 9)], overcommitted=True)  # fmt: skip
    assert run.jobs["finish_s"].tolist() == [12] * 4  # half of a, and the quarter of b that there is
    assert run.busy_s.tolist() == [12, 12, 12]


def test_when_nothing_progresses_it_says_who_waits() -> None:
    with pytest.raises(PolicyError, match="nothing runs at 5 s and nothing would change that; waiting: jobs 0"):
        played(setting((1,), [[1.0]]), lambda view: None, [Job(5, 0, 1, 1)])
    options = RoundOptions(prices=Changing())
    with pytest.raises(PolicyError, match="nothing runs"):
        played(setting((1,), [[1.0]]), lambda view: None, [Job(5, 0, 1, 1)], options=options)


class Changing:
    """Prices that change every second and help nobody."""

    def at(self, now_s: float) -> Any:
        """Price of one GPU, $/h."""
        return np.array([1.0 + now_s])

    def next_change_s(self, now_s: float) -> float:
        """In a second."""
        return now_s + 1


def test_bad_answers_and_bad_numbers_are_told() -> None:
    where = setting((1,), [[1.0]])
    with pytest.raises(PolicyError, match="at 0 s: shares: found job 5, which is not active, expected ids"):
        played(where, lambda view: Allocation.of_singles(view.job_id + 5, np.ones((1, 1))), [Job(0, 0, 1, 1)])
    with pytest.raises(PolicyError, match="shares: found share nan of job 0 on a, expected a part of the time, 0 to 1"):
        played(where, lambda view: Allocation.of_singles(view.job_id, np.array([[np.nan]])), [Job(0, 0, 1, 1)])
    with pytest.raises(ScenarioError, match=r"realloc_s: found -1\.0"):
        played(where, even, [], realloc_s=-1.0)
    with pytest.raises(InputError, match="job 0: found w0 on 2 GPUs, expected at most 1"):
        played(setting((1,), [[1.0]], sizes=(2,)), even, [Job(0, 0, 2, 1)])


def test_a_model_without_gpus_is_in_the_figures_alone() -> None:
    jobs = [Job(0.0, 0, 1, 100.0), Job(30.0, 0, 1, 100.0)]
    seen: list[tuple[str, ...]] = []

    def noted(view: RoundView) -> Allocation:
        seen.append(view.setting.gpu_models)
        return even(view)

    run, without = played(setting((0, 1), [[5.0, 1.0]]), noted, jobs), played(setting((1,), [[1.0]]), even, jobs)
    assert len(set(seen)) == 1 and len(seen[0]) == 1
    assert run.jobs["finish_s"].tolist() == without.jobs["finish_s"].tolist()
    assert (run.gpus__g, list(utilization_by_model(run).values())) == ((0, 1), [0.0, 1.0])


def test_no_jobs_at_all() -> None:
    run = played(setting((1,), [[1.0]]), even, [])
    assert (len(run.jobs), run.rounds, run.makespan_s, run.busy_s.tolist()) == (0, 0, 0, [0])


def test_progress_is_told() -> None:
    reported: list[int] = []
    jobs = [Job(float(job), 0, 1, 0.5) for job in range(400)]
    played(setting((1,), [[1.0]]), even, jobs, batches=7, progress=reported.append)
    assert reported[0] == 128  # every job comes and goes
    assert reported == sorted(reported)


@given(st.floats(0.1, 5.0), st.floats(1.0, 20_000.0), st.floats(0.0, 1e5))
def test_a_single_job_ends_within_a_round_of_what_rounds_say(rate: float, steps: float, submit_s: float) -> None:
    where, jobs = setting((1,), [[rate]]), [Job(submit_s, 0, 1, steps)]
    ideal = played(where, even, jobs)
    rounds = run_rounds(where, SharePlan(Says(even)), [JobBatch.of(jobs)], RoundOptions())
    assert abs(rounds.makespan_s - ideal.makespan_s) <= 360
    assert ideal.makespan_s == submit_s + steps / rate


POLICIES = ("fifo", "isolated", "proportional", "max_min_fairness", "gandiva")


@settings(max_examples=60)
@given(random_settings(), st.sampled_from(POLICIES), st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_what_always_holds(where: Setting, policy: str, seed: int, batches: int) -> None:
    random = np.random.default_rng(seed)
    alone = where.oracle.alone__kg
    fits = [k for k, (_, n) in enumerate(where.oracle.kinds) if ((alone[k] > 0) & (where.gpus__g >= n)).any()]
    assume(fits)
    submits = np.sort(random.integers(0, 50, 8) * 100.0)
    jobs = [Job(float(at), int(k), where.oracle.kinds[k][1], float(random.integers(1, 5000)))
            for at, k in zip(submits, random.choice(fits, 8), strict=True)]  # fmt: skip
    made: Any = registry.parse(policy)

    def run(size: int) -> RoundOutcome:
        parts = [JobBatch.of(jobs[at : at + size]) for at in range(0, len(jobs), size)]
        return run_ideal(where, made.begin(where), parts, RoundOptions())

    try:
        found = run(batches)
    except PolicyError as error:
        assert "nothing runs" in str(error)  # some shares lie on models where the job does not run
        return
    rows = found.jobs
    assert found.jobs.tolist() == run(len(jobs)).jobs.tolist()
    best = [max(rate for rate, count in zip(alone[job.kind], where.gpus__g, strict=True) if count >= job.num_gpu)
            for job in jobs]  # fmt: skip
    # Shares of a job add up to 1 within the tolerance of a solver, 1e-7.
    assert (rows["finish_s"] - rows["submit_s"] >= rows["total"] / best * (1 - 1e-6)).all()
    assert (rows["run"] == rows["total"]).all()
    assert (rows["first_s"] >= rows["submit_s"]).all()
    assert found.makespan_s == rows["finish_s"].max()
    assert found.calls <= found.rounds
    assert (found.busy_s <= found.makespan_s * (1 + 1e-9)).all()

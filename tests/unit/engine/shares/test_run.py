"""The rounds engine from outside: refusals, batches, records, progress."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.engine.rounds.options import Job, RoundOptions, Setting
from fastsim.engine.rounds.outcome import GANG, MOMENT, RoundOutcome
from fastsim.engine.shares.plan import Allocation, RoundView, SharePlan
from fastsim.engine.shares.run import run_rounds
from fastsim.errors import InputError, PolicyError
from fastsim.performance.oracle import Oracle
from tests.unit.reference.rounds.test_share_rounds import Fixed, setting


def played(where: Setting, jobs: list[Job], shares: object = (1.0,), **given: object) -> RoundOutcome:
    plan = SharePlan(Fixed(shares))  # type: ignore[arg-type]
    return run_rounds(where, plan, [JobBatch.of(jobs)], RoundOptions(), **given)  # type: ignore[arg-type]


def test_records_have_the_compiled_layout() -> None:
    run = played(setting([1]), [Job(0.0, 0, 1, 400.0)], record_tasks=True)
    assert run.jobs.dtype == GANG
    assert run.tasks.dtype == MOMENT
    assert run.jobs["finish_s"].tolist() == [400.0]
    assert run.tasks["t"].tolist() == [0.0, 360.0]
    assert run.tasks["held"].tolist() == [0, -1]
    assert run.held.tolist() == [0]


def test_batches_may_come_in_any_size() -> None:
    jobs = [Job(float(i), 0, 1, 100.0 + i) for i in range(9)]
    whole = played(setting([2]), jobs)
    plan = SharePlan(Fixed([1.0]))
    pieces = run_rounds(setting([2]), plan, (JobBatch.of([job]) for job in jobs), RoundOptions())
    assert np.array_equal(whole.jobs["finish_s"], pieces.jobs["finish_s"])
    assert played(setting([2]), []).makespan_s == 0.0


@pytest.mark.parametrize("rate", [0.093, 0.094, 0.125])
def test_rounds_end_on_the_second_whatever_the_rate(rate: float) -> None:
    """Steps of a round over the rate are rounded to less than the round (0.093), to more (0.094) or to neither."""
    assert (rate * 360.0 / rate < 360.0, rate * 360.0 / rate > 360.0) == (rate == 0.093, rate == 0.094)
    jobs = [Job(0.0, 0, 1, rate * 1000.0), Job(360.0, 0, 1, rate * 360.0)]
    run = played(setting([2], [[rate]]), jobs, record_tasks=True)
    assert run.tasks["t"].tolist() == [0.0, 360.0, 360.0, 720.0]
    assert run.jobs["first_s"].tolist() == [0.0, 360.0]
    assert run.jobs["finish_s"].tolist() == [pytest.approx(1000.0), 720.0]


def test_records_are_drained_while_a_run_goes_on() -> None:
    run = played(setting([3]), [Job(0.0, 0, 1, 1e7)] * 3, record_tasks=True)
    assert len(run.tasks) == 3 * 27_778 > 65_536
    assert (np.diff(run.tasks["round"]) >= 0).all()


def test_gpus_that_fill_no_server_are_not_used() -> None:
    run = played(setting([5]), [Job(0.0, 0, 1, 10.0)], gpus_per_server=(2,))
    assert run.gpus__g == (4,)


def test_jobs_that_can_never_run_are_refused() -> None:
    with pytest.raises(InputError, match=r"job 1: found w1 on 4 GPUs, expected at most 2 GPUs"):
        played(setting([2], [[1.0], [1.0]], sizes=(1, 4)), [Job(0, 0, 1, 1.0), Job(0, 1, 4, 1.0)])
    with pytest.raises(InputError, match="a rate above 0"):
        played(setting([2], [[0.0]]), [Job(0, 0, 1, 1.0)])
    with pytest.raises(InputError, match="no rate on some GPU model"):
        played(setting([2, 1], [[1.0, float("nan")]]), [Job(0, 0, 1, 1.0)], (1.0, 0.0))


def test_a_slow_model_is_no_hole() -> None:
    run = played(setting([1, 1], [[1.0, 0.0]]), [Job(0, 0, 1, 1.0)], (1.0, 0.0))
    assert run.jobs["finish_s"].tolist() == [1.0]


class Wrong(Fixed):
    """Answers with something that is no allocation of these jobs."""

    def allocate(self, view: RoundView) -> Allocation | None:
        """Shares of a job that does not exist."""
        return Allocation(view.job_id + 1, view.job_id * 0 - 1, np.ones((len(view), 1)))


def test_answers_that_are_no_shares_are_refused() -> None:
    jobs = [JobBatch.of([Job(0, 0, 1, 1.0)])]
    with pytest.raises(PolicyError, match="policy Fixed at 0 s: shares: found share nan of job 0 on m0"):
        run_rounds(setting([1]), SharePlan(Fixed([float("nan")])), jobs, RoundOptions())
    with pytest.raises(PolicyError, match="policy Wrong at 0 s: shares: found job 1, which is not active"):
        run_rounds(setting([1]), SharePlan(Wrong([1.0])), jobs, RoundOptions())


def test_a_policy_that_lets_nobody_run_is_told_so() -> None:
    plan = SharePlan(Fixed([0.0]), strict=True)
    with pytest.raises(PolicyError, match=r"nothing runs at .* waiting: jobs 0, 1"):
        run_rounds(setting([1]), plan, [JobBatch.of([Job(0, 0, 1, 1.0)] * 2)], RoundOptions())


def test_progress_is_told_of_finished_jobs() -> None:
    reported: list[int] = []
    played(setting([1]), [Job(0.0, 0, 1, 360.0 * 9000)], progress=reported.append)
    assert reported[:3] == [0, 0, 0]  # once when the jobs were read, and every 4,096 rounds


def test_pairs_share_their_gpus() -> None:
    shared = np.full((1, 1, 1), 0.8)
    oracle = Oracle((("w", 1),), ("m0",), np.ones((1, 1)), shared)
    where = Setting(("m0",), np.array([1]), oracle, np.ones(1))

    class Together(Fixed):
        """All jobs in one pair."""

        def allocate(self, view: RoundView) -> Allocation | None:
            """A share for the pair, none for its members."""
            if len(view) < 2:
                return Allocation.of_singles(view.job_id, np.ones((len(view), 1)))
            second = np.array([-1, -1, view.job_id[1]])
            first = np.array([*view.job_id, view.job_id[0]])
            return Allocation(first, second, np.array([[0.0], [0.0], [1.0]]))

    jobs = [JobBatch.of([Job(0, 0, 1, 80.0), Job(0, 0, 1, 160.0)])]
    run = run_rounds(where, SharePlan(Together([1.0]), pairs=True), jobs, RoundOptions(), record_tasks=True)
    assert run.jobs["finish_s"].tolist() == [200.0, 200.0]  # a pair's round ends with the slower of the two
    assert run.tasks["mate_id"].tolist() == [1]


class Hopeful:
    """Takes every job for one of kind 1; told which pairs have run."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int, int]] = []
        self.gone: list[int] = []

    def arrive(self, job: int, kind: int) -> int:
        """Kind 1."""
        return 1

    def observe(self, job_a: int, job_b: int, model: int) -> None:
        """A pair that has run."""
        self.told.append((job_a, job_b, model))

    def leave(self, job: int) -> None:
        """A job that is gone."""
        self.gone.append(job)

    def __call__(self, view: RoundView, first: Any, second: Any) -> tuple[Any, Any]:
        """Nobody asks."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """Nothing to resume."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Nothing to resume."""


class Together(Fixed):
    """All the time for the first two jobs as a pair."""

    def allocate(self, view: RoundView) -> Allocation | None:
        """Shares of 0 for each alone."""
        ids = view.job_id.tolist()
        rows = [(job, -1, 0.0) for job in ids] + ([(ids[0], ids[1], 1.0)] if len(ids) > 1 else [])
        first, second, share = zip(*rows, strict=True)
        return Allocation(np.array(first, np.int64), np.array(second, np.int64), np.array(share)[:, None])


def pair_of(kind: int, estimates: Hopeful | None) -> RoundOutcome:
    """Two jobs of 720 steps on one GPU: those of kind 1 share it by halves, those of kind 0 do nothing together."""
    shared = np.zeros((2, 2, 1))
    shared[1, 1] = 0.5
    where = Setting(("m",), np.array([1]), Oracle((("w0", 1), ("w1", 1)), ("m",), np.ones((2, 1)), shared), np.ones(2))
    plan = SharePlan(Together(()), pairs=True, estimates=estimates)
    batches = [JobBatch.of([Job(0.0, kind, 1, 720.0)] * 2)]
    return run_rounds(where, plan, batches, RoundOptions(), record_tasks=True)


def test_a_wrong_guess_costs_one_round() -> None:
    estimates = Hopeful()
    run = pair_of(0, estimates)
    assert run.tasks[["t", "id", "mate_id"]].tolist()[:3] == [(0.0, 0, 1), (360.0, 0, -1), (720.0, 0, -1)]
    assert run.jobs["finish_s"].tolist() == [1080.0, 1800.0]
    assert run.jobs["failures"].tolist() == [0, 0]
    assert run.busy_s.tolist() == [1440.0]
    assert estimates.gone == [0, 1]


def test_the_truth_decides_how_fast_a_pair_is() -> None:
    estimates = Hopeful()
    run = pair_of(1, estimates)
    assert run.jobs["finish_s"].tolist() == pair_of(1, None).jobs["finish_s"].tolist() == [1440.0, 1440.0]


def test_estimates_are_told_of_pairs_that_ran_before_the_policy_is_asked() -> None:
    estimates = Hopeful()
    where = Setting(
        ("m",), np.array([1]), Oracle((("w0", 1), ("w1", 1)), ("m",), np.ones((2, 1)), np.full((2, 2, 1), 0.5)),
        np.ones(2),
    )  # fmt: skip
    jobs = [Job(0.0, 0, 1, 3000.0), Job(0.0, 1, 1, 3000.0), Job(2000.0, 0, 1, 10.0)]
    run_rounds(where, SharePlan(Together(()), pairs=True, estimates=estimates), [JobBatch.of(jobs)], RoundOptions())
    assert estimates.told == [(0, 1, 0)]
    assert sorted(estimates.gone) == [0, 1, 2]

"""Rounds worked out by hand: shares, deficits, gangs, leases, restarts and each behaviour of the original."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from fastsim.engine.rounds.options import Job, RoundOptions, Setting
from fastsim.engine.shares.plan import Allocation, RoundView, SharePlan
from fastsim.errors import PolicyError
from fastsim.performance.oracle import Oracle
from tests.reference.rounds.leases import Pair, gpus_given
from tests.reference.rounds.share_rounds import Rounds


@dataclasses.dataclass
class Fixed:
    """Gives every job the same shares, or those of its id."""

    shares: Mapping[int, Sequence[float]] | Sequence[float]

    def allocate(self, view: RoundView) -> Allocation | None:
        """One row for each job."""
        rows = [self.shares[job] if isinstance(self.shares, Mapping) else self.shares for job in view.job_id.tolist()]
        return Allocation.of_singles(view.job_id, np.array(rows, float).reshape(-1, len(view.price__g)))

    def state(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Nothing."""


def setting(gpus: Sequence[int], rates: Sequence[Sequence[float]] = ((1.0,),), sizes: Sequence[int] = (1,)) -> Setting:
    models = tuple(f"m{g}" for g in range(len(gpus)))
    kinds = tuple((f"w{k}", size) for k, size in enumerate(sizes))
    oracle = Oracle(kinds, models, np.array(rates), np.zeros((len(kinds), len(kinds), len(models))))
    return Setting(models, np.array(gpus), oracle, oracle.alone__kg.max(axis=1))


def played(where: Setting, jobs: list[Job], shares: Any, strict: bool = False, **options: Any) -> Rounds:
    rounds = Rounds(where, SharePlan(Fixed(shares), strict=strict), RoundOptions(round_s=100.0, **options), jobs)
    rounds.run()
    return rounds


def ends(rounds: Rounds) -> list[float | None]:
    return [outcome.completion_s for outcome in rounds.outcomes]


def test_one_job_runs_to_its_end() -> None:
    rounds = played(setting([1]), [Job(0.0, 0, 1, 250.0)], [1.0])
    assert ends(rounds) == [250.0]
    assert (rounds.rounds, rounds.calls, rounds.busy_s) == (4, 1, [250.0])


def test_equal_shares_take_turns() -> None:
    rounds = played(setting([1]), [Job(0.0, 0, 1, 200.0), Job(0.0, 0, 1, 200.0)], [0.5], realloc_s=1e6)
    turns = [task.candidate[0] for _, _, task in rounds.history]
    assert turns == [0, 1, 0, 1]
    assert ends(rounds) == [300.0, 400.0]


def test_a_larger_share_gets_more_rounds() -> None:
    jobs = [Job(0.0, 0, 1, 600.0), Job(0.0, 0, 1, 600.0)]
    rounds = played(setting([1]), jobs, {0: [0.75], 1: [0.25]}, realloc_s=1e6)
    first = [task.candidate[0] for _, _, task in rounds.history][:8]
    assert first.count(0) == 6
    assert first.count(1) == 2


def test_a_job_waits_for_the_next_round_and_idle_time_counts_for_nobody() -> None:
    rounds = played(setting([1]), [Job(50.0, 0, 1, 10.0), Job(500.0, 0, 1, 10.0)], [1.0])
    assert ends(rounds) == [60.0, 510.0]
    assert rounds.busy_s == [20.0]
    charged = played(setting([1]), [Job(50.0, 0, 1, 10.0), Job(500.0, 0, 1, 10.0)], [1.0],
                     compat=frozenset({"idle_gap_accounting"}))  # fmt: skip
    assert ends(charged) == [60.0, 510.0]
    assert charged.busy_s == [60.0 + 450.0]


def test_the_fastest_model_is_filled_first() -> None:
    rounds = played(setting([1, 1], [[1.0, 4.0]]), [Job(0.0, 0, 1, 400.0), Job(0.0, 0, 1, 400.0)], [0.5, 0.5])
    assert [task.model for _, _, task in rounds.history[:2]] == [1, 0]


def test_gangs_start_together_or_not_at_all() -> None:
    where = setting([4], [[1.0], [1.0]], sizes=(1, 4))
    jobs = [Job(0.0, 1, 4, 100.0), Job(0.0, 0, 1, 100.0), Job(0.0, 0, 1, 100.0)]
    rounds = played(where, jobs, {0: [0.1], 1: [1.0], 2: [1.0]})
    assert ends(rounds) == [200.0, 100.0, 100.0]


def test_a_restart_costs_time_only_on_new_gpus() -> None:
    rounds = played(setting([1]), [Job(0.0, 0, 1, 200.0)], [1.0], restart_s=30.0)
    assert ends(rounds) == [200.0]  # what has not run yet is not restarted
    turns = played(setting([1]), [Job(0.0, 0, 1, 150.0), Job(0.0, 0, 1, 150.0)], [0.5], restart_s=30.0, realloc_s=1e6)
    assert ends(turns) == [280.0, 360.0]


def test_a_job_the_allocation_does_not_know_runs_on_what_is_left() -> None:
    jobs = [Job(0.0, 0, 1, 300.0), Job(10.0, 0, 1, 100.0)]
    assert ends(played(setting([2]), jobs, [1.0], realloc_s=1e6)) == [300.0, 200.0]
    waits = played(setting([2]), jobs, [1.0], realloc_s=1e6, compat=frozenset({"new_job_reserves_gpus"}))
    assert ends(waits) == [300.0, 1e6 + 100.0]  # until the next allocation


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [250.0, 350.0, 370.0]),
        ({"realloc_s": 1920.0}, [250.0, 2020.0, 1940.0]),
        ({"compat": frozenset({"late_shares"})}, [250.0, 2020.0, 1940.0]),
        ({"compat": frozenset({"late_shares", "stale_arrival"})}, [250.0, 5100.0, 5020.0]),
    ],
)
def test_who_runs_with_a_share_only_gets_it_in_the_next_round(options: dict[str, Any], expected: list[float]) -> None:
    jobs = [Job(0.0, 0, 1, 250.0), Job(210.0, 0, 1, 100.0), Job(300.0, 0, 1, 20.0), Job(5000.0, 0, 1, 1.0)]
    assert ends(played(setting([4]), jobs, [1.0], strict=True, **options))[:3] == expected


def test_a_job_that_comes_while_nothing_runs_starts_at_once() -> None:
    jobs = [Job(50.0, 0, 1, 30.0), Job(90.0, 0, 1, 10.0), Job(777.5, 0, 1, 10.0)]
    assert ends(played(setting([1]), jobs, [1.0], strict=True)) == [80.0, 100.0, 787.5]


def test_an_allocation_is_due_when_time_has_come_to_it() -> None:
    """Although the difference of the two times is rounded to less than was asked for."""
    begin_s, gap_s = 50.3, 500.1
    assert begin_s + gap_s - begin_s < gap_s
    jobs = [Job(begin_s, 0, 1, 10.0), Job(200.0, 0, 1, 10.0)]
    assert ends(played(setting([1]), jobs, [1.0], strict=True, realloc_s=gap_s))[1] == begin_s + gap_s + 10.0


def test_whole_steps_make_rounds_shorter() -> None:
    where = setting([1], [[0.013]])
    assert ends(played(where, [Job(0.0, 0, 1, 2.6)], [1.0])) == [pytest.approx(200.0)]
    rounds = played(where, [Job(0.0, 0, 1, 2.6)], [1.0], compat=frozenset({"whole_steps"}))
    assert rounds.history[0][2].steps == [1.0]
    assert rounds.history[1][1] == 1 / 0.013


def test_a_gang_with_less_than_a_step_for_each_gpu_is_lost() -> None:
    where = setting([2], [[1.0]], sizes=(2,))
    assert ends(played(where, [Job(0.0, 0, 2, 1.0)], [1.0])) == [1.0]
    rounds = played(where, [Job(0.0, 0, 2, 1.0)], [1.0], compat=frozenset({"gang_last_chunk_failure"}))
    assert (rounds.outcomes[0].dropped, ends(rounds), rounds.rounds) == (True, [None], 6)


def test_nobody_waits_for_ever() -> None:
    plan = SharePlan(Fixed([0.0]), strict=True)
    rounds = Rounds(setting([1]), plan, RoundOptions(), [Job(0.0, 0, 1, 5.0)])
    with pytest.raises(PolicyError, match="a policy that lets some job run"):
        rounds.run()


def test_a_window_ends_when_its_jobs_have() -> None:
    jobs = [Job(0.0, 0, 1, 50.0), Job(0.0, 0, 1, 120.0), Job(0.0, 0, 1, 900.0)]
    rounds = played(setting([3]), jobs, [1.0], window=(0, 2))
    assert ends(rounds) == [50.0, 120.0, None]
    assert rounds.now_s == 200.0


def test_leases_are_kept_and_larger_gangs_choose_first() -> None:
    sizes: dict[Pair, int] = {(1,): 2, (2,): 1, (3,): 1, (4,): 2}
    before: dict[Pair, tuple[int, ...]] = {(2,): (0,), (1,): (2, 3)}
    given = gpus_given([(2,), (3,), (4,), (1,)], lambda c: sizes[c], before, range(6))
    assert given == {(1,): (2, 3), (4,): (0, 1), (2,): (4,), (3,): (5,)}

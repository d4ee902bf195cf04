"""First come, first served, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim.engine.shares.plan import RoundView
from fastsim.policies.allocators.fifo_queues import FastestQueue, HeldQueue
from tests.views import assert_resumes, assert_well_formed, gpus_used, histories, setting, shares, view


def test_the_fastest_model_with_room_in_order_of_arrival() -> None:
    where = setting([1, 2], [[1, 3]])
    assert shares(FastestQueue(False).allocate(view(where, [0] * 4))) == {0: [0, 1], 1: [0, 1], 2: [1, 0]}


def test_the_first_job_that_fits_nowhere_makes_the_others_wait() -> None:
    where = setting([2, 3], [[1, 2], [1, 2]], sizes=[1, 2])
    assert shares(FastestQueue(False).allocate(view(where, [1, 1, 1, 0]))) == {0: [0, 1], 1: [1, 0]}


def test_a_job_that_runs_on_no_model_with_room_is_passed_over() -> None:
    where = setting([1, 1], [[0, 2], [1, 1]])
    assert shares(FastestQueue(False).allocate(view(where, [0, 0, 1]))) == {0: [0, 1], 2: [1, 0]}


def test_equally_fast_models_go_by_name() -> None:
    assert shares(FastestQueue(False).allocate(view(setting([1, 1], [[2, 2]]), [0]))) == {0: [1, 0]}


def test_a_waiting_job_joins_where_both_together_gain_the_most() -> None:
    together = [[[0.8]], [[0.9]], [[0.5]]]  # of what each runs at alone, whoever the other is
    where = setting([2], [[1], [1], [1]], together)
    found = shares(FastestQueue(True).allocate(view(where, [0, 1, 0, 0])))
    assert found == {(1, 2): [1], (0, 3): [1]}  # 0.9 + 0.8 and then 0.8 + 0.8


def test_nobody_joins_for_one_and_a_half_or_less_and_the_queue_ends_there() -> None:
    where = setting([1], [[1], [1], [1]], [[[0.75]], [[0.75]], [[0.9]]])
    assert shares(FastestQueue(True).allocate(view(where, [0, 1, 2]))) == {0: [1]}
    assert shares(FastestQueue(True).allocate(view(where, [0, 2, 1]))) == {(0, 1): [1]}


def test_only_jobs_of_one_size_join() -> None:
    where = setting([2], [[1], [1]], 0.9, sizes=[1, 2])
    assert shares(FastestQueue(True).allocate(view(where, [1, 0]))) == {0: [1]}
    assert shares(FastestQueue(True).allocate(view(where, [1, 1]))) == {(0, 1): [1]}


def test_the_original_passes_over_the_first_job_that_waits_while_gpus_are_free() -> None:
    where = setting([3], [[1], [1]], 0.9, sizes=[1, 2])
    small, gang = 0, 1
    for waiting, joined in (([gang, small], {(0, 3): [1], 1: [1]}), ([gang, gang], {0: [1], 1: [1]})):
        jobs = view(where, [small, small, *waiting])
        assert shares(FastestQueue(True, compat=True).allocate(jobs)) == joined
        assert shares(FastestQueue(True).allocate(jobs)) == {0: [1], 1: [1]}
    full = view(where, [small] * 3 + [small, gang])
    assert shares(FastestQueue(True, compat=True).allocate(full)) == {(0, 3): [1], 1: [1], 2: [1]}


def test_a_job_keeps_its_model_until_it_ends() -> None:
    where = setting([1, 1], [[1, 1]])
    queue = HeldQueue(0, compat=False)
    before = shares(queue.allocate(view(where, [0, 0, 0])))
    assert set(before) == {0, 1} and before[0] != before[1]
    after = shares(queue.allocate(view(where, [0, 0], ids=[1, 2])))
    assert after == {1: before[1], 2: before[0]}


def test_a_drawn_model_has_room_and_can_run_the_job() -> None:
    where = setting([3, 1, 1], [[0, 1, 2], [1, 1, 1]], sizes=[1, 2])
    for seed in range(20):
        found = shares(HeldQueue(seed, compat=False).allocate(view(where, [1, 0, 0, 0])))
        assert found[0] == [1, 0, 0]
        assert {1, 2} <= set(found) and 3 not in found
        assert [one + two for one, two in zip(found[1], found[2], strict=True)] == [0, 1, 1]


def test_the_original_takes_the_last_listed_model_beyond_its_gpus() -> None:
    # Jobs on 2 GPUs take b although it has 1 left; b leaves the list only when exactly 0 are left and b was drawn.
    where = setting([8, 3], [[1, 1]], sizes=[2])
    found = shares(HeldQueue(1, compat=True).allocate(view(where, [0] * 6)))
    assert found == {job: [0, 1] for job in range(6)}
    clean = shares(HeldQueue(1, compat=False).allocate(view(where, [0] * 6)))
    assert sum(share == [0, 1] for share in clean.values()) == 1 and len(clean) == 5


def test_the_original_hands_the_model_of_a_job_that_ended_to_the_head_of_the_queue() -> None:
    where = setting([1], [[1]])
    queue = HeldQueue(0, compat=True)
    assert shares(queue.allocate(view(where, [0, 0, 0]))) == {0: [1]}
    assert shares(queue.allocate(view(where, [0, 0], ids=[1, 2]))) == {1: [1]}


@pytest.mark.parametrize("compat", [False, True])
@given(views=histories(), cut=st.integers(0, 10))
def test_a_resumed_queue_answers_the_same(compat: bool, views: list[RoundView], cut: int) -> None:
    assert_resumes(lambda: HeldQueue(7, compat), views, cut)
    assert_resumes(lambda: FastestQueue(packed=True), views, cut)


@given(views=histories(), mode=st.sampled_from(["base", "perf", "packed"]))
def test_no_model_is_given_beyond_its_gpus(views: list[RoundView], mode: str) -> None:
    queue = HeldQueue(1, compat=False) if mode == "base" else FastestQueue(mode == "packed")
    assert queue.allocate(view(views[0].setting, [])) is None
    for seen in views:
        found = queue.allocate(seen)
        assert found is not None
        assert_well_formed(found, seen)
        assert all(used <= gpus for used, gpus in zip(gpus_used(found, seen), seen.setting.gpus__g, strict=True))

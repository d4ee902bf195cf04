"""Matching of jobs with places, by hand and against every order of every queue."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim.engine.shares.plan import RoundView, ShareAllocator
from fastsim.errors import PolicyError
from fastsim.policies.allocators.allox_queues import MatchedPlaces
from tests.views import assert_resumes, assert_well_formed, gpus_used, histories, setting, shares, view

COMPAT = pytest.mark.parametrize("compat", [False, True])


@COMPAT
def test_the_shortest_job_starts(compat: bool) -> None:
    found = MatchedPlaces(1.0, compat).allocate(view(setting([1], [[2]]), [0, 0, 0], steps=[20, 10, 30]))
    assert shares(found) == {1: [1]}


@COMPAT
def test_each_job_goes_where_all_end_soonest(compat: bool) -> None:
    # Both are faster on b, kind 1 by far: 10 + 2 in all if kind 0 takes a, 2 + 10.33 if it waits for b.
    where = setting([1, 1], [[1, 1.2], [1, 5]])
    assert shares(MatchedPlaces(1.0, compat).allocate(view(where, [0, 1], steps=10))) == {0: [1, 0], 1: [0, 1]}
    # A GPU that takes longer than waiting stays idle: 10 + 20 on b against 10 + 100.
    slow = setting([1, 1], [[0.1, 1]])
    assert shares(MatchedPlaces(1.0, compat).allocate(view(slow, [0, 0], steps=[11, 10]))) == {1: [0, 1]}


@COMPAT
def test_a_job_that_started_stays_and_the_free_gpu_goes_to_another(compat: bool) -> None:
    where = setting([1, 1], [[1, 1]])
    places = MatchedPlaces(1.0, compat)
    before = shares(places.allocate(view(where, [0, 0], steps=[10, 20])))
    assert set(before) == {0, 1}
    after = shares(places.allocate(view(where, [0, 0, 0], ids=[1, 2, 3], steps=[20, 5, 4])))
    assert after == {1: before[1], 3: before[0]}


@COMPAT
def test_a_part_of_the_jobs_are_the_oldest_but_never_fewer_than_free_gpus(compat: bool) -> None:
    seen = view(setting([1], [[1]]), [0] * 4, steps=[10, 9, 2, 1], age_s=[5, 8, 1, 1])
    assert shares(MatchedPlaces(0.5, compat).allocate(seen)) == {1: [1]}
    assert shares(MatchedPlaces(0.0, compat).allocate(seen)) == {1: [1]}
    assert shares(MatchedPlaces(0.75, compat).allocate(seen)) == {2: [1]}
    wide = view(setting([2], [[1]]), [0] * 4, steps=[10, 9, 2, 1], age_s=[5, 8, 1, 1])
    assert set(shares(MatchedPlaces(0.0, compat).allocate(wide))) == {0, 1}


def test_a_job_that_runs_on_no_free_model_waits() -> None:
    where = setting([1, 1], [[0, 1], [1, 1]])
    places = MatchedPlaces(1.0, compat=False)
    assert shares(places.allocate(view(where, [0, 0], steps=[1, 2]))) == {0: [0, 1]}
    assert shares(places.allocate(view(where, [0, 0, 1], steps=[1, 2, 9]))) == {0: [0, 1], 2: [1, 0]}


@COMPAT
def test_jobs_on_several_gpus_are_refused(compat: bool) -> None:
    seen = view(setting([4], [[1], [1]], sizes=[1, 2]), [0, 1], ids=[3, 4])
    with pytest.raises(PolicyError, match="policy allox: found job 4 on 2 GPUs, expected jobs on 1 GPU"):
        MatchedPlaces(1.0, compat).allocate(seen)


def best_starts(once_s: np.ndarray, gpu_model: list[int]) -> set[tuple[tuple[int, int], ...]]:
    """The (job, model) that start in the orders with the smallest sum of completion times: tries every one."""
    jobs = range(len(once_s))
    best, starts = np.inf, set[tuple[tuple[int, int], ...]]()
    for where in product(range(len(gpu_model)), repeat=len(once_s)):
        queues = [[job for job in jobs if where[job] == gpu] for gpu in range(len(gpu_model))]
        for orders in product(*map(permutations, queues)):
            counted = [
                (len(order) - nth) * float(once_s[job, model])
                for order, model in zip(orders, gpu_model, strict=True)
                for nth, job in enumerate(order)
            ]
            total = sum(counted)
            if total < best - 1e-9:  # sums of a few numbers below 1000
                best, starts = total, set()
            if total < best + 1e-9:
                heads = zip(orders, gpu_model, strict=True)
                starts.add(tuple(sorted((order[0], model) for order, model in heads if order)))
    return starts


@COMPAT
@given(
    rates=st.lists(st.tuples(*[st.sampled_from([0.5, 1.0, 2.0, 3.0])] * 2), min_size=1, max_size=4),
    gpus=st.sampled_from([(1, 1), (2, 1), (1, 2)]),
    data=st.data(),
)
def test_heads_are_those_of_a_best_order(
    compat: bool, rates: list[tuple[float, float]], gpus: tuple[int, int], data: st.DataObject
) -> None:
    steps = data.draw(st.lists(st.integers(1, 40), min_size=len(rates), max_size=len(rates)))
    where = setting(gpus, rates)
    found = shares(MatchedPlaces(1.0, compat).allocate(view(where, list(range(len(rates))), steps=steps)))
    started = tuple(sorted((job, share.index(1.0)) for job, share in found.items() if isinstance(job, int)))
    once_s = np.array(steps)[:, None] / np.array(rates)
    assert started in best_starts(once_s, [0] * gpus[0] + [1] * gpus[1])


@COMPAT
@given(views=histories(sizes=(1, 1, 1)), cut=st.integers(0, 10))
def test_shares_fit_in_the_cluster_and_survive_a_resume(compat: bool, views: list[RoundView], cut: int) -> None:
    def begun() -> ShareAllocator:
        return MatchedPlaces(0.8, compat)

    places = begun()
    assert places.allocate(view(views[0].setting, [])) is None
    for seen in views:
        found = places.allocate(seen)
        assert found is not None
        assert_well_formed(found, seen)
        assert all(used <= gpus for used, gpus in zip(gpus_used(found, seen), seen.setting.gpus__g, strict=True))
    assert_resumes(begun, views, cut)

"""Estimated rates of pairs, by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim.engine.rounds.options import Setting
from fastsim.engine.shares.plan import RoundView
from fastsim.errors import PolicyError
from fastsim.policies.allocators.pair_rate_estimates import Estimates, completed
from fastsim.policies.allocators.partners import normalised_rate
from fastsim.policies.shares.pair_rate_estimator import Estimator
from tests.views import setting, view

ALONE = [[4.0, 2.0], [8.0, 2.0], [2.0, 1.0]]
# Kind 1 does to others and suffers from them what kind 0 does, times its own speed; kind 2 is another matter.
PART = np.array(
    [[[0.5, 0.5], [0.5, 0.5], [1.0, 0.1]], [[0.5, 0.5], [0.5, 0.5], [1.0, 0.1]], [[0.2, 1.0], [0.2, 1.0], [1.0, 1.0]]]
)
SHARED = PART * np.array(ALONE)[:, None, :]


def where(seed: int = 0) -> Setting:
    """Three kinds on two models."""
    return setting([2, 2], ALONE, SHARED, seed=seed)


def seed_of(references: list[int]) -> int:
    """A seed whose draws make these kinds the references."""
    return next(seed for seed in range(99) if Estimator(references=2).begin(where(seed)).reference == references)


def estimated(estimates: Estimates, seen: RoundView, first: list[int], second: list[int]) -> tuple[object, object]:
    one, two = estimates(seen, np.array(first), np.array(second))
    return one.tolist(), two.tolist()


def test_a_job_is_taken_for_the_reference_it_is_most_alike() -> None:
    estimates = Estimator(references=2).begin(where(seed_of([1, 2])))
    for job, kind in enumerate([0, 1, 2]):
        estimates.arrive(job, kind)
    assert [estimates.alike(job) for job in range(3)] == ["w1", "w1", "w2"]


def test_the_first_of_equal_references_is_taken() -> None:
    estimates = Estimator(references=2).begin(where(seed_of([0, 1])))
    estimates.arrive(7, 1)
    assert estimates.alike(7) == "w0"


def test_believed_rates_are_those_of_the_references_at_the_jobs_own_speed() -> None:
    estimates = Estimator(references=2).begin(where(seed_of([0, 1])))
    seen = view(where(), [0, 2])
    # The job of kind 2 is taken for one of kinds 0 and 1, which share by halves.
    assert estimated(estimates, seen, [0], [1]) == ([[2.0, 1.0]], [[1.0, 0.5]])
    assert seen.pair_rates(np.array([0]), np.array([1]))[0].tolist() == [[4.0, 0.2]]


def test_a_pair_that_has_run_is_known_on_that_model_only() -> None:
    estimates = Estimator(references=2).begin(where(seed_of([0, 1])))
    seen = view(where(), [0, 2, 0], ids=[5, 6, 7])
    estimates.observe(6, 5, 1)
    assert estimated(estimates, seen, [0, 1, 0], [1, 2, 2]) == (
        [[2.0, 0.2], [1.0, 0.5], [2.0, 1.0]],
        [[1.0, 1.0], [2.0, 1.0], [2.0, 1.0]],
    )
    estimates.observe(5, 6, 0)
    assert estimated(estimates, seen, [1], [0]) == ([[0.4, 1.0]], [[4.0, 0.2]])
    estimates.leave(5)
    again = view(where(), [0, 2], ids=[5, 6])  # another job of that number
    assert estimated(estimates, again, [0], [1]) == ([[2.0, 1.0]], [[1.0, 0.5]])


def test_without_measurements_the_guess_is_made_of_the_references_alone() -> None:
    estimates = Estimator(profiled=0.0).begin(where())
    estimates.arrive(0, 2)
    assert estimates.alike(0) in ("w0", "w1", "w2")


def test_the_originals_columns_are_those_of_other_workloads() -> None:
    # Of the flat profile (model a with w0 w1 w2, model b with w0 w1 w2) the original reads the first four entries.
    alone = [[1.0, 1.0]] * 3
    shared = np.zeros((3, 3, 2))
    shared[0], shared[1], shared[2] = [[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]], [[0.1, 0.9]] * 3, [[0.9, 0.1]] * 3
    alike = []
    for bug in (False, True):
        place = setting([1, 1], alone, shared, seed=seed_of([1, 2]))
        estimates = Estimator(references=2, estimator_column_bug=bug).begin(place)
        estimates.arrive(0, 0)
        alike.append(estimates.alike(0))
    # With w1 and w2: (0.1, 0.5 | 0.9, 0.5) is near w1's (0.1, 0.1 | 0.9, 0.9); (0.9, 0.1 | 0.5, 0.1) is near w2's.
    assert alike == ["w1", "w2"]


def test_a_profile_of_zeros_is_like_any_reference() -> None:
    place = setting([1, 1], ALONE, 0.0)
    found = set()
    for seed in range(20):
        estimates = Estimator().begin(Setting(place.gpu_models, place.gpus__g, place.oracle, place.reference__k, seed))
        estimates.arrive(0, 1)
        found.add(estimates.alike(0))
    assert found == {"w0", "w1", "w2"}


def test_jobs_without_a_profile_are_refused() -> None:
    wide = setting([4, 4], ALONE, SHARED, sizes=[1, 1, 2])
    with pytest.raises(PolicyError, match="job 3 of a kind without a profile, expected known workloads on 1 GPU"):
        Estimator().begin(wide).arrive(3, 2)


@given(
    kinds=st.lists(st.integers(0, 2), min_size=2, max_size=8),
    cut=st.integers(0, 8),
    profiled=st.sampled_from([0.3, 1.0]),
    seed=st.integers(-1, 50),
)
def test_resumed_estimates_are_the_same(kinds: list[int], cut: int, profiled: float, seed: int) -> None:
    estimator = Estimator(profiled, 2)
    whole, broken = (estimator.begin(where(seed)) for _ in range(2))
    for job, kind in enumerate(kinds):
        if job == cut:
            memory = json.loads(json.dumps(broken.state()))
            broken = estimator.begin(where(seed))
            broken.restore(memory)
        for estimates in (whole, broken):
            estimates.arrive(job, kind)
            estimates.observe(0, job, job % 2)
    seen, rows = view(where(), kinds), np.triu_indices(len(kinds), 1)
    one, two = whole(seen, *rows)
    for found, expected in zip(broken(seen, *rows), (one, two), strict=True):
        assert (found == expected).all()
    assert ((one >= 0) & (one <= np.array(ALONE)[kinds][rows[0]] + 1e-12)).all()  # a product of a rounded quotient


def test_a_policy_for_pairs_believes_them() -> None:
    place = setting([1, 0], ALONE, SHARED * 0.45, seed=seed_of([0, 1]))
    blind = view(place, [2, 2])
    told = RoundView(**{**vars(blind), "partner_rates": Estimator(references=2).begin(place)})
    pair = np.array([0]), np.array([1])
    # Two jobs of kind 2 have 0.45 of their rates, both on both models; they are taken to be like kind 0 with 0.225.
    assert normalised_rate(blind, *pair).tolist() == pytest.approx([1.8])
    assert normalised_rate(told, *pair).tolist() == pytest.approx([0.9])


def hidden(rank: int) -> tuple[np.ndarray, np.ndarray]:
    """A matrix of that rank, and one without its last row's second half as a mask."""
    random = np.random.default_rng(3)
    full = random.uniform(0.2, 1.0, (12, rank)) @ random.uniform(0.2, 1.0, (rank, 30))
    measured = np.ones_like(full)
    measured[-1, 15:] = 0.0
    return full, measured


@pytest.mark.parametrize("rank", [1, 2])
def test_missing_entries_of_a_simple_matrix_are_found(rank: int) -> None:
    full, measured = hidden(rank)
    found = completed(full * measured, measured, np.random.RandomState(0))
    # It stops while it still gets better, the ridge pulls towards 0, and there are more factors than needed.
    assert np.abs(found - full)[-1, 15:].mean() < 0.2 * full[-1, 15:].mean()
    assert np.corrcoef(found[-1, 15:], full[-1, 15:])[0, 1] > 0.9


def test_what_is_not_measured_does_not_count() -> None:
    full, measured = hidden(2)
    one = completed(full * measured, measured, np.random.RandomState(1))
    two = completed(np.where(measured > 0, full, 1e9), measured, np.random.RandomState(1))
    assert (one == two).all()


def test_the_same_draws_give_the_same_numbers_and_go_on() -> None:
    full, measured = hidden(2)
    draws, again = np.random.RandomState(5), np.random.RandomState(5)
    assert (completed(full, measured, draws) == completed(full, measured, again)).all()
    again.randn((12 + 30) * 0)
    assert draws.randn() == again.randn() == np.random.RandomState(5).randn(10 * (12 + 30) + 1)[-1]

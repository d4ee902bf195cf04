"""Jobs that are alike: classes, groups of pairs, and how a group's share comes back to its jobs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from fastsim.engine.shares.plan import ALONE, Floats, Ints, RoundView
from fastsim.policies.programs.job_classes import MOST_KEYS, alike, classes, grouped
from fastsim.policies.programs.share_program import Shares
from tests.rounds import oracle, rates_under, setting, view, views

TABLE = [[[0.5], [0.25]], [[0.75], [0.0]]]
"""Rates of kinds 0 and 1 while sharing: two jobs of kind 1 do not fit together."""


def three() -> RoundView:
    """Two jobs of kind 0 and between them one of kind 1, on 2 GPUs."""
    return view(setting(oracle([[1.0], [2.0]], TABLE), [2]), [0, 1, 0])


def test_classes_and_their_pairs() -> None:
    seen = three()
    groups = grouped(seen, seen.rate__jg, seen.kind, pairs=True)
    assert groups.class__j.tolist() == [0, 1, 0]
    assert (groups.size__c.tolist(), groups.example__c.tolist()) == ([2, 1], [0, 1])
    # Alone 0, alone 1, a pair within class 0, two pairs of the classes; class 1 has no two jobs.
    assert groups.first__r.tolist() == [0, 1, 0, 0]
    assert groups.second__r.tolist() == [ALONE, ALONE, 0, 1]
    assert groups.count__r.tolist() == [2, 1, 1, 2]
    assert groups.mass__r.tolist() == [2, 1, 1, 1]
    assert groups.rate__rg.ravel().tolist() == [1, 2, 0.5, 0.25]
    assert groups.partner_rate__rg.ravel().tolist() == [0, 0, 0.5, 0.75]
    assert groups.mixed == 3


def test_a_groups_share_is_spread_evenly() -> None:
    seen = three()
    groups = grouped(seen, seen.rate__jg, seen.kind, pairs=True)
    found = groups.allocation(seen, np.array([[0.25], [0.5], [0.5], [0.5]]), 0.125)
    assert list(zip(found.first.tolist(), found.second.tolist(), found.share__rg.ravel().tolist(), strict=True)) == [
        (0, ALONE, 0.25), (1, ALONE, 0.5), (2, ALONE, 0.25),
        (0, 1, 0.25), (0, 2, 0.5), (1, 2, 0.25),
    ]  # fmt: skip
    assert found.solver_s == 0.125


def test_pairs_without_a_share_or_without_a_rate_are_left_out() -> None:
    seen = three()
    groups = grouped(seen, seen.rate__jg, seen.kind, pairs=True)
    found = groups.allocation(seen, np.array([[0.25], [0.5], [0.0], [0.0]]), 0.0)
    assert found.second.tolist() == [ALONE] * 3
    blocked = view(setting(oracle([[1.0], [2.0]], TABLE), [2]), [1, 1])
    assert grouped(blocked, blocked.rate__jg, blocked.kind, pairs=True).first__r.tolist() == [0]


def test_only_equal_numbers_of_gpus_share() -> None:
    shared = np.full((2, 2, 1), 0.9)
    seen = view(setting(oracle([[1.0], [1.0]], shared, num_gpu=[1, 2]), [4]), [0, 1])
    assert grouped(seen, seen.rate__jg, seen.kind, pairs=True).second__r.tolist() == [ALONE, ALONE]


def test_estimates_keep_jobs_of_one_kind_apart() -> None:
    def guess(view: RoundView, first: Ints, second: Ints) -> tuple[Floats, Floats]:
        return np.array(0.1 * (1 + first[:, None])), np.array(0.1 * (1 + second[:, None]))

    seen = replace(three(), partner_rates=guess)
    groups = grouped(seen, seen.rate__jg, seen.kind, pairs=True)
    assert groups.size__c.tolist() == [1, 1, 1]
    assert groups.rate__rg[3:].ravel() == pytest.approx([0.1, 0.1, 0.2])
    assert groups.partner_rate__rg[3:].ravel() == pytest.approx([0.2, 0.3, 0.3])


def test_rows_are_alike_if_every_column_is_equal() -> None:
    numbers = alike(np.array([3, 3, 1, 3]), np.array([0.5, 2.0, 0.5, 0.5]))
    assert numbers[0] == numbers[3]
    assert len(set(numbers.tolist())) == 3


def test_every_combination_of_values_has_a_number_of_its_own() -> None:
    one, two = np.repeat([7, 5, 6], 3), np.tile([0.5, 2.0, 1.0], 3)
    numbers = alike(one, two)
    assert numbers.dtype == np.int64 and numbers.min() >= 0 and len(set(numbers.tolist())) == 9


def test_pairs_are_in_order_of_their_first_members() -> None:
    seen = view(setting(oracle([[1.0]], [[[0.5]]]), [2]), [0, 0, 0, 0])
    groups = grouped(seen, seen.rate__jg, seen.kind, pairs=True)
    assert (groups.count__r.tolist(), groups.mass__r.tolist()) == ([4, 6], [4, 2])
    found = groups.allocation(seen, np.array([[0.0], [0.75]]), 0.0)
    pairs = list(zip(found.first[4:].tolist(), found.second[4:].tolist(), strict=True))
    assert pairs == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert found.share__rg[4:].ravel().tolist() == [0.25] * 6  # each job is in three: 0.75 of its time


def test_groups_that_run_nowhere_can_be_added_again() -> None:
    # Three jobs of kind 1, which do not fit together, and two of kind 0, for which kind 1 leaves nothing.
    table = [[[0.5], [0.0]], [[0.0], [0.0]]]
    seen = view(setting(oracle([[1.0], [2.0]], table), [2]), [0, 1, 1, 0, 1])
    groups = grouped(seen, seen.rate__jg, seen.kind, pairs=True)
    assert (groups.first__r.tolist(), groups.second__r.tolist()) == ([0, 1, 0], [ALONE, ALONE, 0])
    whole = groups.whole()
    assert (whole.first__r.tolist(), whole.second__r.tolist()) == ([0, 1, 0, 1, 0], [ALONE, ALONE, 0, 1, 1])
    assert whole.count__r.tolist() == [2, 3, 1, 3, 6]
    assert whole.mass__r.tolist() == [2, 3, 1, 1.5, 2]
    assert whole.rate__rg.ravel().tolist() == [1, 2, 0.5, 0, 0]
    assert whole.partner_rate__rg.ravel().tolist() == [0, 0, 0.5, 0, 0]
    assert len(whole.idle[0]) == len(whole.idle[1]) == 0


@settings(max_examples=60)
@given(views(sizes=(1, 2)))
def test_the_rate_of_a_class_is_the_rate_of_each_of_its_jobs(seen: RoundView) -> None:
    groups = grouped(seen, seen.rate__jg, seen.kind, pairs=True)
    random = np.random.default_rng(len(seen))
    share = random.uniform(0.001, 1, groups.rate__rg.shape)
    rate = Shares(seen, groups).rate__c(share)[groups.class__j]
    assert rates_under(seen, groups.allocation(seen, share, 0.0)) == pytest.approx(rate, rel=1e-12)


def test_classes_are_the_same_counted_or_sorted() -> None:
    random = np.random.default_rng(3)
    for many in (1, 7, 300):
        keys = random.integers(0, 20, many)
        counted, sorted_ = classes(keys), classes(keys * (MOST_KEYS + 1) + MOST_KEYS)
        for one, two in zip(counted, sorted_, strict=True):
            assert one.tolist() == two.tolist()
        example, of, size = counted
        assert keys[example][of].tolist() == keys.tolist() and size.sum() == many

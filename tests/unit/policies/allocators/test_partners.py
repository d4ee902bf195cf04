"""Pairs drawn at random, by hand."""

from __future__ import annotations

import json
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim.engine.shares.plan import RoundView
from fastsim.policies.allocators.partners import DrawnPartners, draw_state, draws_from, normalised_rate
from tests.views import assert_resumes, assert_well_formed, gpus_used, histories, setting, shares, view


def test_with_gpus_for_all_every_job_has_its_part() -> None:
    where = setting([1, 3], [[1, 1]])
    assert shares(DrawnPartners(0).allocate(view(where, [0] * 4))) == {job: [0.25, 0.75] for job in range(4)}


def test_with_fewer_gpus_pairs_and_the_job_left_over_have_equal_parts() -> None:
    found = shares(DrawnPartners(3).allocate(view(setting([1, 2], [[1, 1]]), [0] * 5)))
    assert list(found.values()) == [[1 / 3, 2 / 3]] * 3
    members = [job for key in found for job in (key if isinstance(key, tuple) else (key,))]
    assert sorted(members) == [0, 1, 2, 3, 4]


def test_a_pair_stays_while_both_do_well() -> None:
    where = setting([1], [[1]], 0.5)  # two halves are worth one job, which is enough
    partners = DrawnPartners(0)
    before = shares(partners.allocate(view(where, [0] * 4)))
    assert shares(partners.allocate(view(where, [0] * 4))) == before
    gone, other = next(key for key in before if isinstance(key, tuple) and 0 not in key)
    assert gone != 0
    after = shares(partners.allocate(view(where, [0] * 3, ids=sorted({0, 1, 2, 3} - {gone}))))
    assert set(after) == {key for key in before if gone not in (key if isinstance(key, tuple) else (key,))} | {other}


@pytest.mark.parametrize("together", [0.4, 0.0])
def test_a_pair_that_does_badly_is_drawn_again(together: float) -> None:
    partners = DrawnPartners(1)
    seen = view(setting([1], [[1]], together), [0] * 30)
    assert shares(partners.allocate(seen)) != shares(partners.allocate(seen))


def test_jobs_of_different_sizes_never_share() -> None:
    seen = view(setting([2], [[1], [1]], 0.9, sizes=[1, 2]), [0, 1])
    assert shares(DrawnPartners(0).allocate(seen)) == {0: [1.0], 1: [0.5]}


def test_the_normalised_rate_is_0_where_one_job_stands_still() -> None:
    together = np.array([[[2.0, 1.0], [1.0, 0.0]], [[3.0, 3.0], [1.0, 1.0]]])
    seen = view(setting([1, 1], [[4, 2], [6, 3]], together), [0, 0, 1, 1])
    one = np.array([0, 0, 2])
    two = np.array([1, 2, 3])
    assert normalised_rate(seen, one, two).tolist() == [2.0, 0.0, 1.0]  # 2 * (2/4 + 1/2); 0/2; 2 * (1/6 + 1/3)


@given(views=histories(), cut=st.integers(0, 10))
def test_shares_fit_in_the_cluster_and_survive_a_resume(views: list[RoundView], cut: int) -> None:
    partners = DrawnPartners(2)
    assert partners.allocate(view(views[0].setting, [])) is None
    for seen in views:
        found = partners.allocate(seen)
        assert found is not None
        assert_well_formed(found, seen)
        # Sums of up to twenty quotients.
        assert all(used <= gpus + 1e-9 for used, gpus in zip(gpus_used(found, seen), seen.setting.gpus__g, strict=True))
    assert_resumes(lambda: DrawnPartners(2), views, cut)


def test_the_next_draws_are_the_same() -> None:
    stream = Random(5)
    stream.gauss(0, 1)  # leaves a spare number behind
    again = draws_from(json.loads(json.dumps(draw_state(stream))))
    assert [again.random(), again.gauss(0, 1)] == [stream.random(), stream.gauss(0, 1)]
    assert again.sample(range(100), 2) == stream.sample(range(100), 2)

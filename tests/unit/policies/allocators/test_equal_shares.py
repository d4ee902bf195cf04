"""Equal and proportional shares by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from fastsim.engine.shares.plan import ALONE, RoundView
from fastsim.policies.allocators.equal_shares import (
    IsolatedShares,
    ProportionalShares,
    part_of_cluster,
    singles_and_pairs,
)
from tests.views import assert_resumes, assert_well_formed, gpus_used, histories, setting, shares, view


def test_each_of_many_jobs_has_its_part_of_every_model() -> None:
    where = setting([2, 6], [[1, 1]])
    assert shares(IsolatedShares().allocate(view(where, [0] * 10))) == {job: [0.2, 0.6] for job in range(10)}


def test_few_jobs_have_no_more_than_their_time() -> None:
    where = setting([2, 6], [[1, 1]])
    assert shares(IsolatedShares().allocate(view(where, [0, 0]))) == {0: [0.25, 0.75], 1: [0.25, 0.75]}


@pytest.mark.parametrize(("per_gpu", "wide"), [(True, [0.25, 0.25]), (False, [0.5, 0.5])])
def test_a_job_on_two_gpus_has_half_the_time_if_parts_are_of_gpus(per_gpu: bool, wide: list[float]) -> None:
    where = setting([2, 2], [[1, 1], [1, 1]], sizes=[1, 2])
    found = shares(IsolatedShares(per_gpu).allocate(view(where, [0, 1, 1, 0])))
    assert found == {0: [0.5, 0.5], 1: wide, 2: wide, 3: [0.5, 0.5]}


def test_parts_may_be_fewer_than_jobs() -> None:
    where = setting([2, 2], [[1, 1]], sizes=[2])
    seen = view(where, [0, 0, 0, 0])
    assert part_of_cluster(seen, 8, seen.num_gpu).tolist() == [[0.125, 0.125]] * 4
    assert part_of_cluster(seen, 8).tolist() == [[0.25, 0.25]] * 4


def test_a_proportional_share_does_not_follow_the_number_of_jobs() -> None:
    where = setting([1, 3], [[1, 1]])
    for count in (1, 2, 8):
        found = shares(ProportionalShares().allocate(view(where, [0] * count)))
        assert found == {job: [0.25, 0.75] for job in range(count)}


@pytest.mark.parametrize("begun", [IsolatedShares, ProportionalShares])
def test_without_jobs_there_is_nothing_to_say(begun: type[Any]) -> None:
    assert begun().allocate(view(setting([1], [[1]]), [])) is None


@given(histories())
def test_isolated_shares_fit_in_the_cluster(views: list[RoundView]) -> None:
    for seen in views:
        found = IsolatedShares().allocate(seen)
        assert found is not None
        assert_well_formed(found, seen)
        # Sums of up to twenty quotients.
        assert all(used <= gpus + 1e-9 for used, gpus in zip(gpus_used(found, seen), seen.setting.gpus__g, strict=True))
    assert_resumes(IsolatedShares, views, len(views) // 2)
    assert_resumes(ProportionalShares, views, len(views) // 2)


def test_pairs_follow_the_singles_by_the_ids_of_their_jobs() -> None:
    job_id, alone = np.array([3, 5, 8, 9]), np.arange(4.0)[:, None] / 10
    found = singles_and_pairs(job_id, alone, [(3, 1), (0, 2)], np.array([[0.7], [0.8]]))
    assert found.first.tolist() == [3, 5, 8, 9, 3, 5]
    assert found.second.tolist() == [ALONE] * 4 + [8, 9]
    assert found.share__rg[:, 0].tolist() == [0.0, 0.1, 0.2, 0.3, 0.8, 0.7]


def test_without_pairs() -> None:
    assert singles_and_pairs(np.array([3]), np.ones((1, 2)), [], np.zeros((0, 2))).second.tolist() == [ALONE]

"""Places on the emptiest nodes: jobs that stay, jobs that choose."""

from __future__ import annotations

from fastsim.policies.deciders.emptiest_nodes import emptiest_first


def test_the_emptiest_node_comes_first_and_the_first_among_equals() -> None:
    assert emptiest_first([(7, 2), (3, 1)], {}, (4, 4)) == {7: (0, 0), 3: (1,)}


def test_a_job_of_several_nodes_takes_whole_ones_and_the_rest_from_the_next() -> None:
    assert emptiest_first([(0, 6)], {}, (2, 4, 4)) == {0: (1, 1, 1, 1, 2, 2)}


def test_jobs_that_stay_keep_their_nodes() -> None:
    found = emptiest_first([(0, 2), (1, 3)], {0: (1, 1)}, (4, 4))
    assert found == {0: (1, 1), 1: (0, 0, 0)}

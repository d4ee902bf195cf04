"""Sizes that jobs may have."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
import pytest
from hypothesis import given

from fastsim.errors import InputError, PolicyError
from fastsim.policies.deciders.configurations import Configurations, NodeShape, placed


def sizes(*group: int) -> list[tuple[int, int]]:
    """Nodes and GPUs of every configuration of one group."""
    found = Configurations((NodeShape("t4", *group),))
    return list(zip(found.nodes__q.tolist(), found.gpus__q.tolist(), strict=True))


def test_parts_of_a_node_are_powers_of_two_and_nodes_are_whole() -> None:
    assert sizes(3, 4) == [(1, 1), (1, 2), (1, 4), (2, 8), (3, 12)]
    assert sizes(2, 6) == [(1, 1), (1, 2), (1, 4), (1, 6), (2, 12)]
    assert sizes(3, 1) == [(1, 1), (2, 2), (3, 3)]


def test_jobs_have_bounds_in_nodes_and_gpus() -> None:
    assert sizes(3, 4, 1) == [(1, 1), (1, 2), (1, 4)]
    assert sizes(9, 8)[-1] == (8, 64)
    assert sizes(0, 4) == []
    assert sizes(2, 40) == [(1, 1), (1, 2), (1, 4), (1, 8), (1, 16), (1, 32), (1, 40)]
    assert sizes(1, 128)[-1] == (1, 128)  # a whole node, whatever its size


def test_groups_follow_each_other() -> None:
    found = Configurations((NodeShape("a", 1, 2), NodeShape("b", 0, 4), NodeShape("c", 1, 1)))
    assert found.group__q.tolist() == [0, 0, 2] and len(found) == 3
    assert found.spans == (slice(0, 2), slice(2, 2), slice(2, 3))
    assert found.gpus__g.tolist() == [2, 0, 1]


@pytest.mark.parametrize("wrong", [(-1, 4), (1, 0), (1, 4, -1)])
def test_what_makes_no_sense_is_refused(wrong: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="nodes of t4"):
        NodeShape("t4", *wrong)


def test_large_jobs_take_whole_nodes_and_small_ones_what_is_left() -> None:
    assert placed([1, 8, 2], [4, 4, 4]) == [[2], [0, 0, 0, 0, 1, 1, 1, 1], [2, 2]]
    assert placed([4, 4], [4, 4]) == [[0] * 4, [1] * 4]


def test_a_job_is_split_where_no_node_is_free() -> None:
    assert placed([3, 3, 2], [4, 4]) == [[0, 0, 0], [1, 1, 1], [0, 1]]


@given(st.lists(st.integers(1, 12), max_size=8), st.integers(1, 8), st.integers(1, 8))
def test_every_job_gets_its_gpus_and_no_gpu_is_given_twice(sizes: list[int], nodes: int, per_node: int) -> None:
    free = [per_node] * nodes
    if sum(sizes) > sum(free):
        with pytest.raises(PolicyError, match="GPUs requested"):
            placed(sizes, free)
        return
    found = placed(sizes, free)
    assert [len(gpus) for gpus in found] == sizes
    used = Counter(node for gpus in found for node in gpus)
    assert all(used[node] <= per_node for node in used)
    if all(size & (size - 1) == 0 for size in (*sizes, per_node)):  # powers of two never split within a node
        assert all(len(set(gpus)) == -(-len(gpus) // per_node) for gpus in found)

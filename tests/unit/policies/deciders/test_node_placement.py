"""Places on nodes: every GPU once, whole nodes where possible."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
import pytest
from hypothesis import given

from fastsim.errors import PolicyError
from fastsim.policies.deciders.node_placement import placed


def test_large_jobs_take_whole_nodes_and_small_ones_what_is_left() -> None:
    assert placed([1, 8, 2], [4, 4, 4]) == [[2], [0, 0, 0, 0, 1, 1, 1, 1], [2, 2]]
    assert placed([4, 4], [4, 4]) == [[0] * 4, [1] * 4]


def test_a_job_is_split_where_no_node_is_free() -> None:
    assert placed([3, 3, 2], [4, 4]) == [[0, 0, 0], [1, 1, 1], [0, 1]]


@given(st.lists(st.integers(1, 12), max_size=8), st.integers(1, 8), st.integers(1, 8))
def test_every_job_gets_its_gpus_and_no_gpu_is_given_twice(sizes: list[int], nodes: int, per_node: int) -> None:
    free = [per_node] * nodes
    if sum(sizes) > sum(free):
        with pytest.raises(PolicyError, match="GPUs asked for"):
            placed(sizes, free)
        return
    found = placed(sizes, free)
    assert [len(gpus) for gpus in found] == sizes
    used = Counter(node for gpus in found for node in gpus)
    assert all(used[node] <= per_node for node in used)
    if all(size & (size - 1) == 0 for size in (*sizes, per_node)):  # powers of two never split within a node
        assert all(len(set(gpus)) == -(-len(gpus) // per_node) for gpus in found)

"""Sizes that jobs may have."""

from __future__ import annotations

import pytest

from fastsim.errors import InputError
from fastsim.policies.deciders.configurations import Configurations, NodeGroup


def sizes(*group: int) -> list[tuple[int, int]]:
    """Nodes and GPUs of every configuration of one group."""
    found = Configurations((NodeGroup("t4", *group),))
    return list(zip(found.nodes__q.tolist(), found.gpus__q.tolist(), strict=True))


def test_parts_of_a_node_are_powers_of_two_and_nodes_are_whole() -> None:
    assert sizes(3, 4) == [(1, 1), (1, 2), (1, 4), (2, 8), (3, 12)]
    assert sizes(2, 6) == [(1, 1), (1, 2), (1, 4), (1, 6), (2, 12)]
    assert sizes(3, 1) == [(1, 1), (2, 2), (3, 3)]


def test_jobs_have_bounds_in_nodes_and_gpus() -> None:
    assert sizes(3, 4, 1) == [(1, 1), (1, 2), (1, 4)]
    assert sizes(9, 8)[-1] == (8, 64)
    assert sizes(0, 4) == []


def test_groups_follow_each_other() -> None:
    found = Configurations((NodeGroup("a", 1, 2), NodeGroup("b", 0, 4), NodeGroup("c", 1, 1)))
    assert found.group__q.tolist() == [0, 0, 2] and len(found) == 3
    assert found.spans == (slice(0, 2), slice(2, 2), slice(2, 3))
    assert found.gpus__g.tolist() == [2, 0, 1]


@pytest.mark.parametrize("wrong", [(-1, 4), (1, 0), (1, 4, -1)])
def test_what_makes_no_sense_is_refused(wrong: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="nodes of t4"):
        NodeGroup("t4", *wrong)

"""Pollux's virtual nodes, and what jobs keep of them."""

from __future__ import annotations

import numpy as np
import pytest

from fastsim.engine.adaptive.plan import AdaptiveSetting, NodeGroup, Place
from fastsim.policies.deciders.pollux_virtual_nodes import Counts, VirtualNodes
from tests.adaptive import APPS, adaptive_setting

MODELS = dict.fromkeys(("aws", "dgx-ext", "rtx"))


def row(*gpus: int) -> Counts:
    return np.array(gpus, np.int32)


def test_large_nodes_are_split() -> None:
    nodes = VirtualNodes(adaptive_setting())
    assert nodes.owner__n == ((0, 0), (0, 1), (1, 0), (1, 0), (2, 0), (2, 0))
    assert (len(nodes), nodes.gpus, nodes.most_replicas) == (6, 4, 8)


@pytest.mark.parametrize(("sizes", "gpus"), [((8, 8), 4), ((2,), 2), ((3, 3), 1), ((6, 6), 2)])
def test_virtual_nodes_fill_every_node(sizes: tuple[int, ...], gpus: int) -> None:
    group = NodeGroup("rtx", sizes, tuple(range(len(sizes))))
    nodes = VirtualNodes(AdaptiveSetting((group,), APPS, 60.0))
    assert nodes.gpus == gpus
    assert len(nodes) * gpus == sum(sizes)


def test_a_job_keeps_the_model_it_has_most_of() -> None:
    nodes = VirtualNodes(adaptive_setting())
    assert nodes.one_model(row(1, 2, 0, 2, 0, 0), MODELS).tolist() == [1, 2, 0, 0, 0, 0]
    assert nodes.one_model(row(1, 1, 0, 0, 3, 0), MODELS).tolist() == [0, 0, 0, 0, 3, 0]
    assert nodes.one_model(row(2, 0, 0, 2, 0, 0), MODELS).tolist() == [0, 0, 0, 2, 0, 0]  # preferred
    assert nodes.one_model(row(2, 0, 0, 2, 0, 0), MODELS, preferred=False).tolist() == [2, 0, 0, 0, 0, 0]  # the first
    assert nodes.one_model(row(2, 0, 0, 3, 0, 0), MODELS, preferred=False).tolist() == [0, 0, 0, 3, 0, 0]
    assert nodes.one_model(row(2, 0, 0, 0, 0, 2), MODELS).tolist() == [0, 0, 0, 0, 0, 2]
    assert nodes.one_model(row(4, 4, 0, 0, 1, 0), {"rtx": None}).tolist() == [0, 0, 0, 0, 1, 0]  # never measured there
    assert not nodes.one_model(row(0, 0, 0, 0, 0, 0), MODELS).any()


def test_places_are_real_nodes() -> None:
    nodes = VirtualNodes(adaptive_setting())
    assert nodes.place(row(0, 0, 3, 4, 0, 0)) == Place(1, (0,) * 7)
    assert nodes.place(row(2, 1, 0, 0, 0, 0)) == Place(0, (0, 0, 1))


def test_fixed_jobs_get_all_or_nothing() -> None:
    nodes = VirtualNodes(adaptive_setting())
    rows = [row(1, 0, 0, 0, 0, 0), row(0, 3, 0, 0, 0, 0), row(0, 0, 1, 0, 0, 0), row(0, 0, 0, 0, 0, 0)]
    found = nodes.whole(rows, [2, 8, 0, 4])
    assert [part.tolist() for part in found] == [[0] * 6, [4, 4, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0] * 6]
    found = nodes.whole(rows[:2], [2, 5])  # the large one first, then where most is left
    assert [part.tolist() for part in found] == [[0, 2, 0, 0, 0, 0], [4, 1, 0, 0, 0, 0]]

"""The integer program of layouts: its bound is never below what the engine hosts, and its groups are of alike nodes."""

from __future__ import annotations

import random

import pytest

import fastsim as fs
from fastsim.decisions.what_if.layout_program import LayoutProgram, groups_of, pod_classes
from fastsim.decisions.what_if.mig_layouts import mig_plan
from fastsim.decisions.what_if.present_cluster import PresentCluster
from tests.unit.decisions.what_if.test_mig_layouts import PROFILES, cluster_of, pods_of


def test_alike_nodes_are_one_group_where_there_are_many() -> None:
    pods = pods_of("1g.10gb", 1)
    few, many = (PresentCluster(cluster_of(*[2] * count), pods) for count in (16, 17))
    free = {n: [0, 1] for n in range(17)}
    assert len(groups_of(few, free, list(pod_classes(few)))) == 16
    [group] = groups_of(many, free, list(pod_classes(many)))
    assert group.boards == 2 and group.nodes == tuple(range(17)) and group.classes == (True, True)


def test_pods_of_equal_requests_are_one_class() -> None:
    classes = pod_classes(PresentCluster(cluster_of(1), pods_of("1g.10gb", "1g.10gb", 1, "2*1g.10gb")))
    assert sorted(classes.values()) == [1, 1, 2]


@pytest.mark.parametrize("seed", range(4))
def test_no_layouts_host_more_than_the_bound(seed: int) -> None:
    draw = random.Random(seed)
    cluster = cluster_of(*[draw.choice((1, 2, 4)) for _ in range(20)], cpu_milli=16_000)
    asks = (*PROFILES, "2*1g.10gb", 1, 2, 4)
    pods = pods_of(*[draw.choice(asks) for _ in range(120)], cpu_milli=draw.choice((0, 2000, 4000)))
    plan = mig_plan(cluster, pods)
    assert plan.hosted_now <= plan.hosted <= plan.bound <= plan.waiting and plan.greedy <= plan.hosted


def test_few_boards_are_divided_where_more_host_no_more() -> None:
    present = PresentCluster(cluster_of(*[4] * 20), pods_of(*["1g.10gb"] * 8))
    classes = pod_classes(present)
    groups = groups_of(present, {n: present.free_boards(n) for n in range(20)}, list(classes))
    answer = LayoutProgram(classes, groups, None).solved()
    assert answer.bound == 8 and sum(count for one in answer.layouts for name, count in one.items() if name) == 2
    assert isinstance(present.cluster, fs.Cluster)

"""Layouts of boards: as many pods run as exhaustive search finds, and boards with pods stay as they are."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations_with_replacement, product
from typing import Any

import pyarrow as pa
import pytest

import fastsim as fs
from fastsim.decisions.what_if.layout_program import largest_layouts
from fastsim.decisions.what_if.mig_layouts import MigPlan, mig_plan
from fastsim.errors import InputError, ScenarioError
from fastsim.hardware import mig
from fastsim.workload.schema import pod_schema

MODEL = "A100-80GB"
PROFILES = ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")


def cluster_of(*boards: int, cpu_milli: int = 96_000, **columns: Any) -> fs.Cluster:
    """A node for each number of boards."""
    shape = {"gpu_model": MODEL, "cpu_milli": cpu_milli, "memory_mib": 10**6, **columns}
    rows = [{"name": f"n{n}", **shape, "num_gpu": count} for n, count in enumerate(boards)]
    return fs.Cluster.from_arrow(pa.Table.from_pylist(rows))


def pods_of(*requests: str | int, cpu_milli: int = 0, **columns: Any) -> fs.Workload:
    """Pods that wait: each asks for an instance, or for a number of whole GPUs."""
    rows: list[dict[str, Any]] = [
        {"pod_id": k, "submit_s": float(k), "cpu_milli": cpu_milli, "memory_mib": 0, "duration_s": 9.0,
         "num_gpu": one if isinstance(one, int) else 0, "gpu_milli": 1000 if isinstance(one, int) else 0,
         "mig": one if isinstance(one, str) else None, **columns} for k, one in enumerate(requests)
    ]  # fmt: skip
    return fs.Workload.from_arrow(pa.Table.from_pylist(rows, pod_schema(rows[0])))


def every_layout() -> list[Counter[str]]:
    """All sets of instances that fit on one board, by adding instances one after the other."""
    known = mig.profiles()[MODEL]
    edge: list[tuple[str, ...]] = [()]
    found = set(edge)
    while edge:
        longer = {tuple(sorted((*one, name))) for one in edge for name in PROFILES}
        edge = [one for one in longer - found if mig.fit(Counter(one), known)]
        found |= set(edge)
    return [Counter(one) for one in found]


def most_hosted(boards: list[int], wanted: Counter[str | int], pods_per_node: int) -> int:
    """The most pods that run, by trying all layouts; every node has room for so many pods."""
    best = 0
    choices = [list(combinations_with_replacement(every_layout(), count)) for count in boards]
    for chosen in product(*choices):
        left, hosted = Counter(wanted), 0
        for layouts in chosen:
            supply = Counter[str | int]({1: sum(not one for one in layouts)})
            for one in layouts:
                supply.update(one)
            on_node = sum(min(left[name], supply[name]) for name in supply)
            hosted += min(on_node, pods_per_node)
            left.subtract({name: min(left[name], count) for name, count in supply.items()})
        best = max(best, hosted)
    return best


@pytest.mark.parametrize("first", range(0, 54, 9))
def test_as_many_pods_run_as_exhaustive_search_finds(first: int) -> None:
    for seed in range(first, first + 9):
        draw = random.Random(seed)
        boards = draw.choice(([1], [1], [1, 1]))
        every: list[str | int] = [*PROFILES, 1]
        kinds = draw.sample(every, 3)
        requests = [draw.choice(kinds) for _ in range(draw.randint(1, 10 * len(boards)))]
        room = draw.choice((3, 96)) if boards == [1] else 96
        plan = mig_plan(cluster_of(*boards, cpu_milli=room * 1000), pods_of(*requests, cpu_milli=1000))
        best = most_hosted(boards, Counter(requests), room)
        assert (plan.hosted, plan.optimal) == (best, True), (seed, plan)
        assert plan.hosted >= max(plan.greedy, plan.hosted_now)


def test_largest_layouts_are_those_to_which_nothing_can_be_added() -> None:
    known = mig.profiles()[MODEL]
    wanted = [known[name].resource for name in PROFILES]
    largest = {frozenset(mig.counted(text).items()) for text in largest_layouts(MODEL, frozenset(wanted))}
    expected = {
        frozenset(one.items()) for one in every_layout()
        if not any(mig.fit(one + Counter([name]), known) for name in PROFILES)
    }  # fmt: skip
    assert largest == expected


def running(plan: MigPlan) -> dict[str, tuple[str, ...]]:
    return {one.node: one.after for one in plan.nodes}


def test_boards_with_pods_stay_and_running_pods_keep_their_devices() -> None:
    columns = {"bound_node": ["n0", None, None], "bound_gpus": [[1], None, None]}
    table = pods_of(1, "1g.10gb", "7g.80gb").table()
    for name, values in columns.items():
        field = pod_schema([name]).field(0)
        table = table.append_column(field, pa.array(values, field.type))
    plan = mig_plan(cluster_of(3), fs.Workload.from_arrow(table))
    after = running(plan)["n0"]
    assert after[1] == "" and sorted(after) == ["", "1*7g.80gb", "7*1g.10gb"] and (plan.waiting, plan.hosted) == (2, 2)


def test_layouts_with_an_instance_in_use_are_kept() -> None:
    table = pods_of("1g.10gb", "3g.40gb", "3g.40gb", "1g.10gb").table()
    field = pod_schema(["bound_node"]).field(0)
    table = table.append_column(field, pa.array(["n0", None, None, None], field.type))
    plan = mig_plan(cluster_of(2, mig="7*1g.10gb;"), fs.Workload.from_arrow(table))
    assert running(plan) == {"n0": ("7*1g.10gb", "2*3g.40gb")} and plan.hosted == plan.bound == 3


def test_no_more_boards_are_divided_than_asked_for_and_only_on_named_nodes() -> None:
    cluster, pods = cluster_of(2, 2), pods_of(*["1g.10gb"] * 28)
    assert mig_plan(cluster, pods).hosted == 28
    assert (few := mig_plan(cluster, pods, boards=1)).hosted == few.bound == 7
    assert set(running(mig_plan(cluster, pods, nodes=["n1"]))) == {"n1"}
    assert mig_plan(cluster, pods, boards=0).nodes == ()


def test_boards_of_whole_gpus_are_left_for_pods_that_ask_for_them() -> None:
    plan = mig_plan(cluster_of(2, 2), pods_of(2, *["1g.10gb"] * 14))
    assert plan.hosted == plan.bound == 15 and len(plan.nodes) == 1


def test_nodes_that_a_pod_may_not_use_count_for_nothing() -> None:
    pods = pods_of("1g.10gb", "1g.10gb", pinned_node="n1")
    plan = mig_plan(cluster_of(1, 1), pods)
    assert set(running(plan)) == {"n1"} and plan.hosted == 2


def test_the_plan_and_its_cluster_are_one() -> None:
    pods = pods_of(*["2g.20gb"] * 5)
    plan = mig_plan(cluster_of(1, 1), pods)
    found = fs.simulate(plan.cluster, pods_of(*["2g.20gb"] * 5), "best_fit", record="placements")
    assert plan.hosted == 5 == found.placements["node_id"].count()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nodes": ["x"]}, "mig: nodes: found 'x', expected nodes of the cluster: n0"),
        ({"boards": -1}, "mig: boards: found -1, expected 0 or more"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises((InputError, ScenarioError), match=message):
        mig_plan(cluster_of(1), pods_of("1g.10gb"), **options)


def test_what_cannot_be_divided_is_refused() -> None:
    with pytest.raises(InputError, match=r"mig: found no free board, expected a GPU without pods of A30"):
        mig_plan(cluster_of(1, gpu_model="T4"), pods_of("1g.10gb"))
    table = pods_of(1).table()
    field = pod_schema(["bound_node"]).field(0)
    bound = fs.Workload.from_arrow(table.append_column(field, pa.array(["n0"], field.type)))
    with pytest.raises(InputError, match=r"mig: found no pod that waits"):
        mig_plan(cluster_of(2), bound)

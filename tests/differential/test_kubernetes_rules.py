"""Dumps whose outcome was worked out by hand from a rule of kubernetes.io, which each of them paraphrases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from tests.objects import node, pod, written

pytestmark = pytest.mark.filterwarnings("ignore")
Objects = list[dict[str, Any]]


def played(path: Path, objects: Objects, **options: Any) -> fs.Result:
    text = f"kubernetes:{written(path / 'dump.json', *objects)}"
    return fs.simulate(text, text, "best_fit", **{"queue": "fifo_skip", **options})


def places(result: fs.Result) -> dict[str, str | None]:
    """The node of each pod at the end; None if it has none."""
    last = result.placements.filter(pl.col("attempt") == pl.col("attempt").max().over("pod_id"))
    names = last["native_id"].str.strip_prefix("default/").to_list()
    return dict(zip(names, last["node"].to_list(), strict=True))


def runs(name: str, where: str, started: int = 0, cpu: int = 8, **more: Any) -> dict[str, Any]:
    """A pod that runs and is ready since a second."""
    status = {"phase": "Running", "startTime": f"2026-01-01T00:00:{started:02}Z"}
    return pod(name, {"cpu": cpu}, status=status, nodeName=where, **more)


def budget(name: str, app: str, status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": app}}
    body = {"kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": {"selector": selector, **spec}}
    return body | ({} if status is None else {"status": status})


# --- preemptionPolicy: pods with Never stand ahead of less important ones in the queue, but cannot preempt other pods


CALM = {"kind": "PriorityClass", "metadata": {"name": "calm"}, "value": 100, "preemptionPolicy": "Never"}
OWN: dict[str, dict[str, Any]] = {
    "pod": {"priority": 100, "preemptionPolicy": "Never"}, "class": {"priorityClassName": "calm"}, "default": {},
}  # fmt: skip


@pytest.mark.parametrize("given", ["pod", "class", "default"])
def test_a_pod_that_never_preempts_waits(tmp_path: Path, given: str) -> None:
    default: dict[str, Any] = {"globalDefault": True} if given == "default" else {}
    objects = [node("n"), {**CALM, **default}, runs("low", "n", priority=0), pod("high", {"cpu": 8}, **OWN[given])]
    assert places(played(tmp_path, objects, preempt="priority")) == {"low": "n", "high": None}


def test_its_own_policy_goes_before_that_of_its_class_and_others_may_stop_it(tmp_path: Path) -> None:
    own = pod("a", {"cpu": 8}, priorityClassName="calm", preemptionPolicy="PreemptLowerPriority")
    objects = [node("n"), CALM, runs("low", "n", priority=0), own]
    assert places(played(tmp_path, objects, preempt="priority")) == {"low": None, "a": "n"}
    objects = [node("n"), CALM, runs("calm", "n", priorityClassName="calm"), pod("a", {"cpu": 8}, priority=200)]
    assert places(played(tmp_path, objects, preempt="priority")) == {"calm": None, "a": "n"}


# --- PodDisruptionBudgets: preemption tries to find victims whose budget is not violated; if there are none, it still
# --- happens, in spite of the budget


HIGH = pod("high", {"cpu": 8}, priority=10)
GUARDED = [node("x"), node("y"), runs("guard", "x", labels={"app": "g"}), runs("free", "y", priority=5), HIGH]


@pytest.mark.parametrize(
    ("name", "limit", "stopped"),
    [
        # Without a budget the node whose victim has the lower priority, 0 before 5.
        ("no budget", None, "guard"),
        # One of one pod must be there, so stopping guard would violate it: the node without violation comes first.
        ("one of one", budget("b", "g", minAvailable=1), "free"),
        ("half, rounded up", budget("b", "g", minAvailable="50%"), "free"),
        ("none may be away", budget("b", "g", maxUnavailable=0), "free"),
        ("one may be away", budget("b", "g", maxUnavailable=1), "guard"),
        # What the status says goes before the spec, as kube-scheduler reads it.
        ("the status allows one", budget("b", "g", {"disruptionsAllowed": 1}, minAvailable=1), "guard"),
        ("the status allows none", budget("b", "g", {"disruptionsAllowed": 0}, minAvailable=0), "free"),
        ("of others", budget("b", "other", minAvailable=1), "guard"),
        # A selector that is empty selects no pod here.
        ("of nobody", budget("b", "g", minAvailable=1, selector={}), "guard"),
    ],
)
def test_the_node_with_the_fewest_violations_comes_first(
    tmp_path: Path, name: str, limit: dict[str, Any] | None, stopped: str
) -> None:
    result = played(tmp_path, [*GUARDED, *([] if limit is None else [limit])], preempt="priority")
    first = result.placements.filter(pl.col("reason") == "preempted")["native_id"][0]
    assert first == f"default/{stopped}", name


def test_a_budget_is_broken_if_nothing_else_helps(tmp_path: Path) -> None:
    objects = [node("x"), runs("guard", "x", labels={"app": "g"}), HIGH, budget("b", "g", minAvailable=1)]
    assert places(played(tmp_path, objects, preempt="priority")) == {"guard": None, "high": "x"}


def test_on_one_node_pods_that_would_violate_come_back_first(tmp_path: Path) -> None:
    # Beside 5 of 8 CPUs there is room for one of the three: for old, the longest-running of the most important ones, or
    # for guard, the least important, if its budget lets none go.
    last = {"priority": 1, "preemptionPolicy": "Never"}
    there = [runs("guard", "x", 0, 2, labels={"app": "g"}), runs("old", "x", 1, 3, **last),
             runs("new", "x", 2, 3, **last)]  # fmt: skip
    objects = [node("x"), *there, pod("high", {"cpu": 5}, priority=10)]
    plain = places(played(tmp_path, objects, preempt="priority"))
    assert plain == {"guard": None, "old": "x", "new": None, "high": "x"}
    objects.append(budget("b", "g", minAvailable=1))
    kept = places(played(tmp_path, objects, preempt="priority"))
    assert kept == {"guard": "x", "old": None, "new": None, "high": "x"}


def test_each_victim_takes_one_from_what_a_budget_allows(tmp_path: Path) -> None:
    # Two of three pods of the budget must stay, so one may go. On x both stand: the less important of them would
    # violate it. On y only one stands, whose priority is higher, and no budget is violated.
    web = [runs("a", "x", 0, 4, labels={"app": "w"}), runs("b", "x", 1, 4, labels={"app": "w"}),
           runs("c", "y", 2, 8, labels={"app": "w"}, priority=3)]  # fmt: skip
    objects = [node("x"), node("y"), *web, pod("high", {"cpu": 8}, priority=10)]
    assert places(played(tmp_path, objects, preempt="priority"))["high"] == "x"
    assert places(played(tmp_path, [*objects, budget("b", "w", minAvailable=2)], preempt="priority"))["high"] == "y"


def test_pods_that_are_not_ready_do_not_count_as_there(tmp_path: Path) -> None:
    # Of two pods one must be there. The other one is not ready: none may be away, and stopping either violates it.
    unready = pod("sick", {"cpu": 1}, nodeName="z", labels={"app": "g"}, status={"phase": "Running", "conditions": [
        {"type": "Ready", "status": "False"}]})  # fmt: skip
    objects = [*GUARDED, node("z"), unready, budget("b", "g", minAvailable=1)]
    first = played(tmp_path, objects[:-1], preempt="priority").placements.filter(pl.col("reason") == "preempted")
    assert first["native_id"][0] == "default/sick" or first["native_id"][0] == "default/guard"
    guarded = played(tmp_path, objects, preempt="priority").placements.filter(pl.col("reason") == "preempted")
    assert guarded["native_id"][0] == "default/free"


def test_a_victim_more_costs_more_whatever_its_priority(tmp_path: Path) -> None:
    # Highest priority 5 on both nodes. Sums are of priorities raised by 2**31: one victim on x is less than two on y,
    # although 5 - 3 is less than 5.
    there = [runs("a", "x", 0, 8, priority=5), runs("b", "y", 0, 4, priority=5), runs("c", "y", 0, 4, priority=-3)]
    objects = [node("y"), node("x"), *there, pod("high", {"cpu": 8}, priority=10)]
    assert places(played(tmp_path, objects, preempt="priority"))["high"] == "x"


# --- Gangs: no pod of a group starts before minMember of them can start together; further pods may start with them


GANG = {"annotations": {"scheduling.k8s.io/group-name": "g"}}


def group(least: int) -> dict[str, Any]:
    return {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"},
            "spec": {"minMember": least}}  # fmt: skip


def members(*cpus: int, **more: Any) -> Objects:
    return [pod(f"m{number}", {"cpu": cpu}, meta=at(number), **GANG, **more) for number, cpu in enumerate(cpus)]


def at(second: int) -> dict[str, Any]:
    return {"creationTimestamp": f"2026-01-01T00:00:{second:02}Z"}


@pytest.mark.parametrize("queue", ["drop", "fifo", "fifo_skip", "priority", "priority_skip", "drf"])
def test_no_pod_of_a_gang_starts_while_the_gang_waits(tmp_path: Path, queue: str) -> None:
    # The gang of three needs 24 CPUs where 16 are free; the fourth and fifth pod would fit.
    other = pod("o", {"cpu": 1}, meta=at(9))
    objects = [node("x"), node("y"), node("z"), runs("there", "z"), group(3), *members(8, 8, 8, 1, 1), other]
    found = places(played(tmp_path, objects, queue=queue))
    assert [found[f"m{number}"] for number in range(5)] == [None] * 5
    assert (found["o"] is not None) == (queue in ("drop", "fifo_skip", "priority_skip"))


@pytest.mark.parametrize("queue", ["drop", "fifo", "fifo_skip", "priority", "priority_skip", "drf"])
def test_further_pods_start_after_their_gang_as_far_as_there_is_room(tmp_path: Path, queue: str) -> None:
    objects = [node("x"), node("y"), group(2), *members(6, 6, 2, 2, 2)]
    found = places(played(tmp_path, objects, queue=queue))
    assert [found[f"m{number}"] for number in range(5)] == ["x", "y", "x", "y", None]


def test_a_further_pod_of_more_priority_does_not_start_before(tmp_path: Path) -> None:
    # The two most important pods form the gang of two, which does not fit; the third would.
    objects = [node("x"), group(2), *members(8, 8, 8)]
    for number, priority in enumerate((1, 9, 5)):
        objects[2 + number]["spec"]["priority"] = priority
    assert places(played(tmp_path, objects, queue="priority_skip")) == {"m0": None, "m1": None, "m2": None}


def test_a_further_pod_starts_when_room_for_its_gang_comes(tmp_path: Path) -> None:
    table = pl.DataFrame({
        "pod_id": range(5), "submit_s": [0.0, 1.0, 1.0, 1.0, 2.0], "duration_s": [10.0, 5.0, 5.0, 5.0, 1.0],
        "cpu_milli": [8000, 4000, 4000, 1000, 1000], "memory_mib": 0, "num_gpu": 0, "gpu_milli": 0,
        "job_id": [None, 1, 1, 1, 1], "gang_size": [None, 2, 2, None, None],
        "after_gang": [None, None, None, True, True],
    })  # fmt: skip
    nodes = fs.Cluster.mix([(1, {"name": "n", "cpu_milli": 9000, "memory_mib": 1000, "num_gpu": 0})])
    result = fs.simulate(nodes, fs.Workload.from_polars(table), "best_fit", queue="fifo_skip")
    # The gang of 8 CPUs waits until 10 s. One CPU is free all the time, but not for the two pods behind the gang. Then
    # the first of them takes it, and the other one follows when the gang is over.
    assert result.jobs.sort("pod_id")["start_s"].to_list() == [0.0, 10.0, 10.0, 10.0, 15.0]


def test_pods_beside_a_gang_that_is_too_large_leave_with_it(tmp_path: Path) -> None:
    objects = [node("x"), group(3), *members(8, 8, 8, 1)]
    result = played(tmp_path, objects)
    assert dict(result.placements.select("native_id", "reason").rows()) == {
        "default/m0": "gang_too_large", "default/m1": "gang_too_large", "default/m2": "gang_too_large",
        "default/m3": "gang",
    }  # fmt: skip

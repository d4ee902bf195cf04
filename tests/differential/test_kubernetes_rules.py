"""Dumps whose outcome was worked out by hand from a rule of kubernetes.io, which each of them paraphrases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.decisions.waiting_pods import waiting_pods
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


def test_pods_that_wait_for_their_gang_are_listed_with_the_reason(tmp_path: Path) -> None:
    objects = [node("x"), node("y"), runs("there", "y"), group(2), *members(8, 8, 1)]
    text = f"kubernetes:{written(tmp_path / 'dump.json', *objects)}"
    for queue in ("fifo_skip", "drop"):
        found = waiting_pods(fs.Scenario(cluster=text, workload=text, policy="best_fit", queue=queue))
        assert found["native_id"].to_list() == ["default/m0", "default/m1", "default/m2"]
        assert found.row(2)[2:] == (None, 1000, 0, 0, 0, "gang", "it starts only when a gang of its job has")


# --- Affinity between pods that wait: anti-affinity holds in both directions, affinity only beside a pod that is there,
# --- but for the first of a series whose affinity is to itself


ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
HARD = "requiredDuringSchedulingIgnoredDuringExecution"


def zoned(name: str, zone: str | None, cpu: int = 8) -> dict[str, Any]:
    labels = {HOST: name} | ({} if zone is None else {ZONE: zone})
    return node(name, labels, amounts={"cpu": str(cpu)})


def near(kind: str, *apps: str, key: str = ZONE, **more: Any) -> dict[str, Any]:
    terms = [{"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **more} for app in apps]
    return {kind: {HARD: terms}}


def away(*apps: str, **more: Any) -> dict[str, Any]:
    return {"affinity": near("podAntiAffinity", *apps, **more)}


def beside(*apps: str, **more: Any) -> dict[str, Any]:
    return {"affinity": near("podAffinity", *apps, **more)}


def waits(name: str, app: str, second: int, cpu: int = 1, **spec: Any) -> dict[str, Any]:
    return pod(name, {"cpu": cpu}, labels={"app": app}, meta=at(second), **spec)


THREE = [zoned("a1", "a"), zoned("a2", "a"), zoned("b1", "b"), zoned("none", None, 2)]
LARGE = {"cpu": 3}
WAITING: dict[str, tuple[Objects, dict[str, str | None]]] = {
    # One pod a zone; the node without the label is in no zone, so the term excludes it for nobody.
    "own kind over zones": (
        [*THREE, *(waits(f"p{n}", "w", n, 3, **away("w")) for n in range(3))], {"p0": "a1", "p1": "b1", "p2": None},
    ),
    "a node without the label is in no zone": (
        [*THREE, *(waits(f"p{n}", "w", n, 2, **away("w")) for n in range(4))],
        {"p0": "none", "p1": "a1", "p2": "b1", "p3": None},
    ),
    # p has no rule, but q, which came first, keeps it out of its zone.
    "the rule of another pod that waits": (
        [zoned("a1", "a"), zoned("a2", "a"), zoned("b1", "b"), waits("q", "q", 0, 8, **away("p")),
         waits("p", "p", 1, 8), waits("o", "p", 2, 8)], {"q": "a1", "p": "b1", "o": None},
    ),
    "its own rule against one that waits": (
        [zoned("a1", "a"), zoned("a2", "a"), zoned("b1", "b"), waits("p", "p", 0, 8),
         waits("q", "q", 1, 8, **away("p"))],
        {"p": "a1", "q": "b1"},
    ),
    "a label of racks": (
        [node("x", {"rack": "1"}), node("y", {"rack": "2"}), node("z", {"rack": "1"}),
         *(waits(f"p{n}", "w", n, 8, **away("w", key="rack")) for n in range(3))],
        {"p0": "x", "p1": "y", "p2": None},
    ),
    "beside one that waits": (
        [zoned("a1", "a"), zoned("b1", "b"), zoned("b2", "b"), runs("r", "a1", cpu=4), waits("db", "db", 0, 8),
         waits("p", "p", 1, 4, **beside("db"))], {"r": "a1", "db": "b1", "p": "b2"},
    ),
    "beside one that never comes": (
        [zoned("a1", "a"), waits("db", "db", 0, 9), waits("p", "p", 1, 1, **beside("db"))], {"db": None, "p": None},
    ),
    "the first of a series is free, the others follow": (
        [zoned("none", None, 8), zoned("a1", "a", 4), zoned("b1", "b", 8), zoned("b2", "b", 8),
         *(waits(f"p{n}", "w", n, 4, **beside("w")) for n in range(3))], {"p0": "a1", "p1": None, "p2": None},
    ),
    "the others follow into the zone": (
        [zoned("b1", "b", 4), zoned("a1", "a", 8), zoned("b2", "b", 4),
         *(waits(f"p{n}", "w", n, 4, **beside("w")) for n in range(3))], {"p0": "b1", "p1": "b2", "p2": None},
    ),
    # A series must not begin where it would, once a pod of it is there: r counts, although its zone is full.
    "one that runs fixes the zone of a series": (
        [zoned("a1", "a"), zoned("b1", "b"), runs("r", "a1", labels={"app": "w"}), waits("p", "w", 0, 1, **beside("w")),
         waits("q", "w", 1, 1, **beside("w"))], {"r": "a1", "p": None, "q": None},
    ),
    # Affinity counts only pods that all terms select; x matches one of two.
    "all terms select the pod to be beside": (
        [zoned("a1", "a"), waits("x", "x", 0, 1), waits("p", "p", 1, 1, **beside("x", "y"))], {"x": "a1", "p": None},
    ),
    "in another namespace": (
        [zoned("a1", "a"), zoned("b1", "b", 4),
         pod("x", {"cpu": 4}, labels={"app": "w"}, meta={"namespace": "else", **at(0)}),
         waits("p", "p", 1, 1, **away("w")), waits("q", "q", 2, 5, **away("w", namespaces=["else"]))],
        {"else/x": "b1", "p": "a1", "q": "a1"},
    ),
    "apart on nodes of two kinds": (
        [zoned("a1", "a"), zoned("a2", "a"), waits("p", "p", 0, **away("q", key=HOST)), waits("q", "q", 1),
         waits("r", "q", 2)], {"p": "a1", "q": "a2", "r": "a2"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WAITING)
def test_rules_between_pods_that_wait(tmp_path: Path, name: str) -> None:
    objects, expected = WAITING[name]
    assert places(played(tmp_path, objects)) == expected


# --- Volumes: a claim of WaitForFirstConsumer is bound where its pod goes, within the allowedTopologies of its class;
# --- of Immediate ones a pod waits for the binding


def storage(name: str, mode: str | None, zones: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    values = [{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]} for zone in zones]
    body = {"kind": "StorageClass", "metadata": {"name": name}, "provisioner": "csi.example.com", **more}
    body |= {"allowedTopologies": values} if values else {}
    return body | ({} if mode is None else {"volumeBindingMode": mode})


def claim(name: str, storage_class: str, size: str = "1Gi") -> dict[str, Any]:
    spec = {"storageClassName": storage_class, "resources": {"requests": {"storage": size}},
            "accessModes": ["ReadWriteOnce"]}  # fmt: skip
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def uses(name: str, *claims: str, **spec: Any) -> dict[str, Any]:
    volumes = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]
    return pod(name, {"cpu": 1}, volumes=volumes, **spec)


def made_by_hand(name: str, zone: str, size: str = "10Gi", **spec: Any) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    more = {"storageClassName": "local", "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"]}
    required = {"required": {"nodeSelectorTerms": [term]}}
    return {"kind": "PersistentVolume", "metadata": {"name": name}, "spec": {**more, "nodeAffinity": required, **spec}}


DELAYED, LOCAL = "WaitForFirstConsumer", "kubernetes.io/no-provisioner"
ZONES = [zoned("a1", "a"), zoned("b1", "b"), zoned("c1", "c")]
STORED: dict[str, tuple[Objects, str | None, str]] = {
    "any zone": ([storage("s", DELAYED), claim("d", "s"), uses("p", "d")], "a1", ""),
    "one zone": ([storage("s", DELAYED, ("b",)), claim("d", "s"), uses("p", "d")], "b1", ""),
    "one of two zones": ([storage("s", DELAYED, ("z", "c")), claim("d", "s"), uses("p", "d")], "c1", ""),
    "no zone that is there": (
        [storage("s", DELAYED, ("z",)), claim("d", "s"), uses("p", "d")], None,
        "0/3 nodes are available: 3 node(s) didn't find available persistent volumes to bind.",
    ),
    "immediate": (
        [storage("s", "Immediate"), claim("d", "s"), uses("p", "d")], None,
        "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
    ),
    "immediate without being said": ([storage("s", None), claim("d", "s"), uses("p", "d")], None, "unbound immediate"),
    "too little room comes before no volume": (
        [storage("s", DELAYED, ("z",)), claim("d", "s"), *(runs(f"r{n}", n, labels={}) for n in ("a1", "b1")),
         uses("p", "d")], None,
        "0/3 nodes are available: 1 node(s) didn't find available persistent volumes to bind, 2 Insufficient cpu.",
    ),
    "one of two claims is missing": (
        [storage("s", DELAYED), claim("d", "s"), uses("p", "d", "e")], None,
        '0/3 nodes are available: persistentvolumeclaim "e" not found.',
    ),
    "a free volume made by hand": (
        [storage("local", DELAYED, provisioner=LOCAL), made_by_hand("v", "c"), claim("d", "local"), uses("p", "d")],
        "c1", "",
    ),
    "volumes made by hand that are taken, or too small": (
        [storage("local", DELAYED, provisioner=LOCAL), made_by_hand("v", "c", claimRef={"name": "other"}),
         made_by_hand("w", "b", "1Mi"), claim("d", "local"), uses("p", "d")], None,
        "0/3 nodes are available: 3 node(s) didn't find available persistent volumes to bind.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STORED)
def test_claims_that_are_not_bound_yet(tmp_path: Path, name: str) -> None:
    objects, expected, why = STORED[name]
    result = played(tmp_path, [*ZONES, *objects])
    assert places(result)["p"] == expected
    text = f"kubernetes:{tmp_path / 'dump.json'}"
    waiting = waiting_pods(fs.Scenario(cluster=text, workload=text, policy="best_fit"))["why"].to_list()
    assert waiting == [] if expected else why in waiting[0]

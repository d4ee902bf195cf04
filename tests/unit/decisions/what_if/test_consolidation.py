"""Nodes that can be emptied: as many as exhaustive search finds, by moves that rules, budgets and pinned pods allow."""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any

import pytest

from fastsim.decisions.live_cluster import ClusterState
from fastsim.decisions.what_if.consolidation import Consolidation, consolidation, moved_pods, node_prices
from fastsim.errors import InputError
from tests.objects import allocation, claim, claiming, device_class, gpu, manifest, node, pod, request, resource_slice

REPLICA = {"ownerReferences": [{"kind": "ReplicaSet", "name": "r", "controller": True}]}
DAEMON = {"ownerReferences": [{"kind": "DaemonSet", "name": "d", "controller": True}]}
T4 = {"nvidia.com/gpu.product": "Tesla-T4"}
ZONE = "topology.kubernetes.io/zone"
Object = dict[str, Any]


def runs(name: str, where: str, requests: dict[str, Any], meta: Any = None, **more: Any) -> Object:
    """A pod of a ReplicaSet that runs."""
    return pod(name, requests, status={"phase": "Running"}, nodeName=where, meta=meta or REPLICA, **more)


def state_of(objects: list[Object]) -> ClusterState:
    return ClusterState([manifest(item) for item in objects], "test")


def plan_of(*objects: Object, **options: Any) -> Consolidation:
    return consolidation(state_of(list(objects)), **options)


def emptied(plan: Consolidation) -> list[str]:
    return [one.node for one in plan.nodes]


def targets(plan: Consolidation) -> dict[str, str]:
    return {move.pod.partition("/")[2]: move.target for move in plan.moves}


def budget(labels: dict[str, str], **spec: Any) -> Object:
    selector = {"selector": {"matchLabels": labels}}
    return {"kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": {**selector, **spec}}


class Twin:
    """A cluster of small numbers, whose best set of nodes is found by trying every set and every placement."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        gpus = [draw.choice((0, 1, 2)) for _ in range(draw.choice((3, 4)))]
        self.free: list[dict[str, Any]] = [{"cpu": 8, "gpus": [10] * count} for count in gpus]
        self.zone = [draw.choice("ab") for _ in self.free]
        self.price = [draw.choice((1.0, 2.0, 3.0)) for _ in self.free]
        self.pods: list[dict[str, Any]] = []
        for _ in range(draw.randint(3, 6)):
            share = draw.choice((0, 0, 3, 5, 6, 10))
            one: dict[str, Any] = {"cpu": draw.randint(1, 4), "share": share, "zone": draw.choice(("", "", "a", "b"))}
            places = [(n, g) for n, _ in enumerate(self.free) for g in self.devices(one, n)]
            if places:
                one["node"], one["gpu"] = draw.choice(places)
                self.put(one, one["node"], one["gpu"], -1)
                self.pods.append(one)

    def devices(self, one: dict[str, Any], n: int) -> list[int]:
        """Devices of a node that a pod can have, [-1] for a pod without."""
        free = self.free[n]
        if one["cpu"] > free["cpu"] or one["zone"] not in ("", self.zone[n]):
            return []
        return [g for g, left in enumerate(free["gpus"]) if left >= one["share"]] if one["share"] else [-1]

    def put(self, one: dict[str, Any], n: int, g: int, sign: int) -> None:
        """Take (-1) or give back (1) what a pod has of a node and a device."""
        self.free[n]["cpu"] += sign * one["cpu"]
        if g >= 0:
            self.free[n]["gpus"][g] += sign * one["share"]

    def fits(self, pods: list[dict[str, Any]], nodes: list[int]) -> bool:
        """Whether pods find room on these nodes."""
        if not pods:
            return True
        for n in nodes:
            for g in self.devices(pods[0], n):
                self.put(pods[0], n, g, -1)
                found = self.fits(pods[1:], nodes)
                self.put(pods[0], n, g, 1)
                if found:
                    return True
        return False

    def best(self, worth: list[float]) -> float:
        """The most that nodes which can be emptied together are worth."""
        every = range(len(self.free))
        sets = [chosen for size in range(len(self.free) + 1) for chosen in combinations(every, size)]
        good = 0.0
        for chosen in sets:
            moving = [one for one in self.pods if one["node"] in chosen]
            if sum(worth[n] for n in chosen) > good and self.fits(moving, [n for n in every if n not in chosen]):
                good = sum(worth[n] for n in chosen)
        return good

    def objects(self) -> list[Object]:
        """Nodes and pods as Kubernetes objects."""
        nodes = [
            node(f"n{n}", {ZONE: self.zone[n], **(T4 if free["gpus"] else {})},
                 amounts={"nvidia.com/gpu": str(len(free["gpus"]))} if free["gpus"] else None)
            for n, free in enumerate(self.free)
        ]  # fmt: skip
        notes = {"gpu-count": "1"}
        return nodes + [
            runs(f"p{n}", f"n{one['node']}", {"cpu": one["cpu"]},
                 annotations={f"alibabacloud.com/{key}": value for key, value in
                              {**notes, "gpu-milli": str(100 * one["share"]), "gpu-index": str(one["gpu"])}.items()}
                 if one["share"] else None,
                 **({"nodeSelector": {ZONE: one["zone"]}} if one["zone"] else {}))
            for n, one in enumerate(self.pods)
        ]  # fmt: skip


@pytest.mark.parametrize("first", range(0, 60, 12))
def test_plans_are_worth_what_exhaustive_search_finds(first: int) -> None:
    for seed in range(first, first + 12):
        twin = Twin(seed)
        state = state_of(twin.objects())
        plan = consolidation(state)
        assert plan.optimal and len(plan.nodes) == twin.best([1.0] * len(twin.free)), seed
        assert len(plan.nodes) >= plan.greedy
        prices = {f"n{n}": price for n, price in enumerate(twin.price)}
        priced = consolidation(state, prices=prices)
        assert sum(one.price_per_h or 0 for one in priced.nodes) == twin.best(twin.price), seed
        refuse_broken_promises(state, plan)


def refuse_broken_promises(state: ClusterState, plan: Consolidation) -> None:
    """The objects with moved pods in place of the old ones: all fit on their nodes, and emptied nodes have none."""
    moved = {f"default/{one['metadata']['name']}": one for one in moved_pods(state, plan)}
    after = [
        moved.get(f"default/{one.name}", dict(one.body)) if one.kind == "Pod" else dict(one.body)
        for one in state.objects
    ]
    again = state_of(after)
    assert again.pods_beyond_capacity == 0 and not again.notices
    where = {row["native_id"]: (row["bound_node"], tuple(row["bound_gpus"] or ())) for row in again.bound_rows}
    assert all(where[move.pod] == (move.target, move.gpus) for move in plan.moves)
    assert not {place for place, _ in where.values()} & set(emptied(plan))
    assert not consolidation(again).moves or not plan.optimal


def test_pods_of_daemon_sets_mirror_pods_and_ended_ones_go_with_the_node() -> None:
    mirror = runs("m", "n1", {"cpu": 1}, annotations={"kubernetes.io/config.mirror": "x"}, meta={})
    over = pod("over", {"cpu": 1}, status={"phase": "Succeeded"}, nodeName="n1")
    pods = [runs("d", "n1", {"cpu": 1}, DAEMON), mirror, over, runs("a", "n1", {"cpu": 1}), runs("b", "n2", {"cpu": 2})]
    plan = plan_of(node("n1"), node("n2"), *pods)
    assert emptied(plan) == ["n1"] and targets(plan) == {"a": "n2"}


@pytest.mark.parametrize(
    ("why", "reason", "more"),
    [
        ("ownerless", "has no controller", {"meta": {"labels": {}}}),
        ("local-storage", "has local storage", {"volumes": [{"name": "v", "emptyDir": {}}]}),
        ("local-storage", "has local storage", {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}),
        ("not-safe", "is not safe to evict",
         {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}}),
    ],
)  # fmt: skip
def test_pinned_pods_keep_their_node_unless_told_otherwise(why: str, reason: str, more: Any) -> None:
    objects = [node("n1"), node("n2"), runs("a", "n1", {"cpu": 1}, **more), runs("b", "n2", {"cpu": 2})]
    plan = plan_of(*objects)
    assert emptied(plan) == ["n2"] and plan.stay == {"n1": f"default/a {reason}"}
    assert emptied(plan_of(*objects, set_aside=[why])) == ["n1"]


def test_what_is_marked_as_safe_moves_and_memory_is_no_local_storage() -> None:
    safe = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}
    memory = [{"name": "v", "emptyDir": {"medium": "Memory"}}]
    a, b = runs("a", "n1", {"cpu": 1}, {"uid": "1"}, annotations=safe), runs("b", "n1", {"cpu": 1}, volumes=memory)
    a["metadata"]["annotations"] = safe
    plan = plan_of(node("n1"), node("n2"), a, b, runs("c", "n2", {"cpu": 5}, {"uid": "2"}))
    assert emptied(plan) == ["n1"], plan.stay


def test_control_planes_stay() -> None:
    plan = plan_of(node("n1", {"node-role.kubernetes.io/control-plane": ""}), node("n2"), runs("a", "n2", {"cpu": 1}))
    assert emptied(plan) == ["n2"] and plan.stay == {"n1": "it runs the control plane"}


@pytest.mark.parametrize(
    ("spec", "batches"),
    [
        ({"minAvailable": 3}, [1, 2, 3, 4]), ({"minAvailable": 2}, [1, 1, 2, 2]),
        ({"minAvailable": "60%"}, [1, 2, 3, 4]), ({"maxUnavailable": 3}, [1, 1, 1, 2]),
        ({"maxUnavailable": "26%"}, [1, 1, 2, 2]),
    ],
)  # fmt: skip
def test_budgets_put_evictions_in_batches(spec: dict[str, Any], batches: list[int]) -> None:
    pods = [runs(f"p{n}", "n1", {"cpu": 1}, labels={"app": "w"}) for n in range(4)]
    alone = runs("b", "n2", {"cpu": 4}, {"uid": "1"})
    plan = plan_of(node("n1"), node("n2"), *pods, alone, budget({"app": "w"}, **spec))
    assert emptied(plan) == ["n1"] and [move.batch for move in plan.moves] == batches


@pytest.mark.parametrize("spec", [{"minAvailable": 2}, {"maxUnavailable": 0}, {"minAvailable": "100%"}, {}])
def test_pods_whose_budget_allows_none_stay(spec: dict[str, Any]) -> None:
    pods = [runs(f"p{n}", "n1", {"cpu": 1}, labels={"app": "w"}) for n in range(2)]
    plan = plan_of(node("n1"), node("n2"), *pods, runs("b", "n2", {"cpu": 4}), budget({"app": "w"}, **spec))
    assert emptied(plan) == ["n2"] and plan.stay["n1"] == "default/p0 must stay by budget default/b"


def test_pods_that_are_not_ready_or_of_two_budgets_count_as_in_kubernetes() -> None:
    pods = [runs(f"p{n}", "n1", {"cpu": 1}, labels={"app": "w"}) for n in range(2)]
    pods[1]["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    rest = [node("n1"), node("n2"), runs("b", "n2", {"cpu": 4})]
    assert emptied(plan_of(*rest, *pods, budget({"app": "w"}, minAvailable=1))) == ["n2"]
    two = [budget({"app": "w"}, minAvailable=0), budget({"app": "w"}, minAvailable=0)]
    two[1]["metadata"] = {"name": "other"}
    assert "2 budgets" in plan_of(*rest, *pods, *two).stay["n1"]


def test_taints_affinity_between_pods_spread_and_ports_are_honoured() -> None:
    taint = {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}
    a = runs("a", "n1", {"cpu": 1})
    assert plan_of(node("n1"), node("n2", spec=taint), a, runs("x", "n2", {"cpu": 1})).moves[0].pod == "default/x"
    near = {"labelSelector": {"matchLabels": {"app": "w"}}, "topologyKey": "kubernetes.io/hostname"}
    hosts = [node(f"n{n}", {"kubernetes.io/hostname": f"n{n}"}) for n in (1, 2)]
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}
    both = [runs(f"p{n}", f"n{n}", {"cpu": 1}, labels={"app": "w"}, affinity=apart) for n in (1, 2)]
    assert emptied(plan_of(*hosts, *both)) == []
    zones = [node(f"n{n}", {ZONE: zone}) for n, zone in enumerate("aabb")]
    rule = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "w"}}}  # fmt: skip
    more = {"labels": {"app": "w"}, "topologySpreadConstraints": [rule]}
    plan = plan_of(*zones, *(runs(f"p{n}", f"n{n}", {"cpu": 1}, **more) for n in range(4)))
    assert sorted("aabb"[int(name[1:])] for name in emptied(plan)) == ["a", "b"]
    ports = [{"name": "m", "ports": [{"containerPort": 80, "hostPort": 80}], "resources": {"requests": {"cpu": 1}}}]
    hosting = [runs(f"p{n}", f"n{n}", {}, containers=ports) for n in (1, 2)]
    for one in hosting:
        one["spec"]["containers"] = ports
    assert emptied(plan_of(node("n1"), node("n2"), *hosting)) == []


def test_affinity_by_zone_counts_pods_where_they_have_moved() -> None:
    labelled = {"labelSelector": {"matchLabels": {"app": "w"}}, "topologyKey": ZONE}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [labelled]}}
    nodes = [node(f"n{n}", {ZONE: zone}) for n, zone in enumerate("abbc")]
    pods = [runs(f"p{n}", f"n{n}", {"cpu": 1}, labels={"app": "w"}, affinity=apart) for n in (0, 1, 3)]
    plan = plan_of(*nodes, *pods)
    places = {**{f"p{n}": f"n{n}" for n in (0, 1, 3)}, **targets(plan)}
    zone_of = {f"n{n}": zone for n, zone in enumerate("abbc")}
    assert len({zone_of[place] for place in places.values()}) == 3


def test_watts_and_prices() -> None:
    gpus = {"amounts": {"nvidia.com/gpu": "2"}}
    kind = {"node.kubernetes.io/instance-type": "big"}
    state = state_of([node("n1", {**T4, **kind}, **gpus), node("n2", T4, **gpus), node("n3"),
                      runs("a", "n1", {"cpu": 1, "nvidia.com/gpu": "1"})])  # fmt: skip
    prices = node_prices(state, {"big": 5.0, "T4": 2.0, "cpu": 0.5})
    assert prices == {"n1": 5.0, "n2": 2.0, "n3": 0.5}
    plan = consolidation(state, prices=prices)
    assert emptied(plan) == ["n3", "n1"] and [one.price_per_h for one in plan.nodes] == [0.5, 5.0]
    assert [one.power_w for one in plan.nodes] == [15.0, 35.0]
    with pytest.raises(InputError, match="node prices: found none of n3 or cpu"):
        node_prices(state, {"big": 5.0, "T4": 2.0})
    with pytest.raises(InputError, match="no pod that runs"):
        plan_of(node("n1"))
    with pytest.raises(InputError, match="set_aside"):
        consolidation(state, set_aside=["x"])


def test_pods_that_exceed_their_node_keep_it() -> None:
    plan = plan_of(node("n1"), node("n2"), runs("a", "n1", {"cpu": 7}), runs("b", "n1", {"cpu": 7}))
    assert emptied(plan) == ["n2"] and "does not fit where it runs" in plan.stay["n1"]


def test_a_plan_that_rules_between_pods_cut_short_is_not_called_optimal() -> None:
    """Both pods fit on n2, but not together: the plan that moves both there is refused."""
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}]}}  # fmt: skip
    web = {**REPLICA, "labels": {"app": "web"}}
    nodes = [node(f"n{n}", {ZONE: zone}) for n, zone in enumerate("abc")]
    pods = [runs(f"w{n}", f"n{n}", {"cpu": 1}, web, affinity=apart) for n in range(2)]
    plan = plan_of(*nodes, *pods)
    assert emptied(plan) == ["n2"] and plan.stay["n1"] == "default/w1 finds no room where others have moved"
    assert not plan.optimal


def test_pods_with_claims_keep_their_nodes() -> None:
    """The devices of a claim are on the node; a pod that starts elsewhere needs a new claim."""
    held = claim("c", request(), status=allocation(("a", "g0"), users=("r",)))
    devices = [resource_slice(name, gpu("g0"), gpu("g1")) for name in "ab"]
    objects = [node("a"), node("b"), node("d"), *devices, device_class(), held, runs("p", "d", {"cpu": "1"}),
               claiming("r", claims=("c",), meta=REPLICA, nodeName="a", status={"phase": "Running"})]  # fmt: skip
    plan = plan_of(*objects)
    assert set(emptied(plan)) == {"b", "d"} and plan.stay == {"a": "default/r has claims for devices of its node"}

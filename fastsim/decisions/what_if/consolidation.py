"""Consolidation: nodes of a cluster that can be emptied, because their pods find room on the others.

The engine places every pod that moves, as it places pods that wait. A plan moves each pod once, from a node that is
emptied to one that stays. Its value is the sum of what its nodes are worth: 1 each, or their prices.

Rules between pods are read again for every move of a pod that has any. If the pod then finds no room where the plan
puts it, its node stays, and the search begins again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fastsim.cluster.node_table import price_names
from fastsim.decisions.live_cluster import ClusterState, rows_by_arrival
from fastsim.decisions.what_if.consolidation_search import ConsolidationSearch, devices
from fastsim.decisions.what_if.relocation import HeldPlace, Relocation
from fastsim.errors import InputError
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.hardware.node_constraints import conditions_of, eligible, node_labels
from fastsim.kubernetes.objects import Manifest, Notices
from fastsim.kubernetes.pod_rules.disruption_budgets import budgets, pod_name
from fastsim.kubernetes.pod_rules.evictions import CONTROL_PLANE, REASONS, goes_with_node, reason_to_stay
from fastsim.kubernetes.pod_rules.resource_claims import has_claims
from fastsim.kubernetes.pod_rules.unpinned_pods import without_node
from fastsim.kubernetes.snapshot import is_running
from fastsim.reports.kubernetes.originals import bound
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.engines.pods import prepared
from fastsim.workload import Workload
from fastsim.workload.importers.kubernetes import pods_of_rows

OF_NODES = ("node_rows", "_places", "_surroundings", "_steps", "_claims")
"""Cached properties of a snapshot that do not depend on where its pods are."""


class Move(NamedTuple):
    """One pod that moves: names of pod and nodes, numbers of devices there, and the batch of its eviction."""

    pod: str
    source: str
    target: str
    gpus: tuple[int, ...]
    batch: int


@dataclass(frozen=True)
class Emptied:
    """A node that is emptied, the moves of its pods, and what is saved: W, and $ an hour if prices are known."""

    node: str
    moves: tuple[Move, ...]
    power_w: float
    price_per_h: float | None


@dataclass(frozen=True)
class Consolidation:
    """Nodes in the order of emptying, nodes that stay with the reason, and whether no set of nodes is worth more."""

    nodes: tuple[Emptied, ...]
    stay: Mapping[str, str]
    greedy: int
    optimal: bool
    notices: Counter[str] = field(default_factory=Counter)

    @property
    def moves(self) -> list[Move]:
        """All moves in their order."""
        return [move for node in self.nodes for move in node.moves]


def node_prices(state: ClusterState, prices: Mapping[str, float]) -> dict[str, float]:
    """$ an hour by node, from prices by name, by instance type, by GPU model, or of ``cpu`` for nodes without GPUs."""
    found: dict[str, float] = {}
    for row in state.node_rows:
        kinds = price_names(row)
        price = next((prices[kind] for kind in kinds if kind in prices), None)
        if price is None:
            expected = f"a price of it beside {', '.join(prices)}"
            raise InputError("node prices", f"none of {' or '.join(kinds)}", expected)
        found[row["name"]] = price
    return found


def moved_pods(state: ClusterState, plan: Consolidation) -> Iterator[dict[str, Any]]:
    """The pods that move, on their new nodes and devices."""
    items = {pod_name(item): item for item in state.of_kind("Pod")}
    for move in plan.moves:
        place = {"node": move.target, "gpu_ids": move.gpus}
        yield bound({"apiVersion": "v1", **without_node(items[move.pod]).body}, {}, place, False)


@whole_process
def consolidation(
    state: ClusterState, *, prices: Mapping[str, float] | None = None, set_aside: Collection[str] = ()
) -> Consolidation:
    """The nodes to empty; ``prices`` are $ an hour by node, ``set_aside`` reasons for which pods would stay."""
    unknown = sorted(set(set_aside) - set(REASONS))
    if unknown:
        raise InputError("consolidation: set_aside", repr(unknown[0]), f"one of {', '.join(REASONS)}")
    pods = _Pods(state, set_aside)
    stay = dict(pods.stay)
    room = pods.room
    while True:
        search = ConsolidationSearch(room, pods.movable, pods.names, stay, prices)
        search.run()
        emptied, refused = _replayed(pods, search, prices)
        if refused is None:
            break
        stay[refused] = f"{emptied} finds no room where others have moved"
    full = {name: "its pods find no room elsewhere" for name in pods.names if name not in stay}
    left = {name: why for name, why in (stay | full).items() if name not in {node.node for node in emptied}}
    notices = Notices(state.notices)
    # Another set of nodes may be worth more where rules between pods refused one.
    optimal = search.optimal and len(stay) == len(pods.stay)
    return Consolidation(tuple(emptied), left, search.greedy_count, optimal, notices)


class _Pods:
    """Pods that run: their rows in both forms, and nodes that stay because of them."""

    def __init__(self, state: ClusterState, set_aside: Collection[str]) -> None:
        self.state, self.names = state, list(state.positions)
        items = {pod_name(item): item for item in state.of_kind("Pod")}
        self.items = {name: item for name, item in items.items() if is_running(item)}
        self.budgets = budgets(state.objects, list(items.values()))
        self.budget_of = {name: one for one in self.budgets for name in one.pods}
        self.stay = {node.name: "it runs the control plane" for node in state.of_kind("Node")
                     if set(CONTROL_PLANE) & set(node.part("metadata", "labels"))}  # fmt: skip
        self.rows = state.running()
        place_of = {row["native_id"]: n for n, row in enumerate(self.rows)}
        movable: list[str] = []
        for name, item in self.items.items():
            node = str(item.part("spec")["nodeName"])
            if goes_with_node(item) or node not in state.positions:
                continue
            why = self._reason(name, item, set_aside, name in place_of)
            if why:
                self.stay.setdefault(node, f"{name} {why}")
            else:
                movable.append(name)
        self.free = self._free_rows(movable)
        moving = [name for name in movable if name in self.free]
        self.room = self._room()
        for n in self.room.unbound:
            row = self.rows[n]
            self.stay.setdefault(row["bound_node"], f"{row['native_id']} does not fit where it runs")
        self.movable = {place_of[name]: self.free[name] for name in moving if place_of[name] not in self.room.unbound}

    def _reason(self, name: str, item: Manifest, set_aside: Collection[str], fits: bool) -> str:
        selecting = [one for one in self.budgets if name in one.pods]
        if not fits:
            return "does not fit where it runs"
        if len(selecting) > 1:
            return f"has {len(selecting)} budgets, which eviction refuses"
        if selecting and not selecting[0].allowed:
            return f"must stay by budget {selecting[0].name}"
        if has_claims(item):
            return "has claims for devices of its node"
        why = reason_to_stay(item, set_aside)
        return REASONS[why] if why else ""

    def _free_rows(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Rows of pods as if each waited alone; those whose constraints depend on other pods are marked."""
        bound = {row["native_id"]: row for row in self.rows}
        waiting = self.state.rows_of([without_node(self.items[name]) for name in names])
        rows = {row["native_id"]: row for row in waiting}
        for name, row in rows.items():
            row["ruled"] = (row["constraints"] or []) != (bound[name]["constraints"] or [])
            if row["ruled"]:
                row |= {"constraints": self.alone(name, {})["constraints"]}
        return rows

    def alone(self, name: str, nodes: Mapping[str, str]) -> dict[str, Any]:
        """The row of a pod that waits, with the other pods on their nodes, some on other ``nodes``."""
        item, items = without_node(self.items[name]), []
        for one in self.state.objects:
            if one.kind == "Pod" and pod_name(one) == name:
                one = item
            elif one.kind == "Pod" and pod_name(one) in nodes:
                one = one._replace(body={**one.body, "spec": {**one.part("spec"), "nodeName": nodes[pod_name(one)]}})
            items.append(one)
        fresh = ClusterState(items, self.state.name, self.state.memory_unit)
        vars(fresh).update({name: getattr(self.state, name) for name in OF_NODES})  # the nodes are the same
        [row] = fresh.rows_of([item])
        return row

    def _room(self) -> Relocation:
        unplaced = {"bound_node": None, "bound_gpus": None}
        waiting = [self.free.get(row["native_id"], row) | unplaced for row in self.rows]
        if not self.rows:
            raise InputError(self.state.name, "no pod that runs", "nodes and the pods that run there")
        workload = Workload.of(pods_of_rows(self.state, rows_by_arrival(self.rows, waiting)))
        return Relocation(prepared(Scenario(cluster=self.state.nodes, workload=workload, policy="best_fit")))


def _replayed(pods: _Pods, search: ConsolidationSearch, prices: Mapping[str, float] | None) -> tuple[Any, str | None]:
    """The nodes of the plan, emptied one after the other; or a pod that is refused, and its node."""
    room, names = search.room, pods.names
    search.reset()
    room.close(search.emptied)
    emptied, off, batch = list[Emptied](), list[int](), 0
    current: dict[str, str] = {}
    power = int(room.power_mw().sum())
    for node in search.emptied:
        moves, away = list[Move](), Counter[str]()
        batch += 1
        for pod in search.own.get(node, ()):
            name, place = pods.rows[pod]["native_id"], search.places[pod]
            if not _moved(pods, search, pod, place, current):
                return name, names[node]
            current[name] = names[place.node]
            budget = pods.budget_of.get(name)
            if budget is not None and away[budget.name] == budget.allowed:
                batch, away = batch + 1, Counter()
            away.update([budget.name] if budget is not None else [])
            moves.append(Move(name, names[node], names[place.node], devices(place.gpus), batch))
        off.append(node)
        batch -= not moves
        left = room.power_mw()
        now = int(left.sum() - left[off].sum())
        price = None if prices is None else prices.get(names[node])
        emptied.append(Emptied(names[node], tuple(moves), (power - now) / 1000, price))
        power = now
    return emptied, None


def _moved(pods: _Pods, search: ConsolidationSearch, pod: int, place: HeldPlace, current: Mapping[str, str]) -> bool:
    """Move a pod to its place, if the rules allow it with the other pods where they are now."""
    room, row = search.room, search.movable[pod]
    if row["ruled"]:
        fresh, nodes = pods.alone(pods.rows[pod]["native_id"], current), pods.state.node_rows
        if not eligible(conditions_of(fresh), node_labels(nodes[place.node])):
            return False
    room.take([pod])
    if row["spread"] or row.get("near") or row["group"] is not None:
        room.close(range(len(search.names)))
        room.open([place.node])
        allowed = room.choose([pod])
        room.take([pod] if allowed else [])
        room.open(range(len(search.names)))
        room.close(search.emptied)
        if not allowed:
            return False
    return room.put([(pod, place)])

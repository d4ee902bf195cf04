"""Layouts of partitioned GPUs (MIG) with which as many of the waiting pods as possible run.

Only free boards are divided anew. An integer program chooses numbers of layouts for groups of alike nodes, and bounds
the pods that any layouts can host. The engine then places the pods on each candidate: the layouts of now, those of a
greedy search, and those of the program, alike boards side by side or dealt out in turns. All choices are tried where
they are few. The plan is the candidate with the most pods, and among equals the one that divides the fewest boards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement, product
from math import comb, prod

from fastsim.cluster.cluster import Cluster
from fastsim.decisions.what_if.layout_program import (
    Group,
    LayoutProgram,
    groups_of,
    largest_layouts,
    pod_classes,
)
from fastsim.decisions.what_if.present_cluster import WHOLE, PresentCluster
from fastsim.errors import InputError, ScenarioError
from fastsim.foundation import interrupts
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.object_cache import OBJECTS
from fastsim.hardware import mig
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.engines.pods import prepared
from fastsim.workload import Workload

FEW = 200
"""Most choices of layouts that are all tried."""
Boards = Mapping[int, Mapping[int, str]]
"""New layouts by position of the node and number of the GPU."""


@dataclass(frozen=True)
class NodeLayout:
    """Layouts of all GPUs of a node now and by the plan; "" is a whole GPU."""

    node: str
    gpu_model: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class MigPlan:
    """Nodes whose layouts change, the cluster by the plan, and numbers of waiting pods.

    ``hosted_now`` of them run with the layouts of now, ``greedy`` with those of a greedy search, ``hosted`` by the
    plan. No layouts host more than ``bound``.
    """

    nodes: tuple[NodeLayout, ...]
    cluster: Cluster
    waiting: int
    hosted_now: int
    greedy: int
    hosted: int
    bound: int

    @property
    def optimal(self) -> bool:
        """Whether no layouts host more pods."""
        return self.hosted == self.bound


@whole_process
def mig_plan(
    cluster: Cluster | str, workload: Workload | str, *, nodes: Collection[str] = (), boards: int | None = None
) -> MigPlan:
    """The layouts of free boards with which most waiting pods of ``workload`` run beside those that run.

    ``nodes`` are names of the nodes whose boards may be divided, all by default; at most ``boards`` are divided.
    """
    if boards is not None and boards < 0:
        raise ScenarioError("mig: boards", f"{boards:,}", "0 or more")
    with OBJECTS.during_run():  # cluster and workload of the same files are read once
        inputs = prepared(Scenario(cluster, workload, "best_fit"))
    present = PresentCluster(inputs.cluster, inputs.workload)
    return _Search(present, _chosen(present, nodes), boards).plan()


def _chosen(present: PresentCluster, nodes: Collection[str]) -> dict[int, list[int]]:
    """Free boards by position of the node, on the named nodes or on all."""
    names = [row["name"] for row in present.nodes]
    if unknown := sorted(set(nodes) - set(names)):
        raise InputError("mig: nodes", repr(unknown[0]), f"nodes of the cluster: {', '.join(names[:3])}, …")
    free = {n: present.free_boards(n) for n, name in enumerate(names) if not nodes or name in nodes}
    found = {n: boards for n, boards in free.items() if boards}
    if not found:
        raise InputError("mig", "no free board", f"a GPU without pods of {', '.join(mig.profiles())}")
    if not present.waiting:
        raise InputError("mig", "no pod that waits", "pods that request instances such as nvidia.com/mig-1g.10gb")
    return found


class _Search:
    """Candidates, and the pods that the engine places with each."""

    def __init__(self, present: PresentCluster, free: Mapping[int, Sequence[int]], most: int | None) -> None:
        self.present, self.free, self.most = present, free, most
        self.classes = pod_classes(present)
        self.groups = groups_of(present, free, list(self.classes))
        self.wanted = frozenset(name for one in self.classes for name, _ in one.conditions.extra_resources)

    def plan(self) -> MigPlan:
        """The best of the candidates."""
        answer = LayoutProgram(self.classes, self.groups, self.most).solved()
        greedy = self._greedy()
        now: Boards = {}
        hosted = {0: self.present.hosted(now), 1: self.present.hosted(greedy)}
        candidates = [now, greedy]
        for boards in self._further(answer.layouts):
            if max(hosted.values()) >= answer.bound:
                break
            interrupts.check()
            candidates.append(boards)
            hosted[len(candidates) - 1] = self.present.hosted(boards)
        best = min(hosted, key=lambda k: (-hosted[k], self._divided(candidates[k]), k))
        return self._plan(candidates[best], hosted[0], hosted[1], hosted[best], answer.bound)

    def _plan(self, boards: Boards, now: int, greedy: int, hosted: int, bound: int) -> MigPlan:
        present = self.present
        changed = [n for n in range(len(present.nodes)) if present.after(n, boards) != present.layouts[n]]
        nodes = tuple(
            NodeLayout(present.nodes[n]["name"], present.nodes[n]["gpu_model"], tuple(present.layouts[n]),
                       tuple(present.after(n, boards)))
            for n in changed
        )  # fmt: skip
        return MigPlan(
            nodes=nodes,
            cluster=present.divided(boards),
            waiting=len(present.waiting),
            hosted_now=now,
            greedy=greedy,
            hosted=hosted,
            bound=bound,
        )

    def _divided(self, boards: Boards) -> int:
        return sum(bool(layout) for of_node in boards.values() for layout in of_node.values())

    def _further(self, layouts: Sequence[Counter[str]]) -> Iterator[Boards]:
        """The program's layouts in two orders; then every choice where there are few."""
        yield self._arranged(layouts, in_turns=False)
        yield self._arranged(layouts, in_turns=True)
        options = {n: self._options(n) for n in self.free}
        if prod(comb(len(names) + len(self.free[n]) - 1, len(self.free[n])) for n, names in options.items()) > FEW:
            return
        for chosen in product(*(combinations_with_replacement(options[n], len(self.free[n])) for n in self.free)):
            boards = {n: dict(zip(self.free[n], names, strict=True)) for n, names in zip(options, chosen, strict=True)}
            if self.most is None or self._divided(boards) <= self.most:
                yield boards

    def _options(self, n: int) -> tuple[str, ...]:
        """Layouts that a free board of a node may get."""
        return (WHOLE, *largest_layouts(self.present.nodes[n]["gpu_model"], self.wanted))

    def _arranged(self, layouts: Sequence[Counter[str]], in_turns: bool) -> Boards:
        """The layouts of each group on its boards: alike ones side by side, or dealt out to the nodes in turns."""
        boards: dict[int, dict[int, str]] = {}
        for group, counts in zip(self.groups, layouts, strict=True):
            names = sorted(counts.elements(), reverse=True)
            places = self._places(group, in_turns)
            for (n, g), name in zip(places, names + [WHOLE] * (len(places) - len(names)), strict=True):
                boards.setdefault(n, {})[g] = name
        return boards

    def _places(self, group: Group, in_turns: bool) -> list[tuple[int, int]]:
        """Free boards of a group: node and number of the GPU."""
        places = [(k, n, g) for n in group.nodes for k, g in enumerate(self.free.get(n, ()))]
        return [(n, g) for _, n, g in (sorted(places) if in_turns else places)]

    def _greedy(self) -> Boards:
        """Layouts chosen board by board: each hosts the most of the instances that are still missing."""
        missing = Counter[str]()
        for one, count in self.classes.items():
            missing.update({name: count * amount for name, amount in one.conditions.extra_resources})
        boards: dict[int, dict[int, str]] = {}
        left = sum(map(len, self.free.values())) if self.most is None else self.most
        for n in self.free:
            for g in self.free[n]:
                best = max(self._options(n), key=lambda name: _served(name, missing))
                if not left or not _served(best, missing):
                    best = WHOLE
                left -= best != WHOLE
                missing.subtract(_instances(best))
                boards.setdefault(n, {})[g] = best
        return boards


def _served(layout: str, missing: Mapping[str, int]) -> int:
    """Missing instances that a layout has."""
    return sum(min(count, max(missing[name], 0)) for name, count in _instances(layout).items())


@cache
def _instances(layout: str) -> Mapping[str, int]:
    """Instances of a layout by resource."""
    return dict(mig.request(layout)) if layout else {}

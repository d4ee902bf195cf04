"""The integer program of layouts: how many boards of each group of alike nodes get which layout.

Variables are the boards of a group that get a layout, and the pods of a class that run on a group. Instances, devices,
CPU and memory of a group are counted as one sum, and pods as if they all came at once: the program hosts at least as
many pods as any layouts do. Its objective is the number of pods, and then the fewest divided boards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import floor
from typing import NamedTuple

import numpy as np

from fastsim.decisions.what_if.present_cluster import WHOLE, PresentCluster, Spare
from fastsim.hardware import mig
from fastsim.hardware.node_constraints import Conditions, conditions_of, eligible
from fastsim.workload import schema as s

APART = 16
"""Most nodes of which each is a group of its own."""
SOLVER_S = 20.0
"""Time limit of the program, seconds; its bound holds when it is cut short, too."""
OF_A_CHANGE = 0.1
"""What dividing all boards costs, in pods: fewer are divided where as many pods run."""


class PodClass(NamedTuple):
    """Waiting pods with equal requests: CPU, memory, devices, milli-GPU of each, models, and further conditions."""

    cpu_milli: int
    memory_mib: int
    num_gpu: int
    gpu_milli: int
    gpu_models: frozenset[str]
    conditions: Conditions

    @property
    def rules(self) -> tuple[object, ...]:
        """All that decides where the pods may run, room aside."""
        models = self.gpu_models if self.num_gpu else None
        return models, self.conditions.pinned_node, self.conditions.constraints

    def runs_on(self, model: str | None, labels: Mapping[str, str]) -> bool:
        """Whether a node of this model with these labels may host the pods, room aside."""
        allowed = not self.num_gpu or not self.gpu_models or model in self.gpu_models
        return allowed and eligible(self.conditions, labels)


class Group(NamedTuple):
    """Alike nodes: model, free boards and what else is left of each, classes that may run there; their positions."""

    gpu_model: str | None
    boards: int
    spare: Spare
    classes: tuple[bool, ...]
    nodes: tuple[int, ...]


@dataclass(frozen=True)
class ProgramAnswer:
    """Layouts of the boards of each group with their counts, and most pods that any layouts can host."""

    layouts: tuple[Counter[str], ...]
    bound: int


def pod_classes(present: PresentCluster) -> Counter[PodClass]:
    """The waiting pods by class."""
    return Counter(
        PodClass(
            cpu_milli=row[s.CPU_MILLI],
            memory_mib=row[s.MEMORY_MIB],
            num_gpu=row[s.NUM_GPU],
            gpu_milli=row[s.GPU_MILLI] if row[s.NUM_GPU] else 0,
            gpu_models=frozenset(row.get(s.GPU_MODELS) or ()),
            conditions=conditions_of(row)._replace(spread=(), spread_sets=()),
        )
        for row in present.waiting
    )


def groups_of(present: PresentCluster, free: Mapping[int, Sequence[int]], classes: Sequence[PodClass]) -> list[Group]:
    """The nodes in groups; each node is a group of its own where there are few."""
    alike: dict[tuple[Group, int], list[int]] = {}
    first = {one.rules: one for one in reversed(classes)}  # few rules decide about many classes
    place = {rules: at for at, rules in enumerate(first)}
    places = [place[one.rules] for one in classes]
    for n, row in enumerate(present.nodes):
        boards = free.get(n, ())
        runs = [one.runs_on(row["gpu_model"], present.labels[n]) for one in first.values()]
        may_run = tuple(runs[at] for at in places)
        group = Group(row["gpu_model"], len(boards), present.spare(n, boards), may_run, ())
        alike.setdefault((group, n if len(present.nodes) <= APART else -1), []).append(n)
    return [group._replace(nodes=tuple(nodes)) for (group, _), nodes in alike.items()]


@cache
def largest_layouts(model: str, wanted: frozenset[str]) -> tuple[str, ...]:
    """Layouts of a board of wanted profiles, to which no further instance can be added."""
    known = {name: profile for name, profile in mig.profiles()[model].items() if profile.resource in wanted}
    found: set[tuple[tuple[str, int], ...]] = set()

    def extend(names: Counter[str], first: int) -> None:
        complete = True
        for at, name in enumerate(known):
            more = names + Counter([name])
            if mig.fit(more, known):
                complete = False
                if at >= first:
                    extend(more, at)
        if complete and names:
            found.add(tuple(sorted(names.items())))

    extend(Counter(), 0)
    return tuple("+".join(f"{count}*{name}" for name, count in layout) for layout in sorted(found))


class LayoutProgram:
    """The program for waiting pods on groups of nodes; at most ``most`` boards are divided."""

    def __init__(self, classes: Counter[PodClass], groups: Sequence[Group], most: int | None) -> None:
        self.classes, self.counts, self.groups, self.most = list(classes), list(classes.values()), groups, most
        self.wanted = frozenset(name for one in classes for name, _ in one.conditions.extra_resources)
        self.rows: list[dict[int, float]] = []
        self.limits: list[float] = []
        self.upper: list[float] = []
        self.gain: list[float] = []
        self.layout_at: list[dict[str, int]] = []
        self.pods_at: list[dict[int, int]] = []

    def solved(self) -> ProgramAnswer:
        """The best numbers of layouts; the bound holds if the time limit ends the search, too."""
        from scipy import sparse
        from scipy.optimize import Bounds, LinearConstraint, milp

        self._state()
        entries = [(row, column, value) for row, terms in enumerate(self.rows) for column, value in terms.items()]
        at, columns, values = zip(*entries, strict=True)
        matrix = sparse.csr_array((values, (at, columns)), shape=(len(self.rows), len(self.upper)))
        answer = milp(
            -np.array(self.gain), integrality=np.ones(len(self.upper)), bounds=Bounds(0, np.array(self.upper)),
            constraints=LinearConstraint(matrix, ub=np.array(self.limits)), options={"time_limit": SOLVER_S},
        )  # fmt: skip
        bound = floor(-answer.mip_dual_bound + OF_A_CHANGE + 1e-6)
        chosen = np.zeros(len(self.upper)) if answer.x is None else np.rint(answer.x)
        layouts = [Counter({name: int(chosen[at]) for name, at in names.items()}) for names in self.layout_at]
        return ProgramAnswer(tuple(+layout for layout in layouts), min(bound, sum(self.counts)))

    def _variable(self, upper: float, gain: float) -> int:
        self.upper.append(upper)
        self.gain.append(gain)
        return len(self.upper) - 1

    def _at_most(self, terms: Mapping[int, float], limit: float) -> None:
        self.rows.append(dict(terms))
        self.limits.append(limit)

    def _state(self) -> None:
        """State all variables and rows."""
        boards = sum(group.boards * len(group.nodes) for group in self.groups)
        for group in self.groups:
            self._state_group(group, OF_A_CHANGE / (boards + 1))
        for k, count in enumerate(self.counts):
            self._at_most({pods[k]: 1.0 for pods in self.pods_at if k in pods}, count)
        if self.most is not None:
            divided = {at: 1.0 for names in self.layout_at for name, at in names.items() if name != WHOLE}
            self._at_most(divided, self.most)

    def _state_group(self, group: Group, cost: float) -> None:
        count = len(group.nodes)
        layouts = largest_layouts(group.gpu_model, self.wanted) if group.gpu_model and group.boards else ()
        x = {name: self._variable(group.boards * count, -cost) for name in layouts}
        x[WHOLE] = self._variable(group.boards * count, 0.0)
        y = {k: self._variable(self.counts[k], 1.0) for k, may_run in enumerate(group.classes) if may_run}
        self.layout_at.append(x)
        self.pods_at.append(y)
        self._at_most(dict.fromkeys(x.values(), 1.0), group.boards * count)
        for amount in ("cpu_milli", "memory_mib"):
            asked = {at: float(getattr(self.classes[k], amount)) for k, at in y.items()}
            self._at_most(asked, getattr(group.spare, amount) * count)
        self._state_devices(group, x, y)
        self._state_instances(group, x, y)

    def _state_devices(self, group: Group, x: Mapping[str, int], y: Mapping[int, int]) -> None:
        """Parts of whole GPUs within the milli-GPU that are left, and whole GPUs within boards that stay whole."""
        count, asked = len(group.nodes), {at: self.classes[k] for k, at in y.items()}
        parts = {at: float(one.num_gpu * one.gpu_milli) for at, one in asked.items()}
        self._at_most({**parts, x[WHOLE]: -float(mig.WHOLE)}, group.spare.gpu_milli * count)
        whole = {at: float(one.num_gpu) for at, one in asked.items() if one.gpu_milli == mig.WHOLE}
        free = group.spare.gpu_milli // mig.WHOLE if not group.boards else 0
        self._at_most({**whole, x[WHOLE]: -1.0}, free * count)

    def _state_instances(self, group: Group, x: Mapping[str, int], y: Mapping[int, int]) -> None:
        spare = dict(group.spare.instances)
        for name in sorted(self.wanted):
            if not name.startswith(mig.PREFIX):
                continue
            terms = {at: float(dict(self.classes[k].conditions.extra_resources).get(name, 0)) for k, at in y.items()}
            for layout, at in x.items():
                terms[at] = -float(dict(mig.request(layout)).get(name, 0)) if layout else 0.0
            self._at_most(terms, spare.get(name, 0) * len(group.nodes))

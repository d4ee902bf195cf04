"""Stages after the main run: inflation, another target workload, descheduling; and descheduling during it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fastsim.errors import PolicyError, kind_of
from fastsim.foundation.limits.knobs import INFLATION

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.engine.online.plan import PodRequest
    from fastsim.engine.online.user_scorers import UserScorers
    from fastsim.workload.pod_classes import PodClasses
    from fastsim.workload.typical_pods import TypicalPods
    from fastsim_ext.online.loop import OnlineLoop
    from fastsim_ext.state.node_table import NodeTable
    from fastsim_ext.state.pod_table import WorkTable


class StagedRun(Protocol):
    """A run in progress as its stages see it: its tables, the loop, and the columns that they were made of.

    ``pods`` counts those that were read, ``class_of`` has their classes if some will be cloned.
    """

    cluster: Cluster
    columns: dict[str, Any]
    classes: PodClasses
    scorers: UserScorers
    nodes: NodeTable
    work: WorkTable
    online: OnlineLoop
    pods: int
    class_of: list[Any]

    def note_stage(self, tag: str) -> None:
        """Record the current state as a stage with this name."""

    def retarget(self, typical: TypicalPods) -> None:
        """Measure fragmentation against another target workload from now on."""


@dataclass(frozen=True)
class RunningPod:
    """A pod that runs: its slot, arrival number, request, node position and devices."""

    slot: int
    seq: int
    request: PodRequest
    node: int
    gpus: tuple[int, ...]


class RunView:
    """The view of a descheduler: nodes, running pods, and fragmentation without some of them."""

    def __init__(self, run: StagedRun) -> None:
        self._online = run.online
        self.nodes: Any = run.scorers.nodes
        self.names: list[str] = run.cluster.nodes["name"].to_pylist()
        self.present: Any = run.columns["present"]
        request = run.scorers.request
        self.pods = [
            RunningPod(slot, seq, request(cls), node, tuple(g for g in range(64) if gpus >> g & 1))
            for slot, seq, cls, node, gpus, _ in run.work.running()
        ]

    def fragmentation(self, node: int, without: Sequence[RunningPod] = ()) -> float:
        """Fragmentation of a node in milli-GPU if these of its pods were gone."""
        return float(self._online.work.frag_without(self._online.nodes, node, [pod.slot for pod in without]))

    def pods_by_node(self) -> dict[int, list[RunningPod]]:
        """Running pods of every node that has any, in arrival order."""
        pods_of: dict[int, list[RunningPod]] = {}
        for pod in self.pods:
            pods_of.setdefault(pod.node, []).append(pod)
        return pods_of


class Descheduler(Protocol):
    """Chooses which running pods to take off their nodes."""

    def victims(self, view: RunView, limit: int) -> Sequence[RunningPod]:
        """At most ``limit`` pods, in the order in which they are evicted and placed again."""


@dataclass(frozen=True)
class Deschedule:
    """Evict up to ``ratio`` of the running pods and place them again, at ``at_s`` seconds or at the end (None)."""

    policy: Descheduler
    ratio: float
    at_s: float | None = None


@dataclass(frozen=True)
class Inflation:
    """At the end, place clones of random pods up to ``ratio`` times their number, measure, take them back."""

    ratio: float
    seed: int = 0


def deschedule(run: StagedRun, step: Deschedule) -> None:
    """Evict the policy's victims, then place them again in the same order."""
    view = RunView(run)
    limit = math.ceil(step.ratio * len(view.pods))
    victims = _victims(step.policy, view, limit)
    for pod in victims:
        run.online.evict(pod.slot)
    run.note_stage("post_eviction")
    for pod in victims:
        run.online.move(pod.slot)
    run.note_stage("post_deschedule")


def _victims(policy: Descheduler, view: RunView, limit: int) -> list[RunningPod]:
    """At most ``limit`` running pods, each once; PolicyError if the policy returned anything else."""
    answer: Any = policy.victims(view, limit)
    where = f"deschedule {type(policy).__qualname__}: victims()"
    expected = "a list of pods of view.pods, each once"
    if isinstance(answer, str | bytes | Mapping | type) or not isinstance(answer, Iterable):
        raise PolicyError(where, kind_of(answer), expected)
    running, chosen = {pod.slot for pod in view.pods}, list[RunningPod]()
    for pod in answer:
        if len(chosen) == limit:
            break
        if not isinstance(pod, RunningPod) or pod.slot not in running:
            raise PolicyError(where, kind_of(pod), expected)
        running.remove(pod.slot)
        chosen.append(pod)
    return chosen


def inflate(run: StagedRun, step: Inflation) -> None:
    """Place clones of random pods until the demand would exceed the cluster, note the state, remove them."""
    INFLATION.refuse(run.pods, step.ratio)
    class_of = np.concatenate([np.zeros(0, np.int32), *run.class_of])
    clones = math.ceil(run.pods * step.ratio) - run.pods
    drawn = np.random.Generator(np.random.PCG64DXSM(step.seed)).integers(0, max(run.pods, 1), max(clones, 0))
    slots = [run.online.trial(int(cls)) for cls in class_of[drawn][: affordable(run, class_of, drawn)]]
    run.note_stage("inflation")
    for slot in reversed(slots):
        if slot >= 0:
            run.online.discard(slot)


def affordable(run: StagedRun, class_of: Any, drawn: Any) -> int:
    """How many of the drawn clones fit before total CPU or GPU demand would exceed the cluster's capacity."""
    rows = run.classes.rows()
    cpu = rows["cpu_milli"][class_of]
    gpu = (rows["num_gpu"].astype(np.int64) * rows["gpu_milli"] + run.classes.mig_milli(rows))[class_of]
    total = run.nodes.totals()
    fits = (cpu.sum() + cpu[drawn].cumsum() <= total["cpu_cap"]) & (gpu.sum() + gpu[drawn].cumsum() <= total["gpu_cap"])
    return int(np.argmin(fits)) if not fits.all() else len(drawn)


def closing_stages(
    run: StagedRun, steps: Sequence[Deschedule], inflation: Inflation | None, retarget: TypicalPods | None
) -> None:
    """Run the closing stages of the options, in the order of the published simulator."""
    closing = [step for step in steps if step.at_s is None]
    if inflation is None and retarget is None and not closing:
        return
    run.note_stage("schedule")
    if inflation is not None:
        inflate(run, inflation)
    if retarget is not None:
        run.retarget(retarget)
        run.note_stage("retarget")
    for step in closing:
        deschedule(run, step)
        run.online.note_deschedule()

"""Descheduling: running pods to evict, so that placing them again reduces fragmentation."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from numbers import Real
from typing import TYPE_CHECKING, Any

from fastsim.engine.online.closing_stages import Deschedule
from fastsim.errors import PolicyError, ScenarioError, kind_of, short, suggestion
from fastsim.foundation.limits.quantities import WITH_UNITS, seconds_of

if TYPE_CHECKING:
    from fastsim.engine.online.closing_stages import RunningPod, RunView


@dataclass(frozen=True)
class CosSim:
    """Evict the pod that resembles its node least, from nodes short of CPU that still have free GPUs.

    similarity = cos(free + pod, pod) over (milli-CPU, milli-GPU); one pod of each node with less than
    ``cpu_free_milli`` CPU left and a device with more than ``gpu_free_milli`` left, most free GPU first. Of
    equally similar pods the first to arrive goes; a pod that requests neither CPU nor GPU counts as similar.
    """

    cpu_free_milli: int = 2000
    gpu_free_milli: int = 500

    def victims(self, view: RunView, limit: int) -> list[RunningPod]:
        """At most ``limit`` pods, in the order of their nodes."""
        cpu, gpu = view.nodes.cpu_free, view.nodes.gpu_free.sum(axis=1)
        pods = view.pods_by_node()
        nodes = [
            n for n in pods
            if cpu[n] < self.cpu_free_milli and view.nodes.gpu_free[n].max() > self.gpu_free_milli
        ]  # fmt: skip
        nodes.sort(key=lambda n: (-gpu[n], view.names[n]))
        victims_in_order = (
            min(pods[n], key=lambda pod: _squared_similarity(pod, int(cpu[n]), int(gpu[n]))) for n in nodes
        )
        return list(islice(victims_in_order, limit))


def _squared_similarity(pod: RunningPod, cpu_free: int, gpu_free: int) -> Fraction:
    """Ranks as the similarity does, which is never negative, but exactly: rounding must not part equal pods."""
    cpu, gpu = pod.request.cpu_milli, pod.request.num_gpu * pod.request.gpu_milli
    lengths = ((cpu_free + cpu) ** 2 + (gpu_free + gpu) ** 2) * (cpu**2 + gpu**2)
    return Fraction(((cpu_free + cpu) * cpu + (gpu_free + gpu) * gpu) ** 2, lengths) if lengths else Fraction(1)


def _best_eviction(
    view: RunView, node: int, evicted: Sequence[RunningPod], pods: Sequence[RunningPod]
) -> tuple[int, int]:
    """(whole milli-GPU of fragmentation saved, index) of the pod whose eviction saves most; the first on ties."""
    before = view.fragmentation(node, evicted)
    saved = [math.trunc(before - view.fragmentation(node, [*evicted, pod])) for pod in pods]
    best = max(saved, default=0)
    return best, saved.index(best) if saved else -1


@dataclass(frozen=True)
class FragOnePod:
    """Evict from each node, most fragmented first, the one pod whose eviction saves most fragmentation.

    saved = trunc(F_before - F_after) in milli-GPU; nodes where no pod saves anything are passed over.
    """

    def victims(self, view: RunView, limit: int) -> list[RunningPod]:
        """At most ``limit`` pods, in the order of their nodes."""
        return list(islice(self._choices(view), limit))

    def _choices(self, view: RunView) -> Iterator[RunningPod]:
        pods = view.pods_by_node()
        for node in sorted(pods, key=lambda n: (-view.fragmentation(n), n)):
            saved, index = _best_eviction(view, node, (), pods[node])
            if saved > 0:
                yield pods[node][index]


@dataclass(frozen=True)
class FragMultiPod:
    """Evict again and again, from the node that is most fragmented then, the pod that saves most.

    Like :class:`FragOnePod`, but a node returns to the queue with its remaining fragmentation after each eviction.
    """

    def victims(self, view: RunView, limit: int) -> list[RunningPod]:
        """At most ``limit`` pods, in the order of their choice."""
        return list(islice(self._choices(view), limit))

    def _choices(self, view: RunView) -> Iterator[RunningPod]:
        pods = view.pods_by_node()
        evicted: dict[int, list[RunningPod]] = {node: [] for node in pods}
        queue = [(-view.fragmentation(node), node) for node in pods]
        heapq.heapify(queue)
        while queue:
            _, node = heapq.heappop(queue)
            saved, index = _best_eviction(view, node, evicted[node], pods[node])
            if saved > 0:
                pod = pods[node].pop(index)
                evicted[node].append(pod)
                heapq.heappush(queue, (-view.fragmentation(node, evicted[node]), node))
                yield pod


DESCHEDULERS = {"cos_sim": CosSim, "frag_one_pod": FragOnePod, "frag_multi_pod": FragMultiPod}
"""Deschedule policies by name."""


def deschedule_from(step: Any) -> Deschedule:
    """The step ``"frag_one_pod:0.05"`` (after the run) or ``"cos_sim:0.1@3600"`` (at a time in seconds)."""
    expected = "a text such as 'frag_one_pod:0.05' or 'cos_sim:0.1@1h', or a Deschedule(policy, ratio, at_s)"
    if isinstance(step, Deschedule):
        return _checked(step)
    if not isinstance(step, str):
        raise ScenarioError("deschedule", kind_of(step), expected)
    name, _, rest = str(step).partition(":")
    ratio, at, when = rest.partition("@")
    at_s = seconds_of(when) if at else None
    try:
        share = float(ratio)
    except ValueError:
        raise ScenarioError("deschedule", repr(step), expected) from None
    if at and at_s is None:
        raise ScenarioError(f"deschedule {step!r}", repr(when), f"a time of 0 or more: seconds, or {WITH_UNITS}")
    if not 0 <= share <= 1 or (at_s is not None and not 0 <= at_s < float("inf")):
        raise ScenarioError("deschedule", repr(step), "a ratio from 0 to 1 and a time of 0 or more")
    return Deschedule(_descheduler(name.strip()), share, at_s)


def _checked(step: Deschedule) -> Deschedule:
    """The step; PolicyError if its policy chooses no pods, ScenarioError if its numbers are none."""
    if isinstance(step.policy, type) or not callable(getattr(step.policy, "victims", None)):
        raise PolicyError("deschedule: policy", kind_of(step.policy), "an object with a method victims(view, limit)")
    numbers = [step.ratio] if step.at_s is None else [step.ratio, step.at_s]
    if any(isinstance(number, bool) or not isinstance(number, Real) for number in numbers) or not (
        0 <= step.ratio <= 1 and 0 <= numbers[-1] < float("inf")
    ):
        found = f"ratio {short(step.ratio)}, at_s {short(step.at_s)}"
        raise ScenarioError("deschedule", found, "a ratio from 0 to 1 and a time of 0 or more")
    return step


def _descheduler(name: str) -> Any:
    if name not in DESCHEDULERS:
        raise PolicyError(f"deschedule {name!r}", "an unknown name", f"one of {', '.join(DESCHEDULERS)}",
                          suggestion(name, DESCHEDULERS))  # fmt: skip
    return DESCHEDULERS[name]()

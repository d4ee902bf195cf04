"""Preferences of pods and nodes, as kube-scheduler scores them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from fastsim.engine.online.plan import PREFERENCE_KERNELS, ScoreTerm
from fastsim.errors import PolicyError
from fastsim.policies.online.weighted_sum import Summand
from fastsim.policies.registry import about, policy

MOST = 100
"""Largest weight of one score."""


@policy("preferred")
@dataclass(frozen=True)
class Preferred(Summand):
    """Choose the node that pods and nodes prefer: what Kubernetes calls soft rules, which forbid no node.

    score = the sum of five scores of 0 to 100, each times its weight: preferred node affinity, taints
    PreferNoSchedule, spread with ScheduleAnyway, preferred affinity and anti-affinity between pods, images that a node
    has. Each is normalised over the nodes that can host the pod, with the formulas and default weights of
    kube-scheduler 1.36. So ``fgd + preferred`` weighs fgd as kube-scheduler weighs a score of weight 1.

    Where no preference tells nodes apart, all have equal points, and a mix decides as without this policy. A decision
    about a pod that has any looks at every node.
    """

    citation: ClassVar[str] = """@misc{kubescheduler2026,
  title = {Kubernetes Scheduler, version 1.36},
  author = {{The Kubernetes Authors}},
  howpublished = {https://kubernetes.io/docs/concepts/scheduling-eviction/kube-scheduler/},
  year = {2026}
}"""
    picks_gpus: ClassVar[bool] = False

    node_affinity: int = field(default=2, metadata=about("weight of preferred node affinity"))
    taint_toleration: int = field(default=3, metadata=about("weight of taints PreferNoSchedule"))
    pod_spread: int = field(default=2, metadata=about("weight of spread with ScheduleAnyway"))
    pod_affinity: int = field(default=2, metadata=about("weight of affinity between pods"))
    image_locality: int = field(default=1, metadata=about("weight of images that a node has"))

    def __post_init__(self) -> None:
        super().__post_init__()
        for kernel, weight in zip(PREFERENCE_KERNELS, self._weights(), strict=True):
            if not 0 <= weight <= MOST:
                raise PolicyError(f"policy preferred, parameter {kernel}", str(weight), f"0 to {MOST}")

    def terms(self) -> tuple[ScoreTerm, ...]:
        """The five scores, those of weight 0 left out."""
        weighted = zip(PREFERENCE_KERNELS, self._weights(), strict=True)
        return tuple(ScoreTerm(kernel, weight) for kernel, weight in weighted if weight)

    def most(self) -> int:
        """Its largest points, in hundreds: the sum of its weights."""
        return sum(self._weights())

    def kernel(self) -> str:
        """Its own name, because it is several scores."""
        return self.policy_name

    def _weights(self) -> tuple[int, ...]:
        weights: tuple[int, ...] = tuple(getattr(self, kernel) for kernel in PREFERENCE_KERNELS)
        return weights

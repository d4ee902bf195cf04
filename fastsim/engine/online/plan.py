"""The interface between the online engine and placement policies: the plan, its score terms, scorers in Python.

From the cluster and the workload, a policy makes one :class:`OnlinePlan`, which is data. The engine executes the plan
for every pod; it never calls the policy again, except for a :class:`Scorer` written in Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from fastsim.hardware.node_constraints import NONE, Conditions
from fastsim.scenario.sort_keys import PODS_QUEUES

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from fastsim.cluster.cluster import Cluster
    from fastsim.workload import Workload

KERNELS = ("random", "dot_product", "gpu_clustering", "gpu_packing", "best_fit", "fgd", "pwr", "simon", "python")
PREFERENCE_KERNELS = ("node_affinity", "taint_toleration", "pod_spread", "pod_affinity", "image_locality")
"""Scores of a pod's preferences, 0 to 100; they depend on the other nodes that can host it, so none is kept."""
NORMALISERS = ("none", "min_max_0", "min_max_100")
GPU_PICKS = ("best", "worst", "random", "fgd", "pwr", "dot_product")
DIMS = ("merge", "share", "divide", "extend")
NORMS = ("node", "pod", "max")
RULES = ("drop", "fifo", "fifo_skip", "priority", "priority_skip", "drf", "easy", "conservative")
QUEUES = (*RULES, *PODS_QUEUES)
"""Queue rules by name; the text of a sort key is one, too."""
BACKFILL = ("easy", "conservative")
"""Queue rules that reserve with estimated durations."""


class Scorer(Protocol):
    """A user's scoring function: one vectorised call for each pod.

    ``nodes`` has one array per node column (milli-CPU, MiB, milli-GPU), ``pod`` one number per
    request; the answer is one number of points for every node, larger is better; floats are rounded
    to the nearest whole number, halves to the even one. Points of nodes that cannot host the pod are
    ignored.
    """

    def __call__(self, nodes: NodeColumns, pod: PodRequest) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
        """Points of every node for this pod."""


class NodeColumns(Protocol):
    """Read-only node columns a :class:`Scorer` may look at, in position order."""

    cpu_milli: npt.NDArray[np.int64]
    cpu_free: npt.NDArray[np.int64]
    memory_mib: npt.NDArray[np.int64]
    memory_free: npt.NDArray[np.int64]
    num_gpu: npt.NDArray[np.int32]
    gpu_free: npt.NDArray[np.int32]
    gpu_model: npt.NDArray[np.int32]
    pods: npt.NDArray[np.int32]
    feasible: npt.NDArray[np.uint8]


@dataclass(frozen=True)
class PodRequest:
    """The request of a pod: milli-CPU, MiB, number of GPUs, milli-GPU of each, and further ``conditions``."""

    cpu_milli: int
    memory_mib: int
    num_gpu: int
    gpu_milli: int
    gpu_models: tuple[str, ...]
    conditions: Conditions = NONE


@dataclass(frozen=True)
class ScoreTerm:
    """One summand of a node's total: ``weight`` times the normalised integer score of ``kernel``.

    ``dim`` and ``norm`` are read by ``dot_product`` only, ``scorer`` by ``python`` only.
    """

    kernel: str
    weight: int = 1
    normalise: str = "none"
    dim: str = "merge"
    norm: str = "max"
    scorer: Scorer | None = None


@dataclass(frozen=True)
class OnlinePlan:
    """Everything the nogil loop needs to place pods.

    ``queue`` decides about a pod that fits nowhere: ``drop`` it, or keep it in a
    ``fifo``/``priority`` queue, where ``_skip`` lets later pods overtake one that does not fit.
    ``drf`` serves the tenant with the smallest dominant share first; ``easy`` and ``conservative``
    backfill: a pod overtakes only if no reservation (of the first that waits, of all) is delayed.
    The orders of ``fastsim.scenario.sort_keys`` and texts of keys sort the line.
    """

    terms: tuple[ScoreTerm, ...]
    gpu_pick: str = "best"
    gpu_dim: str = "merge"
    gpu_norm: str = "max"
    queue: str = "drop"

    @property
    def node_terms(self) -> tuple[ScoreTerm, ...]:
        """The terms that look at one node at a time, or are functions of the user's."""
        return tuple(term for term in self.terms if term.kernel not in PREFERENCE_KERNELS)

    @property
    def draws(self) -> bool:
        """Whether numbers are drawn, each by the number of attempts to place a pod before it."""
        return self.gpu_pick == "random" or any(term.kernel == "random" for term in self.terms)

    @property
    def preference_weights(self) -> tuple[int, ...]:
        """Weights of the scores of preferences, in the order of :data:`PREFERENCE_KERNELS`."""
        return tuple(
            sum(term.weight for term in self.terms if term.kernel == kernel) for kernel in PREFERENCE_KERNELS
        )  # fmt: skip


class OnlinePolicy(Protocol):
    """A placement policy, which makes one plan for a cluster and a workload."""

    def plan(self, cluster: Cluster, workload: Workload) -> OnlinePlan:
        """The plan for this cluster and workload."""

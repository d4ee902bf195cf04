"""The online engine with decisions from outside: it stops before each pod that some node can host."""

from collections.abc import Mapping
from typing import Any

from fastsim_ext.online.loop import OnlineLoop
from fastsim_ext.select.scan import Selector
from fastsim_ext.state.node_table import NodeTable
from fastsim_ext.state.pod_table import WorkTable

NODE_FEATURES: tuple[str, ...]
"""Columns of what is seen of a node, shares of its capacity."""
POD_FEATURES: tuple[str, ...]
"""Features of a pod: shares of the largest node, and the part of the pods that have arrived."""

class SteppedLoop(OnlineLoop):
    """One episode: feed() all arrivals, then begin(), and step() until it is over."""

    action: int
    count: int
    def __init__(
        self,
        nodes: NodeTable,
        work: WorkTable,
        select: Selector,
        options: Mapping[str, Any],
        reward__t: Any,
        stale__n: Any,
        typical_count: int,
        queue_rule: int = 0,
    ) -> None: ...
    def begin(self, node__nf: Any, pod__f: Any, fits__n: Any) -> bool:
        """Go on to the first decision and write its observation to the arrays; whether there is one."""
    def step(self, node: int, node__nf: Any, pod__f: Any, fits__n: Any) -> tuple[float, bool]:
        """Place the pod (-1: as the plan chooses) and go on to the next decision: (reward, whether there is one)."""
    def advice(self) -> int:
        """The node that the plan would choose now. It counts as no attempt, so later draws stay the same."""
    @property
    def pod_class(self) -> int:
        """The class of the pod that arrives next."""
    def restart(self) -> None:
        """Back to the first arrival with an empty cluster."""

def stepped(
    episodes: list[SteppedLoop],
    node__e: Any,
    nodes__enf: Any,
    pod__ef: Any,
    fits__en: Any,
    reward__e: Any,
    over__e: Any,
) -> None:
    """One step of every episode; those that are over begin again, which is marked in ``over__e``."""

"""The online engine with a waiting line that is served from outside: which of its first pods starts next, or none."""

from collections.abc import Mapping
from typing import Any

from fastsim_ext.online.stepped_loop import SteppedLoop
from fastsim_ext.select.scan import Selector
from fastsim_ext.state.node_table import NodeTable
from fastsim_ext.state.pod_table import WorkTable

JOB_FEATURES: tuple[str, ...]
"""Features of a waiting pod: shares of the largest node, hours, and 1 where the place of the line is taken."""
LINE_FEATURES: tuple[str, ...]
"""Features of the line: number of waiting pods, and the part of the pods that have arrived."""

class SteppedQueue(SteppedLoop):
    """One episode: feed() all arrivals, then begin_line(), and serve() until it is over."""

    places: int
    def __init__(
        self,
        nodes: NodeTable,
        work: WorkTable,
        select: Selector,
        options: Mapping[str, Any],
        reward__t: Any,
        stale__n: Any,
        typical_count: int,
        waiting_weight: float,
        places: int,
    ) -> None: ...
    def begin_line(self, node__nf: Any, job__kf: Any, line__f: Any, mask__a: Any) -> bool:
        """Go on to the first decision and write its observation to the arrays; whether there is one."""
    def serve(self, place: int, node__nf: Any, job__kf: Any, line__f: Any, mask__a: Any) -> tuple[float, bool]:
        """Start the pod at a place of the line, or none, and go on: (reward, whether there is another decision)."""
    def restart(self) -> None:
        """Back to the first arrival with an empty cluster and an empty line."""

def served(
    episodes: list[SteppedQueue],
    place__e: Any,
    nodes__enf: Any,
    jobs__ekf: Any,
    line__ef: Any,
    mask__ea: Any,
    reward__e: Any,
    over__e: Any,
) -> None:
    """One decision of every episode; those that are over begin again, which is marked in ``over__e``."""

def restarted(episodes: list[SteppedQueue], nodes__enf: Any, jobs__ekf: Any, line__ef: Any, mask__ea: Any) -> None:
    """Restart every episode at its first decision."""

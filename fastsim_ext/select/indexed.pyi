"""The fast spelling of a decision: columns for frequent pod classes, bounds for rare ones."""

from collections.abc import Mapping
from typing import Any

from fastsim_ext.select.scan import Selector
from fastsim_ext.select.score_columns import ScoreColumns
from fastsim_ext.select.state_memo import Memo
from fastsim_ext.state.node_table import NodeTable
from fastsim_ext.state.pod_table import WorkTable

class IndexedSelector(Selector):
    """A Selector that answers the same choices from what it kept."""

    table: ScoreColumns
    changes: int
    packed: int
    built: int
    scans: int
    searches: int
    looked_at: int
    def __init__(self, nodes: NodeTable, work: WorkTable, plan: Mapping[str, Any], seed: int, scorer: Any) -> None: ...
    def restart(self, memo: Memo) -> None:
        """Forget all columns and keep points in another memo from now on."""
    def raw(self, kernel: int, dim: int, norm: int, n: int, cls: int) -> tuple[int, int]:
        """(raw points, devices as bits) of one kernel on node ``n`` as it is now, as columns work them out."""
    def bound(self, kernel: int, n: int, cls: int, most_cpu: int) -> int | None:
        """Raw points of one kernel on node ``n`` that no pod like those of the class exceeds.

        That is, whatever CPU it asks for from theirs up to ``most_cpu`` milli-CPU; None if there is no bound.
        """
    def verify(self) -> int:
        """Every column says of every node what it would say if it were made now."""

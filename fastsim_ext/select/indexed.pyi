"""The fast selector: score columns for frequent pod classes, bounds for rare ones."""

from collections.abc import Mapping
from typing import Any

from fastsim_ext.select.scan import Selector
from fastsim_ext.select.score_columns import ScoreColumns
from fastsim_ext.select.state_memo import Memo
from fastsim_ext.state.node_table import NodeTable
from fastsim_ext.state.pod_table import WorkTable

class IndexedSelector(Selector):
    """A Selector with equal choices that stores points and totals between decisions."""

    table: ScoreColumns
    changes: int
    packed: int
    built: int
    scans: int
    searches: int
    evaluated: int
    def __init__(self, nodes: NodeTable, work: WorkTable, plan: Mapping[str, Any], seed: int, scorer: Any) -> None: ...
    def restart(self, memo: Memo) -> None:
        """Drop all columns and store points in another memo from now on."""
    def raw(self, kernel: int, dim: int, norm: int, n: int, cls: int) -> tuple[int, int]:
        """(raw points, devices as bits) of one kernel on node ``n`` as it is now, computed as for columns."""
    def bound(self, kernel: int, n: int, cls: int, most_cpu: int) -> int | None:
        """Upper bound of the raw points of one kernel on node ``n`` for pods like those of the class.

        It holds for CPU requests from theirs up to ``most_cpu`` milli-CPU; None if the kernel has no bound.
        """
    def verify(self) -> int:
        """Check that every column equals one built now."""

"""What every node is worth to one pod class, kept for many classes and corrected node by node."""

from collections.abc import Mapping
from typing import Any

from fastsim_ext.select.state_memo import Memo
from fastsim_ext.state.node_table import NodeTable

def stretches(plan: Mapping[str, Any]) -> bool:
    """Whether totals depend on extremes over the nodes; ``plan`` as in a Selector."""

def narrows(plan: Mapping[str, Any]) -> bool:
    """Whether totals take one byte: of one term alone their order is that of its points, whatever its weight."""

class ScoreColumns:
    """The columns of one run; ``memo`` keeps points by node state, ``kind`` numbers equal nodes."""

    n_columns: int
    n_used: int
    n_families: int
    n_terms: int
    limit: int
    dear: int
    stretched: bool
    bounded: bool
    def __init__(self, nodes: NodeTable, plan: Mapping[str, Any], memo: Memo, kind: Any, state: Any) -> None: ...
    def restart(self, memo: Memo) -> None:
        """Forget all columns and keep points in another memo from now on."""
    def verify(self) -> int:
        """Every column says of every node what it would say if it were made now, from points worked out anew."""

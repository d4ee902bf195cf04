"""Totals of all nodes for one pod class, stored as columns for many classes and updated node by node."""

from collections.abc import Mapping
from typing import Any

from fastsim_ext.select.state_memo import Memo
from fastsim_ext.state.node_table import NodeTable

def normalises(plan: Mapping[str, Any]) -> bool:
    """Whether totals depend on extremes over the nodes; ``plan`` as in a Selector."""

def fits_byte(plan: Mapping[str, Any]) -> bool:
    """Whether totals take one byte: of one term alone their order is that of its points, whatever its weight."""

class ScoreColumns:
    """The columns of one run; ``memo`` stores points by node state, ``kind`` numbers equal nodes."""

    n_columns: int
    n_used: int
    n_families: int
    n_terms: int
    limit: int
    frag_term: int
    normalised: bool
    bounded: bool
    def __init__(self, nodes: NodeTable, plan: Mapping[str, Any], memo: Memo, kind: Any, state: Any) -> None: ...
    def restart(self, memo: Memo) -> None:
        """Drop all columns and store points in another memo from now on."""
    def verify(self) -> int:
        """Check that every column equals one built now from points computed again."""

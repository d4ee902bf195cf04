"""Scores of preferences by the formulas of kube-scheduler: 0 to 100 on each node that can host a pod."""

from collections.abc import Sequence
from typing import Any

from fastsim_ext.state.node_table import NodeTable
from fastsim_ext.state.pod_membership import PodMembership

class PreferenceTable:
    """Preferences by class, and pods of each set by node."""

    def __init__(self, nodes: NodeTable, membership: PodMembership, weights: Sequence[int]) -> None: ...
    def add_row(self, row: Any) -> int:
        """The place of a row with a number for each node, for ``add``."""
    def add(
        self,
        cls: int,
        sets: Sequence[int],
        fixed: tuple[int, int, int],
        spread: Sequence[tuple[int, int, int, int]],
        near: Sequence[tuple[int, int, int, int]],
    ) -> None:
        """Preferences of a class, and the numbers of the sets that its pods are in.

        ``fixed``: places of the rows with points for node affinity, numbers of taints, and scores for images; -1
        without. ``spread``: (set, largest skew, place of the row of domains, number of domains), where a domain is -1
        on nodes that are passed over, and -2 less the domain on those whose pods do not count; of 0 domains each node
        is one. ``near``: (set, points for each pod, place of the row of domains, number of domains), -1 in no domain.
        """

"""Constraints of pod classes besides CPU, memory and devices, and the node state they are checked against."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastsim_ext.online.preferences import PreferenceTable
from fastsim_ext.select.scan import NodeFilter, Selector
from fastsim_ext.state.node_table import NodeTable
from fastsim_ext.state.pod_membership import PodMembership
from fastsim_ext.state.pod_table import WorkTable

class ConstraintTable(NodeFilter):
    """Conditions by class, and device memory and further resources by node."""

    preferences: PreferenceTable
    def __init__(
        self, nodes: NodeTable, work: WorkTable, select: Selector, membership: PodMembership, columns: Mapping[str, Any]
    ) -> None: ...
    def add_rule(
        self,
        cls: int,
        gpu_mem: int,
        extra: Sequence[int],
        foreign: bool,
        group: int,
        most: int,
        allowed: bytes | None,
        sets: Sequence[int] = (),
        spread: Sequence[tuple[int, int, int, int, Any]] = (),
    ) -> None:
        """Conditions of a class: MiB by device, amounts by resource, whether it needs one that no node has, a group
        and its limit, which nodes may host it (a byte for each, or None), sets and rules as in ``SpreadTable.add``."""

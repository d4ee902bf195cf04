"""The waiting line as a search tree, for the rules that let pods pass one that fits nowhere."""

from fastsim_ext.state.node_table import NodeTable
from fastsim_ext.state.pod_table import WorkTable

class WaitingLine:
    """The pods of ``work`` that wait; ``searchable`` unless a failed attempt counts or is listened to."""

    searchable: bool
    searches: int
    def __init__(self, nodes: NodeTable, work: WorkTable, searchable: bool, order: int) -> None: ...
    def verify(self) -> int:
        """The trees hold the waiting pods in the order of the line, and no cell promises too little."""

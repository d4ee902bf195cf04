"""What was worked out about a node's state, kept for whoever meets that state again."""

from collections.abc import Sequence
from typing import Any

class Memo:
    """Figures by node state and pod class; ``most_bytes`` bounds what keys and rows take.

    With ``cpus``, the distinct CPU requests of a target workload in rising order (milli-CPU), states that
    fragmentation for that workload cannot tell apart are one.
    """

    words: int
    width: int
    each: int
    n_lanes: int
    lane_room: int
    n_states: int
    forgotten: int
    most_bytes: int
    generation: int
    def __init__(self, width: int, each: int, most_bytes: int, cpus: Any = None) -> None: ...
    @property
    def bytes(self) -> int:
        """Memory of keys, rows and table, in bytes."""
    def number(self, kind: int, cpu_left: int, gpu_left: Sequence[int]) -> int:
        """The number of a state, new or known: kind of node, milli-CPU left, milli of each device."""
    def place(self, cpu: int, mem: int, num_gpu: int, milli: int, models: int) -> int:
        """The place of a pod class in every row, new or known, or -1; units as in WorkTable.add_class."""
    def replace(self, kept: Sequence[int]) -> None:
        """Give pod classes new places: the one at place ``kept[k]`` gets place ``k``, and others lose theirs."""
    def figure(self, state: int, place: int, term: int) -> int | None:
        """What is known of a state, a pod class and a term, or None."""
    def keep(self, state: int, place: int, term: int, figure: int) -> None:
        """Keep what was worked out for a state, a pod class and a term."""
    def verify(self) -> int:
        """Every state is found where its key says, and no two are equal."""

"""Figures computed for a node state, stored by state and pod class for reuse."""

from collections.abc import Sequence
from typing import Any

class Memo:
    """Figures by node state and pod class; ``most_bytes`` bounds the memory of keys and rows.

    With ``cpus``, the distinct CPU requests of a target workload in rising order (milli-CPU), states with equal
    fragmentation for that workload, now and after any pod, are one.
    """

    words: int
    width: int
    terms_each: int
    n_lanes: int
    lane_room: int
    n_states: int
    forgotten: int
    most_bytes: int
    generation: int
    def __init__(self, width: int, terms_each: int, most_bytes: int, cpus: Any = None) -> None: ...
    @property
    def bytes(self) -> int:
        """Memory of keys, rows and table, in bytes."""
    def number(self, kind: int, cpu_left: int, gpu_left: Sequence[int]) -> int:
        """The number of a state, new or known: kind of node, milli-CPU left, milli of each device."""
    def place(self, cpu: int, mem: int, num_gpu: int, milli: int, models: int) -> int:
        """The lane of a pod class, new or known, or -1 if all are taken; units as in WorkTable.add_class."""
    def reorder(self, order: Sequence[int]) -> None:
        """Reorder the lanes: the class at ``order[k]`` moves to ``k``; classes not in ``order`` are dropped."""
    def figure(self, state: int, place: int, term: int) -> int | None:
        """The figure of a state, a pod class and a term, or None."""
    def keep(self, state: int, place: int, term: int, figure: int) -> None:
        """Store the figure of a state, a pod class and a term."""
    def verify(self) -> int:
        """Check that every state is found by its key and that no two are equal."""

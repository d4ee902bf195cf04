"""The online engine: arrivals, departures and node changes in time order, one decision a pod."""

from collections.abc import Callable, Mapping
from typing import Any

from fastsim_ext.select.scan import Selector
from fastsim_ext.select.waiting_line import WaitingLine
from fastsim_ext.state.departure_queue import DepartureQueue
from fastsim_ext.state.node_table import NodeTable
from fastsim_ext.state.pod_table import WorkTable

AREAS: tuple[str, ...]
"""Names of the integrals over time that state() answers."""

class OnlineLoop:
    """One run: feed() arrivals, advance() until it needs more, then finish()."""

    nodes: NodeTable
    work: WorkTable
    select: Selector
    departures: DepartureQueue
    line: WaitingLine
    now: float
    next_s: float
    events: int
    n_rows: int
    def __init__(self, nodes: NodeTable, work: WorkTable, select: Selector, options: Mapping[str, Any]) -> None: ...
    @property
    def arrived(self) -> int:
        """Pods that have arrived so far."""
    def feed(
        self, a_pod_id: Any, a_class: Any, a_submit: Any, a_duration: Any, a_priority: Any, a_tenant: Any, a_node: Any,
        a_gpus: Any, last: bool,
    ) -> None:  # fmt: skip
        """The next batch of arrivals, in time order; ``last`` if there are no more.

        ``a_node`` is the node that each pod is bound to when it arrives (-1: none), ``a_gpus`` its devices as bits or
        0; both are None if no pod is bound.
        """
    def advance(self, budget: int) -> int:
        """Process up to ``budget`` events; returns the Status for which it stopped."""
    def sample_gpus_at(self, t: float) -> None:
        """Return GPU_SAMPLE before any event after second ``t``, and before arrivals at ``t``."""
    def reach_end(self) -> None:
        """Advance to the second at which the run stops, if there are pods that have not left."""
    def finish(self, drained: Callable[[], None] | None = None) -> None:
        """Close the run: running and waiting pods leave as they are, the last row is written.

        ``drained`` is called whenever ``DRAIN_ROWS`` outcome rows are there, so that they never take much memory.
        """
    def drain_rows(self) -> bytes:
        """The timeline rows so far; they are forgotten here."""
    def state(self) -> tuple[bytes, bytes, dict[str, float]]:
        """(row of now, last row with arrived demand within capacity, integrals over time by AREAS and the seconds)."""
    def snapshot(self) -> dict[str, Any]:
        """State of the loop between two calls, apart from its tables; all that restore() needs."""
    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a snapshot(); every fed pod had arrived then."""
    def evict(self, slot: int) -> None:
        """Take a running pod off its node; it keeps its slot and departure for move()."""
    def move(self, slot: int) -> bool:
        """Place an evicted pod again, keeping its departure; lost if it fits nowhere. True if placed."""
    def trial(self, cls: int) -> int:
        """Place a pod that leaves no trace in the counts; its slot for discard(), or -1."""
    def discard(self, slot: int) -> None:
        """Undo a trial()."""
    def note_deschedule(self) -> None:
        """Close a deschedule event: its timeline row, and waiting pods may fit now."""
    def verify(self) -> int:
        """Every table's invariants, and: what pods hold plus what is free is the capacity."""

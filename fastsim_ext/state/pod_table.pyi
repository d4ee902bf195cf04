"""Pod classes, the pods in the system, the waiting line and the outcomes."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastsim_ext.state.gpu_prices import Tariff
from fastsim_ext.state.node_table import NodeTable

class WorkTable:
    """Owner of classes, slots, the waiting line and outcomes."""

    n_classes: int
    n_outcomes: int
    waiting: int
    def add_class(self, cpu: int, mem: int, num_gpu: int, milli: int, models: int, mig: int = 0) -> int:
        """A new pod class: milli-CPU, MiB, devices, milli of each, allowed models as bits (0 = any), milli of its
        instances of partitioned GPUs."""
    def add_classes(self, cpu: Any, mem: Any, num_gpu: Any, milli: Any, models: Any, mig: Any) -> None:
        """New pod classes, column by column; units as in add_class()."""
    def use_tariff(self, tariff: Tariff) -> None:
        """Charge GPUs by ``tariff`` from now on."""
    def paid(self) -> tuple[float | None, list[float]]:
        """($ of the pods that are gone or None, GPU seconds that they held by tenant)."""
    def drain(self) -> bytes:
        """Remove and return the outcome rows so far."""
    def spans(self, room: Any) -> tuple[list[int], int, int]:
        """Write the values of the outcome rows, and remove those: (count of each value, preemptions, restarts).

        A row each for seconds of waits until the first start, of completion times and of lost work; slowdowns over the
        ideal time; seconds of pauses; wasted GPU seconds. Preemptions and restarts are those of pods that are gone.
        """
    def snapshot(self) -> tuple[bytes, dict[str, Any]]:
        """(slots and accounts as bytes, ends of the lists and sums over pods that are gone): all that restore() needs.

        Outcomes must have been drained.
        """
    def restore(self, slots: Any, ends: Mapping[str, Any]) -> None:
        """Restore the pods of a snapshot(); their classes must have been added."""
    def present(self) -> list[int]:
        """Arrival numbers of all pods that wait or run, in no particular order."""
    def running(self) -> list[tuple[int, int, int, int, int, float]]:
        """(slot, seq, class, node, devices as bits, start in s) of every running pod, by seq."""
    def frag_without(self, nodes: NodeTable, node: int, slots: Sequence[int]) -> float:
        """Fragmentation of a node in milli-GPU without these of its pods."""
    def verify(self) -> int:
        """Check the waiting line."""

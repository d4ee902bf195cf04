"""Pod classes, the pods in the system, the waiting line and the outcomes."""

from collections.abc import Mapping
from typing import Any

def spans_of(rows: Any, room: Any) -> tuple[int, int, int, int]:
    """The same as WorkTable.spans() of outcome rows that were drained, as bytes."""

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
    def drain(self) -> bytes:
        """The outcome rows so far; they are forgotten here."""
    def spans(self, room: Any) -> tuple[int, int, int, int]:
        """Seconds into three rows: waits until the first start, arrival to end if finished, work lost by those gone.

        Answers how many there are of each, and how often pods that are gone were stopped for others. The outcome rows
        so far are forgotten here.
        """
    def snapshot(self) -> tuple[bytes, dict[str, int]]:
        """(every slot as bytes, the ends of its lists): all that restore() needs. Outcomes must have been drained."""
    def restore(self, slots: Any, ends: Mapping[str, int]) -> None:
        """Take over the pods of a snapshot(); their classes must have been added."""
    def present(self) -> list[int]:
        """Arrival numbers of all pods that wait or run, in no particular order."""
    def running(self) -> list[tuple[int, int, int, int, int, float]]:
        """(slot, seq, class, node, devices as bits, start in s) of every running pod, by seq."""
    def verify(self) -> int:
        """Check the waiting line."""

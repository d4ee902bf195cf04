"""Pod classes, the pods in the system, the waiting line and the outcomes."""

from collections.abc import Mapping
from typing import Any

from fastsim_ext.state.gpu_prices import Tariff

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
    def charge(self, tariff: Tariff) -> None:
        """What GPUs cost from now on."""
    def paid(self) -> tuple[float | None, list[float]]:
        """($ of the pods that are gone or None, GPU seconds that they held by tenant)."""
    def drain(self) -> bytes:
        """The outcome rows so far; they are forgotten here."""
    def spans(self, room: Any) -> tuple[list[int], int, int]:
        """Values into one row each: seconds of waits until the first start, of arrival to end if finished, of work
        lost by those gone; of finished ones completion over ideal time and seconds of pauses; GPU seconds spoilt.

        Answers how many there are of each, how often pods that are gone were stopped for others, and their restarts.
        The outcome rows so far are forgotten here.
        """
    def snapshot(self) -> tuple[bytes, dict[str, Any]]:
        """(every slot and account as bytes, the ends of the lists and sums of who is gone): all that restore() needs.

        Outcomes must have been drained.
        """
    def restore(self, slots: Any, ends: Mapping[str, Any]) -> None:
        """Take over the pods of a snapshot(); their classes must have been added."""
    def present(self) -> list[int]:
        """Arrival numbers of all pods that wait or run, in no particular order."""
    def running(self) -> list[tuple[int, int, int, int, int, float]]:
        """(slot, seq, class, node, devices as bits, start in s) of every running pod, by seq."""
    def verify(self) -> int:
        """Check the waiting line."""

"""Declared memory of the pods that run, and when it is given back."""

from __future__ import annotations

from collections.abc import Callable, Hashable


class Charges:
    """MiB that nobody has declared: `capacity_mib` less what every running pod declares, whatever admitted it.

    It may be negative. With ``one_release`` at most one pod is let go each time one looks, the oldest that is over.
    """

    def __init__(self, capacity_mib: int = 32_510, one_release: bool = False) -> None:
        self.available_mib = capacity_mib
        self.one_release = one_release
        self._running: dict[Hashable, int] = {}

    @property
    def running(self) -> list[Hashable]:
        """Pods that are charged, in the order of placement."""
        return list(self._running)

    def place(self, pod: Hashable, request_mib: int) -> None:
        """Charge a pod."""
        self.available_mib -= request_mib
        self._running[pod] = request_mib

    def release(self, over: Callable[[Hashable], bool]) -> list[Hashable]:
        """Let go of pods that are over; those that were let go."""
        gone = [pod for pod in self._running if over(pod)]
        if self.one_release:
            gone = gone[:1]
        for pod in gone:
            self.available_mib += self._running.pop(pod)
        return gone

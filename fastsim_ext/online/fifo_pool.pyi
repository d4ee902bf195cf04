"""One pool of interchangeable devices under strict FIFO: the cluster in which position does not matter."""

from typing import Any

def fifo_starts(submit: Any, duration: Any, devices: Any, capacity: int, start: Any) -> int:
    """Start of every job in seconds, NaN if it never starts; returns how many start."""

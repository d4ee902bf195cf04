"""What one of a table's MiB stands for, so that amounts of bytes that Kubernetes adds exactly stay exact.

Kubernetes adds bytes, tables hold whole MiB. Two pods of 50 MB fit on 100 MB, but 48 MiB twice are more than the 95 MiB
that are there in full. If all pods ask for multiples of some amount, that amount can be a whole number of steps which
are a little less than a MiB: 50 MB as 48 steps of 1,041,666.7 bytes, 100 MB as 96. Then sums of pods are exact on every
node, and figures of memory are more than they should be, pods and nodes alike, by one sixteenth at most.

Where no such step is near a MiB, what pods ask for is rounded up to MiB, and so is what a node has: its pods may then
hold more than it has, by less than a MiB. Where every pod asks for whole MiB, those are exact, and nodes are cut.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import ceil, floor, gcd
from typing import NamedTuple

from fastsim.kubernetes.quantity import MIB, rounded_away

FINEST = 10**9
"""Amounts are whole numbers of billionths of a byte, as quantities are."""
NEAR = Fraction(1, 16)
"""The most that a step may be less than a MiB, as a part of it."""


class MemoryStep(NamedTuple):
    """Bytes that count as one MiB, and whether nodes' are rounded up to it."""

    size: Fraction = Fraction(MIB)
    up: bool = False

    def needed(self, amount: Fraction) -> int:
        """Steps that a request of so many bytes takes."""
        return rounded_away(amount / self.size)

    def there(self, amount: Fraction) -> int:
        """Steps that a node with so many bytes has."""
        return ceil(amount / self.size) if self.up else floor(amount / self.size)

    @property
    def notice(self) -> str:
        """What is not exact because of it; "" if nothing is."""
        if self.up:
            return "not in whole MiB, so pods on a node may hold up to one MiB more than it has"
        if self.size != MIB:
            return f"each {float(self.size):,.1f} bytes count as one MiB, so that sums are exact"
        return ""


IN_MIB = MemoryStep()
"""Steps of a MiB; what a node has is cut."""


def memory_step(amounts: Iterable[Fraction]) -> MemoryStep:
    """The step for pods that ask for so many bytes."""
    wanted = {amount for amount in amounts if amount}
    if all((amount / MIB).denominator == 1 for amount in wanted):
        return IN_MIB
    common = Fraction(gcd(*(int(amount * FINEST) for amount in wanted)), FINEST)
    size = common / ceil(common / MIB)
    return MemoryStep(size) if MIB - size <= NEAR * MIB else MemoryStep(up=True)

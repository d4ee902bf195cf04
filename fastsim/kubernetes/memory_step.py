"""Bytes that one MiB of a table stands for, chosen so that sums of requests stay exact.

Kubernetes adds bytes, tables hold whole MiB. Two pods of 50 MB fit on 100 MB, but 48 MiB twice are more than the 95 MiB
that are there in full. If all requests are multiples of some amount, that amount can be a whole number of steps which
are a little less than a MiB: 50 MB as 48 steps of 1,041,666.7 bytes, 100 MB as 96. Then sums of pods are exact on every
node; memory of pods and nodes alike reads too high, by one sixteenth at most.

Where no such step is near a MiB, requests and nodes' memory are both rounded up to MiB: the pods of a node may then
hold up to a MiB more than it has. Where all requests are whole MiB, they are exact, and nodes are rounded down.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import ceil, floor, gcd
from typing import NamedTuple

from fastsim.errors import InputError
from fastsim.kubernetes.quantity import MIB, MOST, rounded_away

FINEST = 10**9
"""Amounts are whole numbers of billionths of a byte, as quantities are."""
NEAR = Fraction(1, 16)
"""Largest distance of a step below a MiB, as a part of it."""


class MemoryStep(NamedTuple):
    """Bytes that count as one MiB, and whether memory of nodes is rounded up to it."""

    size: Fraction = Fraction(MIB)
    up: bool = False

    def request(self, amount: Fraction) -> int:
        """Steps of a request of `amount` bytes."""
        return _within(rounded_away(amount / self.size))

    def capacity(self, amount: Fraction) -> int:
        """Steps of a node with `amount` bytes."""
        return _within(ceil(amount / self.size) if self.up else floor(amount / self.size))

    @property
    def notice(self) -> str:
        """Notice about inexact memory; "" if all is exact."""
        if self.up:
            return "not in whole MiB, so pods on a node may hold up to one MiB more than it has"
        if self.size != MIB:
            return f"each {float(self.size):,.1f} bytes count as one MiB, so that sums are exact"
        return ""


def _within(mib: int) -> int:
    if mib > MOST:
        raise InputError("memory", f"{float(mib):g} MiB", f"at most {MOST:,} MiB")
    return mib


IN_MIB = MemoryStep()
"""Steps of a MiB; memory of nodes is rounded down."""


def memory_step(amounts: Iterable[Fraction]) -> MemoryStep:
    """The step for pods with these requests in bytes."""
    requests = {amount for amount in amounts if amount}
    if all((amount / MIB).denominator == 1 for amount in requests):
        return IN_MIB
    common = Fraction(gcd(*(int(amount * FINEST) for amount in requests)), FINEST)
    size = common / ceil(common / MIB)
    return MemoryStep(size) if MIB - size <= NEAR * MIB else MemoryStep(up=True)

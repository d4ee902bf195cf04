"""Random streams: one per seed and concern, so that a change in one concern never reshuffles another.

Only the raw 64-bit output of the counter-based Philox generator is used: numpy promises that it stays the same, so a
seed means the same numbers on every machine and version.
"""

from __future__ import annotations

import hashlib
from typing import Any, cast

import numpy as np
from numpy.random.bit_generator import ISeedSequence

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

# Acklam's rational approximation of the normal quantile, relative error below 1.2e-9.
_CENTRE = (
    (-39.69683028665376, 220.9460984245205, -275.9285104469687,
     138.357751867269, -30.66479806614716, 2.506628277459239),
    (-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572, 1.0),
)  # fmt: skip
_TAIL = (
    (-0.007784894002430293, -0.3223964580411365, -2.400758277161838,
     -2.549732539343734, 4.374664141464968, 2.938163982698783),
    (0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661907416, 1.0),
)  # fmt: skip
_EDGE = 0.02425


class _Key(ISeedSequence):
    """The key of a generator. Given as ``key`` it takes longer: NumPy then asks the operating system for a seed."""

    def __init__(self, digest: bytes) -> None:
        self.words = np.frombuffer(digest, "<u8").astype(np.uint64)

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """The two words of the key."""
        return self.words


class Stream:
    """An endless sequence of random numbers; drawing 10 then 5 gives the same 15 as drawing 15."""

    def __init__(self, seed: int, concern: str) -> None:
        digest = hashlib.sha256(f"fastsim:{seed}:{concern}".encode()).digest()
        # NumPy takes any ISeedSequence, although its types name one kind of them.
        self._bits = np.random.Philox(cast(np.random.SeedSequence, _Key(digest[:16])))

    def raw(self, count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """The next `count` 64-bit words."""
        words: np.ndarray[Any, np.dtype[np.uint64]] = self._bits.random_raw(count)
        return words

    def uniform(self, count: int) -> Floats:
        """The next `count` numbers, uniform inside (0, 1), both ends excluded."""
        return ((self.raw(count) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53

    def below(self, bound: int, count: int) -> Ints:
        """The next `count` integers from 0 to `bound` - 1; the bias is below bound / 2^53."""
        return np.minimum((self.uniform(count) * bound).astype(np.int64), bound - 1)

    def normal(self, count: int) -> Floats:
        """The next `count` standard normal numbers."""
        return normal_quantile(self.uniform(count))

    def exponential(self, count: int) -> Floats:
        """The next `count` exponential numbers with mean 1."""
        gaps: Floats = -np.log(self.uniform(count))
        return gaps


def shuffled_order(seed: int, concern: str, count: int) -> list[int]:
    """A seeded random order of 0 to `count` - 1."""
    order: list[int] = np.argsort(Stream(seed, concern).raw(count), kind="stable").tolist()
    return order


def normal_quantile(p: Floats) -> Floats:
    """The number that a standard normal variable stays below with probability `p`."""
    tail = np.minimum(p, 1.0 - p)
    r = p - 0.5
    centre = r * np.polyval(_CENTRE[0], r * r) / np.polyval(_CENTRE[1], r * r)
    q = np.sqrt(-2.0 * np.log(np.maximum(tail, 1e-300)))
    outside = np.copysign(np.polyval(_TAIL[0], q) / np.polyval(_TAIL[1], q), r)
    value: Floats = np.where(tail < _EDGE, outside, centre)
    return value

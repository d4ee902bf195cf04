"""The numbers of CPython's `random.Random(seed)`, many at a time.

CPython's generator is MT19937, and everything it draws is cut from its 32-bit words: a float takes two words, a choice
among n things takes one word per attempt. numpy has the same generator; given CPython's state it makes the same words.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fastsim.errors import InputError, ScenarioError

Words = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
SKIP = 1 << 20
"""Words made at once while skipping."""
Given = Mapping[float, float] | Mapping[int, float] | str
"""Value -> share, or the same as text: `1:0.7,2:0.3`."""


class Twister:
    """The endless words of `random.Random(seed)`; `used` of them were taken, `ahead` shows the next without taking."""

    def __init__(self, seed: int, used: int = 0) -> None:
        if used < 0:
            raise InputError("twister: used", used, "0 or more words")
        self._buffer: Words = np.zeros(0, np.uint32)
        self.used, self._seed = used, seed

    @cached_property
    def _bits(self) -> np.random.MT19937:
        """The generator, whose state takes 0.2 ms: made when the first word is drawn."""
        *key, place = random.Random(self._seed).getstate()[1]
        bits, words = np.random.MT19937(), np.array(key, np.uint32)
        bits.state = {"bit_generator": "MT19937", "state": {"key": words, "pos": place}}
        for start in range(0, self.used, SKIP):
            bits.random_raw(min(SKIP, self.used - start), output=False)
        return bits

    def ahead(self, count: int) -> Words:
        """The next `count` words, which are not taken."""
        if count > len(self._buffer):
            fresh: Any = self._bits.random_raw(count - len(self._buffer))
            self._buffer = np.concatenate([self._buffer, fresh.astype(np.uint32)])
        return self._buffer[:count]

    def take(self, count: int) -> Words:
        """The next `count` words."""
        words = self.ahead(count)
        self._buffer = self._buffer[count:]
        self.used += count
        return words

    def floats(self, count: int) -> Floats:
        """The next `count` results of `random()`."""
        return floats_at(self.take(2 * count))[::2]

    def below(self, limit: int, count: int) -> Ints:
        """The next `count` results of `randrange(limit)`, which is also what `choice` draws."""
        guess = 64 + 3 * count
        while True:
            numbers = numbers_at(self.ahead(guess), limit)
            good = np.flatnonzero(numbers < limit)[:count]
            if len(good) == count:
                self.take(int(good[-1]) + 1 if count else 0)
                return numbers[good]
            guess *= 2


def floats_at(words: Words) -> Floats:
    """Result of `random()` at each word, from that and the next word; the last word has none."""
    # 27 and 26 high bits of two words: CPython's own arithmetic, exact at every step.
    high, low = (words[:-1] >> 5).astype(np.float64), (words[1:] >> 6).astype(np.float64)
    uniform: Floats = (high * 67108864.0 + low) * (1.0 / 9007199254740992.0)
    return uniform


def numbers_at(words: Words, limit: int) -> Ints:
    """Result of one attempt of `randrange(limit)` at each word; `limit` or more means another attempt."""
    return (words >> np.uint32(32 - limit.bit_length())).astype(np.int64)


def chain(following: Ints, count: int) -> Ints:
    """The places 0, `following[0]`, `following[following[0]]`, ...: `count` of them, fewer if they lead outside."""
    places, place, after, end = [], 0, following.data, len(following)
    for _ in range(count):
        if place >= end:
            break
        places.append(place)
        place = after[place]
    return np.array(places, np.int64)


@dataclass(frozen=True)
class Mix:
    """Values and the upper ends of their shares of the unit interval; the last end is 1 and not written."""

    values: tuple[float, ...]
    edges: tuple[float, ...]

    @classmethod
    def of(cls, given: Given, where: str) -> Mix:
        """The mix of an option, which `where` names; shares must be positive and add up to 1."""
        if not isinstance(given, str | Mapping):
            raise ScenarioError(where, repr(given), "values and their shares, such as 1:0.7,2:0.3")
        shares = _parsed(given, where) if isinstance(given, str) else dict(given)
        # Decimal arithmetic: 0.7 + 0.1 is to be the float 0.8, as a reader of the shares expects.
        exact = [Fraction(str(share)) for share in shares.values()]
        if not shares or min(exact) <= 0 or sum(exact) != 1:
            raise ScenarioError(where, dict(shares), "positive shares that add up to 1")
        edges = [float(sum(exact[: i + 1])) for i in range(len(exact) - 1)]
        return cls(tuple(shares), tuple(edges))

    def picks(self, uniform: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Position of the value that each uniform number picks.

        An edge belongs to the value above it. The original gives some edges to the value below, a difference that one
        draw in 2**53 can show.
        """
        positions: npt.NDArray[np.int64] = np.searchsorted(self.edges, uniform, "right")
        return positions

    def at(self, uniform: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The value that each uniform number picks."""
        return np.array(self.values, np.float64)[self.picks(uniform)]

    def shares(self) -> dict[str, float]:
        """Value -> upper end of its share, as JSON takes it."""
        return {f"{value:g}": edge for value, edge in zip(self.values, (*self.edges, 1.0), strict=True)}


def _parsed(text: str, where: str) -> dict[float, float]:
    try:
        pairs = [word.split(":") for word in text.split(",")]
        shares = {float(value): float(share) for value, share in pairs}
    except ValueError:
        raise ScenarioError(where, repr(text), "value:share, more of them after a comma") from None
    if len(shares) < len(pairs):
        raise ScenarioError(where, repr(text), "every value once")
    return shares

"""The numbers of CPython's `random.Random(seed)`, many at a time.

CPython's generator is MT19937, and everything it draws is cut from its 32-bit words: a float takes two words, a choice
among n things takes one word per attempt. numpy has the same generator; given CPython's state it makes the same words.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt

from fastsim.errors import InputError

Words = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SKIP = 1 << 20
"""Words made at once while skipping."""


class Twister:
    """The endless words of `random.Random(seed)`; `used` of them were taken, `ahead` shows the next without taking."""

    def __init__(self, seed: int, used: int = 0) -> None:
        if used < 0:
            raise InputError("twister: used", used, "0 or more words")
        *key, place = random.Random(seed).getstate()[1]
        self._bits = np.random.MT19937()
        words = np.array(key, np.uint32)
        self._bits.state = {"bit_generator": "MT19937", "state": {"key": words, "pos": place}}
        self._held: Words = np.zeros(0, np.uint32)
        self.used = used
        for start in range(0, used, SKIP):
            self._bits.random_raw(min(SKIP, used - start), output=False)

    def ahead(self, count: int) -> Words:
        """The next `count` words, which stay where they are."""
        if count > len(self._held):
            fresh: Any = self._bits.random_raw(count - len(self._held))
            self._held = np.concatenate([self._held, fresh.astype(np.uint32)])
        return self._held[:count]

    def take(self, count: int) -> Words:
        """The next `count` words."""
        words = self.ahead(count)
        self._held = self._held[count:]
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
    """What `random()` would answer at each word, of which it takes that and the next; the last word has no answer."""
    # 27 and 26 high bits of two words: CPython's own arithmetic, exact at every step.
    high, low = (words[:-1] >> 5).astype(np.float64), (words[1:] >> 6).astype(np.float64)
    found: Floats = (high * 67108864.0 + low) * (1.0 / 9007199254740992.0)
    return found


def numbers_at(words: Words, limit: int) -> Ints:
    """What one attempt of `randrange(limit)` would see at each word; `limit` or more means another attempt."""
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

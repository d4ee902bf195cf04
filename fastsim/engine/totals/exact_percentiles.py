"""Many values in seconds, held outside memory, and their exact mean, percentiles and maximum.

The figures are bit for bit those of ``numpy.mean``, ``numpy.percentile`` and ``numpy.max`` over one array of
all values in the order they came, however they were batched: numpy adds up in halves, which can be done piece
by piece, and a percentile needs only two ranks, which counting by leading bits finds in a few passes.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from fastsim_ext.sorting import counted, gathered

HELD = 1 << 19
"""Values held in memory before they move to a file: 4 MB."""
GATHERED = 1 << 19
"""Values that are few enough to be sorted in memory."""
PERCENTS = (50, 95, 99)

Floats = np.ndarray[Any, np.dtype[np.float64]]
Keys = np.ndarray[Any, np.dtype[np.uint64]]


class ExactPercentiles:
    """Values in seconds in the order they came; memory does not grow with their number."""

    def __init__(self, path: Path | None = None, count: int | None = None) -> None:
        self._held: list[Floats] = []
        self._held_count = 0
        self.count = self._stored = count or 0
        self._file: IO[bytes] | None = None
        if path is not None:  # ``count`` values of an earlier start are taken over
            self._file = path.open("w+b" if count is None else "r+b")
            self._file.truncate(8 * self._stored)

    def add(self, values: Floats) -> None:
        """Take more values; none may be NaN."""
        if len(values):
            self._held.append(np.ascontiguousarray(values, np.float64))
            self.count += len(values)
            self._held_count += len(values)
            if self._held_count >= HELD:
                self.store()

    def store(self) -> None:
        """Move the values held in memory to the file."""
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._file.seek(0, 2)
        for values in self._held:
            self._file.write(values.data)
        self._stored += self._held_count
        self._held, self._held_count = [], 0
        self._file.flush()

    def secure(self) -> None:
        """Move the values held in memory to the file, and force the file to the disk."""
        self.store()
        assert self._file is not None
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; a temporary one is gone with its values."""
        if self._file is not None:
            self._file.close()

    def figures(self, name: str) -> dict[str, float | None]:
        """``{name}_mean_s``, the percentiles and ``{name}_max_s``; all None without values."""
        names = (f"{name}_mean_s", *(f"{name}_p{q}_s" for q in PERCENTS), f"{name}_max_s")
        if not self.count:
            return dict.fromkeys(names)
        largest = max(float(piece.max()) for piece in self.pieces())
        return dict(zip(names, (self.total() / self.count, *self.percentiles(PERCENTS), largest), strict=True))

    def total(self) -> float:
        """The sum, in the order of additions of ``numpy.sum``; 0 without values."""
        if not self.count:
            return 0.0
        return _summed(self._reader(), self.count)

    def percentiles(self, percents: Sequence[float]) -> list[float]:
        """Percentiles with linear interpolation between the two nearest ranks."""
        places = [(self.count - 1) * (q / 100) for q in percents]
        below = [min(math.floor(place), self.count - 1) for place in places]
        above = [min(rank + 1, self.count - 1) for rank in below]
        value_at = self._ranked(sorted({*below, *above}))
        return [_between(value_at[low], value_at[high], place - low)
                for place, low, high in zip(places, below, above, strict=True)]  # fmt: skip

    def _ranked(self, ranks: Sequence[int]) -> dict[int, float]:
        if self.count > GATHERED:
            return values_at(self.pieces, ranks)
        ordered = np.sort(np.concatenate(list(self.pieces())) + 0.0)  # so that -0.0 is not found in place of 0.0
        return {rank: float(ordered[rank]) for rank in ranks}

    def pieces(self) -> Iterator[Floats]:
        """All values, some hundred thousand at a time."""
        take, left = self._reader(), self.count
        while left:
            yield take(min(left, HELD))
            left -= min(left, HELD)

    def _reader(self) -> Callable[[int], Floats]:
        """A function that returns the next `count` values, from the first one on."""
        if self._stored:
            self.store()
            file = self._file
            assert file is not None
            file.flush()
            file.seek(0)
            return lambda count: np.frombuffer(file.read(8 * count), np.float64)
        whole = np.concatenate(self._held)
        self._held = [whole]
        at = 0

        def take(count: int) -> Floats:
            nonlocal at
            at += count
            return whole[at - count : at]

        return take


def _summed(take: Callable[[int], Floats], count: int) -> float:
    # Halves are cut as numpy cuts them, so a sum of sums is its sum of the whole.
    if count <= HELD:
        return float(np.add.reduce(take(count)))
    half = count // 2
    half -= half % 8
    return _summed(take, half) + _summed(take, count - half)


def _between(low: float, high: float, share: float) -> float:
    """Linear interpolation, from whichever end is nearer, as numpy does it."""
    return high - (high - low) * (1 - share) if share >= 0.5 else low + (high - low) * share


def values_at(pieces: Callable[[], Iterator[Floats]], ranks: Sequence[int]) -> dict[int, float]:
    """The values at these ranks (from 0) of the sorted values."""
    values: dict[int, float] = {}
    open_: dict[int, tuple[int, int]] = {rank: (0, rank) for rank in ranks}  # leading bits, rank among those values
    for shift in (48, 32, 16, 0):
        counts = _counted(pieces, {prefix for prefix, _ in open_.values()}, shift)
        for rank, (prefix, place) in list(open_.items()):
            upto = counts[prefix].cumsum()
            digit = int(np.searchsorted(upto, place, side="right"))
            place -= int(upto[digit - 1]) if digit else 0
            open_[rank] = (prefix << 16 | digit, place)
        count_of = {prefix: int(counts[prefix >> 16][prefix & 0xFFFF]) for prefix, _ in open_.values()}
        few = {prefix: count for prefix, count in count_of.items() if count <= GATHERED}
        at_hand = _sorted(pieces, few, shift) if few and shift else {}
        for rank, (prefix, place) in list(open_.items()):
            if shift == 0:
                values[rank] = _value(prefix)
            elif prefix in at_hand:
                values[rank] = _value(int(at_hand[prefix][place]))
                del open_[rank]
        if not open_:
            break
    return values


def _counted(pieces: Callable[[], Iterator[Floats]], prefixes: set[int], shift: int) -> dict[int, Any]:
    """Number of values by leading bits (`prefixes`) and the next sixteen bits."""
    listed, counts = np.array(sorted(prefixes), np.uint64), np.zeros((len(prefixes), 1 << 16), np.int64)
    for piece in pieces():
        counted(piece, shift, listed, counts)
    return dict(zip(sorted(prefixes), counts, strict=True))


def _sorted(pieces: Callable[[], Iterator[Floats]], counts: dict[int, int], shift: int) -> dict[int, Keys]:
    """The keys with each of these leading bits, ascending; `counts` is their number."""
    chosen = {prefix: np.empty(count, np.uint64) for prefix, count in counts.items()}
    filled = dict.fromkeys(chosen, 0)
    for piece in pieces():
        for prefix, keys in chosen.items():
            filled[prefix] = gathered(piece, shift, prefix, keys, filled[prefix])
    return {prefix: np.sort(keys) for prefix, keys in chosen.items()}


def _value(key: int) -> float:
    bits = key ^ 2**63 if key >> 63 else key ^ (2**64 - 1)
    return float(np.array(bits, np.uint64).view(np.float64))

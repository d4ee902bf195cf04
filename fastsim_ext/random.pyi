"""Random numbers: streams of the Mersenne Twister MT19937, keyed numbers, and rows drawn without putting back.

The streams are drawn from as CPython's ``random`` and as numpy draw, so that a run can go on from a seeded stream.
``draw_bits`` and ``draw_below`` hold no state: they mix their three keys.
"""

from collections.abc import Sequence
from typing import Any

def rows_taken(counts: Any, places: Any, taken: Any) -> None:
    """Take the row at each place among those left out of the tree, one after the other, and put its number down.

    ``counts`` is a Fenwick tree over the rows: a node holds the count of the rows below it that are left.
    """

def exchange(items: Any, others: Any, last: int) -> None:
    """Exchange the item at ``last`` with that at the first other place, the one before with the second, and so on."""

def drawn(state: Sequence[int], draws: int, limit: int) -> list[int]:
    """For tests: numbers below ``limit`` (and 32-bit words if it is 0) after ``random.Random.getstate()[1]``."""

def drawn_as_numpy(seed: int, most: int, draws: int, skipped: int) -> tuple[list[int], list[float]]:
    """For tests: words are skipped, whole numbers up to ``most`` drawn, then numbers in [0, 1)."""

"""A stable sort of rows by keys of several terms, the terms themselves, and counts of values by their leading bits.

The sort takes linear time if the rows are sorted already. ``key_term`` computes one term of a job or pod for an ordered
queue. ``counted`` and ``gathered`` are the passes of a selection that finds order statistics without sorting.
"""

from collections.abc import Iterable
from typing import Any

def in_order(keys: Any, terms: int) -> list[int]:
    """Numbers of the rows in the order of the first ``terms`` of their keys, MOST_TERMS each."""

def terms(numbers: Iterable[int], inputs: Any, context: Any, level_s: Any) -> list[float]:
    """These terms of one job or pod; fields of ``KeyInputs`` and ``OrderContext`` in their order."""

def counted(values: Any, shift: int, prefixes: Any, counts: Any) -> None:
    """Add to ``counts`` how many values have each digit behind each prefix; before the first digit it is 0."""

def gathered(values: Any, shift: int, prefix: int, keys: Any, at: int) -> int:
    """Put the keys of all values with this prefix, the bits above ``shift``, from ``at`` on; where the next go."""

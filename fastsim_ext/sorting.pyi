"""A stable sort of rows by keys of several terms: what is equal stays as it was, what is sorted is only looked at."""

from collections.abc import Iterable
from typing import Any

def in_order(key__nk: Any, terms: int) -> list[int]:
    """Numbers of the rows in the order of the first ``terms`` of their ``MOST_TERMS`` terms."""

def terms(numbers: Iterable[int], inputs: Any, context: Any, level_s: Any) -> list[float]:
    """These terms of one claim: numbers by name, as in ``tests.reference.rounds.sort_keys``."""

def counted(values: Any, shift: int, prefixes: Any, counts: Any) -> None:
    """Add to ``counts`` how many values have each digit behind each prefix; before the first digit it is 0."""

def gathered(values: Any, shift: int, prefix: int, keys: Any, at: int) -> int:
    """Put the keys of all values with this prefix, the bits above ``shift``, from ``at`` on; where the next go."""

"""Ranks of many values by their leading bits: each 64-bit float as an unsigned integer in the same order."""

from typing import Any

def counted(values: Any, shift: int, prefixes: Any, counts: Any) -> None:
    """Add to ``counts`` how many values have each digit behind each prefix; before the first digit it is 0."""

def gathered(values: Any, shift: int, prefix: int, keys: Any, at: int) -> int:
    """Put the keys of all values with this prefix, the bits above ``shift``, from ``at`` on; where the next go."""

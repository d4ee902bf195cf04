"""Options as texts: names and numbers, with special characters of names escaped."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote


def numbers_text(pairs: Mapping[str, float]) -> str:
    """``name=number`` for each pair, with commas between; numbers keep every digit.

    >>> numbers_text({"a": 1.5, "b,c": 2})
    'a=1.5,b%2Cc=2'
    """
    return ",".join(f"{quoted(name)}={number:.17g}" for name, number in pairs.items())


def groups_text(groups: Mapping[str, Mapping[str, float]]) -> str:
    """``name:numbers`` for each group, with semicolons between.

    >>> groups_text({"team": {"cpu_milli": 4000}})
    'team:cpu_milli=4000'
    """
    return ";".join(f"{quoted(name)}:{numbers_text(pairs)}" for name, pairs in groups.items())


def quoted(name: str) -> str:
    """A name with the separators of such texts escaped."""
    return quote(name, safe="* /@.")

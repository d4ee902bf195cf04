"""Values that follow from parts of pods' specs, kept by these parts: pods of one template have equal parts.

A kept value is shared by the rows of all its pods and is never changed.
"""

from __future__ import annotations

import marshal
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Value = TypeVar("Value")

PLAIN = 2
"""Version of the form of `marshal` in which equal values without order of their own have equal bytes."""


class KeptParts:
    """Values by what they are of and the parts that they follow from, with the notices of making them."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, bytes], tuple[Any, Counter[str]]] = {}
        self._first: dict[Hashable, Any] = {}
        self._joined: dict[tuple[int, int], tuple[object, object, list[Any] | None]] = {}

    def of(
        self, what: str, parts: Any, make: Callable[[Counter[str]], Value], notices: Counter[str] | None = None
    ) -> Value:
        """The value of these parts; ``make`` counts in its argument what is counted in `notices` for each pod."""
        try:
            key = what, marshal.dumps(parts, PLAIN)
        except ValueError:  # parts that are no JSON
            return make(Counter() if notices is None else notices)
        kept = self._kept.get(key)
        if kept is None:
            noticed: Counter[str] = Counter()
            kept = self._kept[key] = make(noticed), noticed
        if kept[1] and notices is not None:
            notices.update(kept[1])
        value: Value = kept[0]
        return value

    def same(self, value: Hashable, make: Callable[[], Value]) -> Value:
        """What ``make`` made of the first value that equals this one."""
        if value not in self._first:
            self._first[value] = make()
        made: Value = self._first[value]
        return made

    def joined(self, first: list[Any] | None, second: list[Any]) -> list[Any] | None:
        """Both lists as one, the same object for the same two; None if they are empty."""
        key = id(first), id(second)
        known = self._joined.get(key)
        if known is None:
            # The two stay with what was made of them, so that no other object gets their ids.
            known = self._joined[key] = first, second, [*(first or ()), *second] or None
        return known[2]

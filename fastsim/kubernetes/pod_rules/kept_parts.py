"""Equal parts of pods, and values that follow from parts, kept by these parts: pods of one template have equal parts.

A part, or a value, is shared by all its pods and is never changed.
"""

from __future__ import annotations

import json
import marshal
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

Value = TypeVar("Value")

PLAIN = 2
"""Version of the form of `marshal` in which equal values without order of their own have equal bytes."""

COMMON = {
    "metadata": (("namespace",), ("labels", "annotations", "ownerReferences")), "spec": (None, None),
    "status": (("phase", "qosClass"), ()),
}  # fmt: skip
"""Texts, and lists and mappings, that objects of a kind have in common, by where they are; None is all of them."""
RARE, PAUSE = 0.8, 4
"""Part of the values of a name that differ, from which on this name is left out, and for how many calls."""


def content_of(value: Any) -> bytes:
    """Bytes of a plain value, the same for equal values whose mappings have one order."""
    try:
        return marshal.dumps(value, PLAIN)
    except ValueError:  # a value that is no JSON
        return json.dumps(value, sort_keys=True, default=str).encode()


class SharedParts:
    """Parts of objects of one kind that are equal under one name: each is kept once."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._first: defaultdict[str, dict[bytes, Any]] = defaultdict(dict)
        self._looked: Counter[str] = Counter()
        self._left_out: dict[str, int] = {}

    def share(self, items: Iterable[dict[str, Any]]) -> None:
        """Let objects have the parts of those that were there first."""
        listed = list(items)
        for place, (texts, parts) in COMMON.items():
            for item in listed:
                parent = item.get(place)
                if isinstance(parent, dict):
                    self._share(parent, parent if texts is None else texts, parent if parts is None else parts)
        looked_at = self._first.keys() - self._left_out
        self._left_out = {name: calls - 1 for name, calls in self._left_out.items() if calls > 1}
        for name in looked_at:
            self._looked[name] += len(listed)
            if len(self._first[name]) > RARE * self._looked[name]:
                self._left_out[name] = PAUSE
                del self._first[name], self._looked[name]

    def _share(self, parent: dict[str, Any], texts: Iterable[str], parts: Iterable[str]) -> None:
        first, left_out, kept = self._first, self._left_out, self._texts
        for name, value in parent.items():
            kind = type(value)
            if kind is str:
                if name in texts:
                    parent[name] = kept.setdefault(value, value)
            elif (kind is list or kind is dict) and name in parts and name not in left_out:
                parent[name] = first[name].setdefault(marshal.dumps(value, PLAIN), value)


MOST = 100_000
"""Most values that are kept by whole objects."""


class KeptParts:
    """Values by what they are of and the parts that they follow from, with the notices of making them."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, bytes], tuple[Any, Counter[str]]] = {}
        self._first: dict[Hashable, Any] = {}
        self._joined: dict[tuple[int, int], tuple[object, object, list[Any] | None]] = {}
        self._whole: dict[tuple[object, ...], tuple[object, tuple[Any, Counter[str]]]] = {}

    @property
    def count(self) -> int:
        """Number of kept values."""
        return len(self._kept) + len(self._first) + len(self._joined) + len(self._whole)

    def of(
        self, what: str, parts: Callable[[], Any], make: Callable[[Counter[str]], Value],
        notices: Counter[str] | None = None, whole: Sequence[object] = (),
    ) -> Value:  # fmt: skip
        """The value of these parts; ``make`` counts in its argument what is counted in `notices` for each pod.

        ``whole`` are objects of which the parts are parts: for the very same ones the parts need not be looked at.
        """
        place = what, *map(id, whole)
        known = self._whole.get(place) if whole else None
        if known is not None:
            kept = known[1]
        else:
            try:
                key = what, marshal.dumps(parts(), PLAIN)
            except ValueError:  # parts that are no JSON
                return make(Counter() if notices is None else notices)
            found = self._kept.get(key)
            if found is None:
                noticed: Counter[str] = Counter()
                found = self._kept[key] = make(noticed), noticed
            kept = found
            if whole and len(self._whole) < MOST:
                # The objects stay with the value, so that no other object gets their ids.
                self._whole[place] = whole, kept
        if kept[1] and notices is not None:
            notices.update(kept[1])
        value: Value = kept[0]
        return value

    def same(self, value: Hashable, make: Callable[[], Value]) -> Value:
        """The result of ``make`` for the first value that equals this one."""
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

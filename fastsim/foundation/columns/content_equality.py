"""Equality by content: objects of one class are equal if their contents are, and equal objects have equal hashes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar
from weakref import ref

Owner = TypeVar("Owner")
Value = TypeVar("Value")


class ValueByObject(Generic[Owner, Value]):
    """A value for each of some objects that still exist; the object itself is the key, so that none is hashed."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[ref[Owner], Value]] = {}

    def get(self, owner: Owner) -> Value | None:
        """The value of this object; None if it has none."""
        known = self._known.get(id(owner))
        return known[1] if known is not None and known[0]() is owner else None

    def __setitem__(self, owner: Owner, value: Value) -> None:
        number, known = id(owner), self._known
        known[number] = ref(owner, lambda _: known.pop(number, None)), value


class ComparedByContent:
    """An object whose equality and hash are those of its ``content``."""

    def content(self) -> Hashable:
        """The values that make two objects equal."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ComparedByContent) or type(other) is not type(self):
            return NotImplemented
        return self is other or self.content() == other.content()

    def __hash__(self) -> int:
        return hash(self.content())

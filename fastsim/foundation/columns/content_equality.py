"""Equality by content: objects of one class are equal if their contents are, and equal objects have equal hashes."""

from __future__ import annotations

from collections.abc import Hashable


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

"""Equality by content."""

from __future__ import annotations

from collections.abc import Hashable

from fastsim.foundation.columns.content_equality import ComparedByContent, ValueByObject


class One(ComparedByContent):
    """An object whose content is a number."""

    def __init__(self, value: int) -> None:
        self.value = value

    def content(self) -> Hashable:
        """The number."""
        return self.value


class Other(One):
    """Another class with the same content."""


def test_objects_of_one_class_and_content_are_equal_and_hash_alike() -> None:
    assert One(1) == One(1) and hash(One(1)) == hash(One(1)) and len({One(1), One(1), One(2)}) == 2
    assert One(1) != One(2) and One(1) != Other(1) and One(1) != 1


def test_a_value_by_object_is_not_that_of_an_equal_one_and_goes_with_its_object() -> None:
    known: ValueByObject[One, str] = ValueByObject()
    owner, equal = One(1), One(1)
    known[owner] = "value"
    assert known.get(owner) == "value" and known.get(equal) is None
    del owner
    assert not known._known

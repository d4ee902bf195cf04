"""How often each number occurs in a changing collection; kernels, and one object to look at them."""

from collections.abc import Sequence

class ValueCountsTable:
    """A tally that Python can hold."""

    def __init__(self) -> None: ...
    def add(self, value: int) -> None:
        """One more of a number."""
    def remove(self, value: int) -> None:
        """One less of a number that is there."""
    def ends(self) -> tuple[int, int] | None:
        """(smallest, largest) number, or None if there is none; one outside the span hides them."""

def places(a: Sequence[int], b: Sequence[int]) -> list[int]: ...

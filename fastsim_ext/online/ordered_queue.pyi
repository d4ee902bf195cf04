"""The waiting line of pods in an order: an entry joins behind all entries with a key that is not larger."""

from collections.abc import Sequence
from typing import Any

class OrderedQueue:
    """Keeps the line of ``work`` sorted; ``terms`` are (term, sign), ``level_s`` the steps of the term LEVEL."""

    def __init__(
        self, nodes: Any, work: Any, membership: Any, terms: Sequence[tuple[int, float]], level_s: Any
    ) -> None: ...

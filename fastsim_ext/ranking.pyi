"""Candidates for GPUs, best first: a heap, since a round looks at no more of them than it has GPUs for."""

class Ranking:
    """A heap of entries; the best one is ``items[0]``."""

    def verify(self) -> int:
        """No entry is better than the one above it."""

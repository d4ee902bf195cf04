"""Candidates for GPUs, best first: a heap, since a round looks at no more of them than it has GPUs for."""

class CandidateHeap:
    """Entries, and a heap of their places; the best one is ``items[best()]``."""

    def verify(self) -> int:
        """No entry is better than the one above it."""

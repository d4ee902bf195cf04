"""Selection of the jobs of a round, by priority, deficit and share as long as GPUs are left, and the heap it uses.

Pairs without a share that never ran are equal in that order, so they are drawn one by one from a stream instead of
being listed: those that were there at the last settlement, and those with a member that arrived since.
"""

from collections.abc import Sequence
from typing import Any

from fastsim_ext.rounds.job_table import JobTable
from fastsim_ext.rounds.leases import Leases

class CandidateSelection:
    """Fills the tasks of ``leases`` from the candidates of ``table``."""

    def __init__(
        self,
        table: JobTable,
        leases: Leases,
        alone: Any,
        shared: Any,
        fastest: Sequence[int],
        shuffle_state: Sequence[int],
        *,
        pairs: bool,
        shuffled: bool,
        strict: bool,
        one_line: bool,
        reserves: bool,
    ) -> None: ...
    def drawn(self) -> tuple[int, ...]:
        """State of the stream that shuffles GPU models, as ``random.Random.getstate()[1]`` has it."""

class CandidateHeap:
    """Entries, and a heap of their places; the best one is ``items[best()]``."""

    def verify(self) -> int:
        """No entry is better than the one above it."""

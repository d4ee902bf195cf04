"""Selection of the jobs of a round: candidates by priority, deficit and share, as long as GPUs are left."""

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

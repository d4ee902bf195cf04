"""The active jobs of a run in rounds, in order of their ids, and the pairs of them that have a history of their own."""

class JobTable:
    """Rows of jobs and pairs; ``width`` GPU models, rounds of twice ``half`` seconds, ``owed`` to new pairs."""

    n: int
    n_pairs: int
    added: int
    def __init__(self, width: int, half: float, owed: float = 0.0) -> None: ...
    def rows(self) -> bytes:
        """The active jobs as the bytes of their records."""
    def observed(self) -> list[tuple[int, int, int]]:
        """(job, job, model) for each pair that first ran on a model since the last call."""
    def verify(self) -> int:
        """Jobs rise by id, pairs by their members."""

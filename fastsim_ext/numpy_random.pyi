"""Random numbers as numpy's RandomState draws them, many at a time."""

def drawn(seed: int, most: int, draws: int, skipped: int) -> tuple[list[int], list[float]]:
    """For tests: words are skipped, whole numbers up to ``most`` drawn, then numbers in [0, 1)."""

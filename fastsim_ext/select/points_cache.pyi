"""A small cache of points, keyed by node state and device request; a kernel, and one object for tests."""

class PointsCache:
    """The latest points; keys hold the state numbers of one memo."""

    def __init__(self) -> None: ...
    def find(self, generation: int, state: int, rank: int, num_gpu: int, milli: int) -> int | None:
        """Points for a state of this generation, a CPU rank and a request for devices, or None."""
    def store(self, generation: int, state: int, rank: int, num_gpu: int, milli: int, points: int) -> None:
        """Store points, overwriting the entry in the same place."""

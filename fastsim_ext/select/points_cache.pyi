"""Points that were worked out lately, found again by what they follow from; a kernel, and one object to look at it."""

class PointsCache:
    """The last answers; they belong to one memo, whose numbers of states they know."""

    def __init__(self) -> None: ...
    def find(self, generation: int, state: int, rank: int, num_gpu: int, milli: int) -> int | None:
        """Points for a state of this generation, a CPU rank and a request for devices, or None."""
    def keep(self, generation: int, state: int, rank: int, num_gpu: int, milli: int, points: int) -> None:
        """Keep what was worked out; what had the same place is gone."""

"""What jobs have measured, as a tree: every new measurement leads from one lesson to the next."""

from collections.abc import Callable, Sequence

Measurement = tuple[int, int, int, float, float]

class LearnedPerformance:
    """The tree; ``fit`` makes seven parameters from measurements (nodes, replicas, samples, turn and step seconds)."""

    n: int
    def __init__(self, fit: Callable[[list[Measurement]], Sequence[float]]) -> None: ...
    def taught(self, measured: Sequence[Measurement]) -> int:
        """The lesson of many measurements at once, all of them before any job trained; 0 without any."""

    def in_turn(self, measured: Sequence[Measurement]) -> int:
        """The lesson of many measurements, each fitted as if a job had come to it by training; 0 without any."""

    def measurements(self, lesson: int) -> list[Measurement]:
        """All measurements of a lesson, first one first."""
    def learned(self, lesson: int) -> tuple[tuple[float, ...], int]:
        """The parameters of a lesson, and the most replicas it has seen."""

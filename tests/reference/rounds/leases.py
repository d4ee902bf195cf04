"""What candidates do in a round and which GPUs they get, in plain Python: the twin of ``fastsim_ext.rounds.leases``."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass

from fastsim.engine.rounds.options import Job

Pair = tuple[int, ...]
"""A candidate: one job, or two."""


@dataclass
class Task:
    """What one candidate does in one round."""

    candidate: Pair
    model: int
    steps: list[float]
    finish_s: float
    priority: float = 0.0
    deficit: float = 0.0
    gpus: tuple[int, ...] = ()
    price: float = 0.0
    lost_gpu_s: float = 0.0
    """To restart delays."""
    began_s: float = 0.0
    vain: bool = False
    """A node of its GPUs went away before it was finished."""


@dataclass
class Outcome:
    """What became of one job."""

    job: Job
    steps_run: float = 0.0
    failures: int = 0
    rounds: int = 0
    lease_cost: float = 0.0
    first_s: float | None = None
    completion_s: float | None = None
    dropped: bool = False

    @property
    def steps_left(self) -> float:
        """Work that is not done yet, steps."""
        return self.job.total_steps - self.steps_run


def gpus_given(
    members: list[Pair], size: Callable[[Pair], int], before: dict[Pair, tuple[int, ...]], pool: range,
    absent: Set[int] = frozenset(),
) -> dict[Pair, tuple[int, ...]]:  # fmt: skip
    """GPUs of one model for the candidates that run on it; ``before`` is what was held in the last round.

    Largest gangs choose first; among equal ones, those that keep their GPUs come before those that take new ones.
    """
    given: dict[Pair, tuple[int, ...]] = {}
    taken = set[int](absent)
    position = pool.start
    for gpus in sorted({size(c) for c in members}, reverse=True):
        alike = [c for c in members if size(c) == gpus]
        for candidate in alike:
            held = before.get(candidate, ())
            if held and held[0] in pool and taken.isdisjoint(held):
                given[candidate] = held
                taken.update(held)
        for candidate in alike:
            ids: list[int] = list(given.get(candidate, ()))
            while len(ids) < gpus:
                if position not in taken:
                    ids.append(position)
                    taken.add(position)
                position += 1
            given[candidate] = tuple(ids)
    return given

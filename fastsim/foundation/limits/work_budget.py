"""The budget of one command: the largest amount of each kind of work, and the one setting that raises it.

Work is estimated before it begins where it follows from texts and tables, and otherwise counted while it goes on.
``FASTSIM_BUDGET=4`` in the environment allows four times as much of every kind.
"""

from __future__ import annotations

import math
import os
from enum import Enum

from fastsim.errors import ScenarioError

CHOICE = "FASTSIM_BUDGET"
MULTIPLIES = f"{CHOICE} multiplies what is allowed"
NAMED_FACTOR = 1000
"""Largest factor that a message proposes; a larger need is a mistake in most cases."""


class Work(Enum):
    """Kinds of work: the unit, and the largest amount by default."""

    NODES = "nodes", 1_000_000
    PODS = "pods or jobs", 1_000_000_000
    HELD_PODS = "pods or jobs in memory", 50_000_000
    HOURS = "hours of arrivals", 100_000_000
    RUNS = "runs", 1_000_000
    TABLE_ROWS = "rows of a table", 5_000_000
    HELD_ROWS = "rows of the timeline in memory", 20_000_000
    WRITTEN_ROWS = "rows of the timeline", 1_000_000_000
    SAMPLES = "samples of the cluster", 1_000_000_000
    READINGS = "readings of GPUs", 2_000_000_000
    REFRESHES = "refreshes and samples of exporters", 3_000_000
    NODE_CHANGES = "failures and repairs of nodes", 100_000_000
    ROUNDS = "rounds since a job ended", 2_000_000
    DECISIONS = "decisions of the policy since a job ended", 100_000
    GENERATIONS = "generations of the search since a job ended", 2_500_000
    STEPS = "steps and samples since a pod ended", 20_000_000
    STAYS = "stays on nodes since a pod ended", 5_000_000
    CHECKPOINTS = "checkpoints", 2_000
    EPISODES = "episodes of agents", 10_000
    RESAMPLED = "resampled values", 500_000_000
    DECISION_BYTES = "bytes of recorded decisions", 4 << 30

    def __init__(self, counted: str, usual: int) -> None:
        self.counted, self.usual = counted, usual

    __hash__ = object.__hash__  # loops count by kind of work at every step; the hash of an Enum is computed in Python

    @property
    def most(self) -> float:
        """The budget of this work, with the factor of the environment."""
        return self.usual * factor()


def factor() -> float:
    """Factor of every budget, from the environment; 1 by default."""
    text = os.environ.get(CHOICE, "")
    if not text:
        return 1.0
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise ScenarioError(CHOICE, repr(text), "a number above 0, by which every budget of work is multiplied")
    return number


def refuse_excess(where: str, amount: float, work: Work, do: str = "") -> None:
    """ScenarioError if ``amount`` of this work is more than the budget; ``do`` is another remedy."""
    if not amount <= work.most:
        expected = f"at most {amount_text(work.most, work)}"
        raise ScenarioError(where, amount_text(amount, work), expected, remedy(amount, work, do))


def refuse_progress(where: str, amount: float, work: Work, do: str) -> None:
    """ScenarioError if work that goes on without a known end has come to more than the budget."""
    if not amount <= work.most:
        expected = f"at most {amount_text(work.most, work)}"
        raise ScenarioError(where, amount_text(amount, work), expected, f"{do}, or {MULTIPLIES}")


def amount_text(amount: float, work: Work) -> str:
    """An amount of this work in words, large ones to three digits."""
    number = _float(amount)
    text = f"{number:,.0f}" if number < 1e15 else f"{number:.3g}" if number < math.inf else "more than 1e308"
    return f"{text} {work.counted}"


def remedy(amount: float, work: Work, do: str = "") -> str:
    """The setting with which so much of this work is begun, after another remedy."""
    times = _float(amount) / work.usual
    how = f"{CHOICE}={math.ceil(times)} allows it" if times <= NAMED_FACTOR else MULTIPLIES
    return f"{do}, or {how}" if do else how


def _float(amount: float) -> float:
    try:
        return float(amount)
    except OverflowError:  # whole numbers have no largest
        return math.inf

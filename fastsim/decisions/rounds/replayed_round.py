"""Repeats a run in rounds up to the round that begins last by a given time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fastsim.engine.driving.drive import Stop, drive
from fastsim.engine.rounds.driver import Driver
from fastsim.errors import ScenarioError

Row = dict[str, Any]
"""One row of an explanation, by column."""
Ids = Callable[[int], int]
"""The id of a job by its arrival number."""


class PlayedRound(NamedTuple):
    """A round: its number, its beginning in seconds, and the rows of each job in the system, by arrival number."""

    number: int
    began_s: float
    rows: dict[int, list[Row]]


def nothing() -> None:
    """What is to be done where nothing is."""


@dataclass
class RoundReplay:
    """Plays a driver up to and including the round that begins last at ``t_s`` seconds or before.

    ``next_s`` says when the next round begins. ``ahead`` is called before every round, ``ask`` in place of the
    driver's own answer to the loop's question for a decision.
    """

    driver: Driver
    t_s: float
    next_s: Callable[[], float]
    ahead: Callable[[], None] = nothing
    ask: Callable[[], None] | None = None
    began_s: float = field(default=float("-inf"), init=False)
    """Beginning of the last round that was begun, seconds."""
    allowed: int = field(default=0, init=False)
    over: bool = field(default=True, init=False)
    """Whether the run has ended."""

    def play(self) -> None:
        """Play the rounds; ScenarioError if no round of the run is at that time."""
        driver = self.driver
        driver.begin(False)
        own = {} if self.ask is None else {Stop.ASK_POLICY: self.ask}
        drive(self.advance, {**driver.handlers(), **own, Stop.PAUSE: self.allow})
        if self.over and self.t_s >= driver.loop.now_s:
            raise ScenarioError("explain: t", f"{self.t_s:g} s", f"less than {driver.loop.now_s:g} s, the run's end")

    def advance(self) -> int:
        """Play on to the next stop, one round at most; the run is as good as done when a later round is next."""
        stop = self.driver.play_on(self.allowed)
        self.allowed = 0
        if stop != Stop.PAUSE or (next_s := self.next_s()) <= self.t_s:
            return stop
        if self.began_s == float("-inf"):
            raise ScenarioError("explain: t", f"{self.t_s:g} s", f"{next_s:g} s, when the first round begins, or later")
        self.over = False
        return Stop.DONE

    def allow(self) -> None:
        """Between two rounds: the next one may be played."""
        self.driver.pause()
        self.began_s, self.allowed = self.next_s(), 1
        self.ahead()

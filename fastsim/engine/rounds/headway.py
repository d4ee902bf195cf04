"""Progress of a run in rounds: rounds played and decisions of its policy since a job ended, against their budgets."""

from __future__ import annotations

from fastsim.foundation.limits.knobs import DECISIONS, GENERATIONS, ROUND_S


class RoundHeadway:
    """Counts the rounds of one run since a job ended, and refuses to go on beyond the budget.

    ``generations`` are those of the search that each decision of the policy makes.
    """

    def __init__(self, generations: int = 0) -> None:
        self.generations = generations
        self.ended = self.rounds = 0
        """Jobs that have ended, and the rounds played by then."""
        self.decisions = 0
        self.most, self.most_decisions = ROUND_S.work.most, DECISIONS.work.most  # read once: every round is compared
        self.most_searches = GENERATIONS.work.most / generations if generations else self.most_decisions

    def check(self, rounds: int, ended: int, now_s: float) -> None:
        """ScenarioError if no job has ended in too many of ``rounds``; ``ended`` have so far, by second ``now_s``."""
        if ended != self.ended:
            self.ended, self.rounds, self.decisions = ended, rounds, 0
        if rounds - self.rounds > self.most:
            ROUND_S.count(rounds - self.rounds, name=f"run at {now_s:g} s, {ended:,} jobs ended")

    def decide(self, rounds: int, ended: int, now_s: float) -> None:
        """Count a decision of the policy, after so many ``rounds``, and check as :meth:`check` does."""
        self.check(rounds, ended, now_s)
        self.decisions += 1
        if self.decisions > self.most_decisions:
            DECISIONS.count(self.decisions, name=f"run at {now_s:g} s, {ended:,} jobs ended")
        if self.decisions > self.most_searches:
            GENERATIONS.count(self.decisions * self.generations, name=f"run at {now_s:g} s, {ended:,} jobs ended")

    def foresee(self, seconds: float, round_s: float) -> None:
        """ScenarioError if a decision each ``round_s`` of so many seconds, in which no job can end, is too many."""
        if seconds > self.most_decisions * round_s:
            DECISIONS.refuse(seconds / round_s)
        if seconds > self.most_searches * round_s:
            GENERATIONS.refuse(seconds / round_s, self.generations)

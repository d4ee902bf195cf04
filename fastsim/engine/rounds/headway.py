"""Progress of a run in rounds: how many rounds were played since a job ended, against the budget."""

from __future__ import annotations

from fastsim.foundation.limits.work_budget import Work, refuse_progress

DO = "longer rounds are fewer, until_s ends a run with what it did"


class RoundHeadway:
    """Counts the rounds of one run since a job ended, and refuses to go on beyond the budget."""

    def __init__(self) -> None:
        self.ended = self.rounds = 0
        """Jobs that have ended, and the rounds played by then."""
        self.most = Work.ROUNDS.most  # read once: every round of a run is compared with it

    def check(self, rounds: int, ended: int, now_s: float) -> None:
        """ScenarioError if no job has ended in too many of ``rounds``; ``ended`` have so far, by second ``now_s``."""
        if ended != self.ended:
            self.ended, self.rounds = ended, rounds
        if rounds - self.rounds > self.most:
            refuse_progress(f"run at {now_s:g} s, {ended:,} jobs ended", rounds - self.rounds, Work.ROUNDS, DO)

"""Whether monitored pods come nearer to their end: steps, samples and kills since one of them ended.

A pod that needs more memory than its GPU has is killed at each start, and starts again.
"""

from __future__ import annotations

from fastsim.foundation.limits.work_budget import Work, refuse_progress

DO = "until_s ends a run with what it did"


class MonitoredHeadway:
    """Counts steps of the scheduler, samples of exporters and kills of one run; ScenarioError beyond the budget."""

    def __init__(self) -> None:
        self.ended = self.steps = self.kills = 0
        self.most_steps, self.most_kills = Work.STEPS.most, Work.STAYS.most

    def end(self) -> None:
        """A pod ended: counts begin anew."""
        self.ended += 1
        self.steps = self.kills = 0

    def step(self, now_s: float) -> None:
        """Count a step or a sample."""
        self.steps += 1
        if self.steps > self.most_steps:
            refuse_progress(self._where(now_s), self.steps, Work.STEPS, DO)

    def kill(self, now_s: float) -> None:
        """Count a container that was killed, and will start again."""
        self.kills += 1
        if self.kills > self.most_kills:
            refuse_progress(self._where(now_s), self.kills, Work.STAYS, DO)

    def _where(self, now_s: float) -> str:
        return f"run at {now_s:g} s, {self.ended:,} pods ended"

"""Whether monitored pods come nearer to their end: steps, samples and kills since one of them ended.

A pod that needs more memory than its GPU has is killed at each start, and starts again.
"""

from __future__ import annotations

from fastsim.foundation.limits.knobs import STAYS, STEPS


class MonitoredHeadway:
    """Counts steps of the scheduler, samples of exporters and kills of one run; ScenarioError beyond the budget."""

    def __init__(self) -> None:
        self.ended = self.steps = self.kills = 0
        self.most_steps, self.most_kills = STEPS.work.most, STAYS.work.most

    def end(self) -> None:
        """A pod ended: counts begin anew."""
        self.ended += 1
        self.steps = self.kills = 0

    def step(self, now_s: float) -> None:
        """Count a step or a sample."""
        self.steps += 1
        if self.steps > self.most_steps:
            STEPS.count(self.steps, name=self._where(now_s))

    def foresee(self, steps: float, now_s: float) -> None:
        """ScenarioError if so many steps, at whose end no pod has ended yet, are too many."""
        if self.steps + steps > self.most_steps:
            STEPS.count(self.steps + steps, name=self._where(now_s))

    def kill(self, now_s: float) -> None:
        """Count a container that was killed, and will start again."""
        self.kills += 1
        if self.kills > self.most_kills:
            STAYS.count(self.kills, name=self._where(now_s))

    def _where(self, now_s: float) -> str:
        return f"run at {now_s:g} s, {self.ended:,} pods ended"

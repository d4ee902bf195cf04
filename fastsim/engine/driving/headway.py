"""Whether the jobs or pods of a run come nearer to their ends: the work since the last of them ended.

A policy that lets no job end, or a pod that is killed at every start, would go on for ever. Each kind of work has a
budget, at which the run stops.
"""

from __future__ import annotations

from fastsim.foundation.limits.knobs import Knob


class Headway:
    """The work of one run since a job or pod ended, by kind.

    ``things`` is what ends, in messages: jobs or pods. ``knobs`` are the kinds of work that are counted.
    """

    def __init__(self, things: str, *knobs: Knob) -> None:
        self.things = things
        self.ended = 0
        """Jobs or pods that have ended."""
        self.most = {knob.work: knob.work.most for knob in knobs}  # read once: it is compared at every step
        self.done = dict.fromkeys(self.most, 0.0)

    def see(self, ended: int) -> None:
        """Begin all counts anew if more jobs or pods have ended than before."""
        if ended != self.ended:
            self.ended = ended
            self.done = dict.fromkeys(self.most, 0.0)

    def add(self, knob: Knob, amount: float, now_s: float) -> None:
        """Count work that was done by second ``now_s``; ScenarioError beyond its budget."""
        self.done[knob.work] += amount
        self.foresee(knob, 0.0, now_s)

    def foresee(self, knob: Knob, amount: float, now_s: float) -> None:
        """ScenarioError if work that comes before anything can end is beyond the budget."""
        expected = self.done[knob.work] + amount
        if expected > self.most[knob.work]:
            knob.count(expected, name=self.where(now_s))

    def where(self, now_s: float) -> str:
        """How far the run is at this second, in messages."""
        return f"run at {now_s:g} s, {self.ended:,} {self.things} ended"

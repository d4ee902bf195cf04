"""Progress of a run: stays on nodes since a pod ended and rows of the timeline, against their budgets of work.

A gang on nodes that fail more often than it needs for its work starts again and again. Such a run warns, and stops at
its budget of work; ``until_s`` ends it with what it did by then.
"""

from __future__ import annotations

import warnings

from fastsim.foundation.limits.work_budget import Work, amount_text, refuse_progress

WARNED_AT = 0.1
"""Part of the budget at which a run without headway warns."""
FEWER_ROWS = "a longer sample_s makes fewer"


class NoHeadway(UserWarning):
    """Pods start again and again and none ends, or are expected to."""


class Headway:
    """Counts the work of one run, and refuses to go on beyond the budget."""

    def __init__(self, in_memory: bool = True) -> None:
        self.rows_kind = Work.HELD_ROWS if in_memory else Work.WRITTEN_ROWS
        self.rows = self.stays = self.ended = 0
        self.most_rows, self.most_stays = self.rows_kind.most, Work.STAYS.most
        self._warned = False

    def add_rows(self, count: int) -> None:
        """Count rows of the timeline."""
        self.rows += count
        if self.rows > self.most_rows:
            refuse_progress("timeline", self.rows, self.rows_kind, FEWER_ROWS)

    def add_stays(self, count: int, ended: int, pods: int, now_s: float) -> None:
        """Count stays on nodes that ended by second ``now_s``; ``ended`` of ``pods`` arrived pods have ended so far."""
        self.stays = self.stays + count if ended == self.ended else 0
        self.ended = ended
        if self.stays <= WARNED_AT * self.most_stays:
            return
        where = f"run at {now_s:g} s, {ended:,} of {pods:,} pods ended"
        if self.stays > self.most_stays:
            refuse_progress(where, self.stays, Work.STAYS, "until_s ends a run with what it did")
        if not self._warned:
            self._warned = True
            most = f"{self.most_stays:,.0f}"
            text = f"{where}: {amount_text(self.stays, Work.STAYS)}; the run stops at {most}, until_s ends it earlier"
            warnings.warn(text, NoHeadway, stacklevel=2)

"""Whether a run comes nearer to its end: stays on nodes since a pod ended, rows and node changes so far.

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
        self.rows = self.stays = self.gone = 0
        self._warned = False

    def add_rows(self, count: int) -> None:
        """Count rows of the timeline."""
        self.rows += count
        refuse_progress("timeline", self.rows, self.rows_kind, FEWER_ROWS)

    def add_stays(self, count: int, gone: int, pods: int, now_s: float) -> None:
        """Count stays on nodes that ended by second ``now_s``; ``gone`` of ``pods`` arrived pods have ended so far."""
        self.stays = self.stays + count if gone == self.gone else 0
        self.gone = gone
        where = f"run at {now_s:g} s, {gone:,} of {pods:,} pods ended"
        refuse_progress(where, self.stays, Work.STAYS, "until_s ends a run with what it did")
        if not self._warned and self.stays > WARNED_AT * Work.STAYS.most:
            self._warned = True
            most = f"{Work.STAYS.most:,.0f}"
            text = f"{where}: {amount_text(self.stays, Work.STAYS)}; the run stops at {most}, until_s ends it earlier"
            warnings.warn(text, NoHeadway, stacklevel=2)

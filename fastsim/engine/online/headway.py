"""Progress of a run: stays on nodes since a pod ended and rows of the timeline, against their budgets of work.

A gang on nodes that fail more often than it needs for its work starts again and again. Such a run warns, and stops at
its budget of work; ``until_s`` ends it with what it did by then.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from fastsim.engine.driving.headway import Headway
from fastsim.errors import ScenarioError
from fastsim.foundation.limits.knobs import EXPORTER_SAMPLES, FAILURES, FEWER_ROWS, READINGS, REFRESH_S, SAMPLE_S, STAYS
from fastsim.foundation.limits.quantities import MOST_SECONDS
from fastsim.foundation.limits.work_budget import Work, amount_text, refuse_progress

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.engine.online.options import OnlineOptions

WARNED_AT = 0.1
"""Part of the budget at which a run without headway warns."""
MOST_MULTIPLE = 2.0**53
"""Largest multiple of ``sample_s`` that is known exactly."""


class NoHeadway(UserWarning):
    """Pods start again and again and none ends, or are expected to."""


class WorkAhead:
    """The work that the pods known so far bring with them: samples, readings of GPUs, failures of nodes.

    Estimates are at the low end: a run ends no earlier than the last of these pods could, or at ``until_s``.
    """

    def __init__(self, cluster: Cluster, options: OnlineOptions, in_memory: bool) -> None:
        self.options, self.nodes = options, len(cluster)
        self.gpus = sum(cluster.offered["num_gpu"].to_pylist()) if options.telemetry is not None else 0
        self.rows_kind = Work.HELD_ROWS if in_memory else Work.WRITTEN_ROWS
        self.recorded = options.record in ("timeline", "all")
        outages = options.rules.outages
        self.failing = outages.mtbf_s is not None
        self.wanted = options.sample_s is not None or options.telemetry is not None or self.failing
        self.first_s: float | None = None
        self.last_s = -math.inf

    def add(self, submit_s: Any, duration_s: Any) -> None:
        """The next pods, in order of arrival; ScenarioError if the run will exceed a budget with them."""
        if not self.wanted or not len(submit_s):
            return
        if self.first_s is None:
            self.first_s = float(submit_s.min())
        last_s = float((submit_s + np.nan_to_num(duration_s)).max())
        if last_s > self.last_s:
            self.last_s = last_s
            self._refuse(self.span_s)

    @property
    def span_s(self) -> float:
        """Seconds from the first arrival to the earliest end of the run; 0 if times are beyond their limits."""
        until_s = self.options.until_s
        end_s = min(self.last_s, math.inf if until_s is None else until_s)
        span_s = end_s - (0.0 if self.first_s is None else self.first_s)
        return span_s if 0 < span_s <= 3 * MOST_SECONDS else 0.0  # the run itself refuses such times

    def check(self, now_s: float) -> None:
        """ScenarioError if the samples up to second ``now_s`` of the run exceed their budget."""
        if self.options.sample_s is not None and self.first_s is not None:
            SAMPLE_S.count(SAMPLE_S.amount(now_s - self.first_s, self.options.sample_s))

    def _refuse(self, span_s: float) -> None:
        options, outages = self.options, self.options.rules.outages
        if options.sample_s is not None:
            self._refuse_samples(span_s, options.sample_s)
        if options.telemetry is not None:
            from fastsim.telemetry.telemetry import QUANTITIES

            every_s, gaps_s = options.telemetry.every_s, options.telemetry.refresh_s
            READINGS.refuse(span_s, every_s, self.gpus, len(QUANTITIES))
            EXPORTER_SAMPLES.refuse(span_s, every_s)
            if gaps_s:
                REFRESH_S.refuse(span_s, sum(gaps_s) / len(gaps_s))
        if outages.mtbf_s is not None and outages.mttr_s is not None:
            FAILURES.refuse(span_s, self.nodes, outages.mtbf_s, outages.mttr_s)

    def _refuse_samples(self, span_s: float, sample_s: float) -> None:
        SAMPLE_S.refuse(span_s, sample_s, work=self.rows_kind if self.recorded else Work.SAMPLES)
        if self.first_s is not None and abs(self.first_s) / sample_s > MOST_MULTIPLE:
            expected = f"a part of second {self.first_s:g}, at which pods arrive, of 2**-53 or more"
            raise ScenarioError("sample_s", f"{sample_s:g}", expected)


class PodHeadway(Headway):
    """The work of one run of pods: stays on nodes since a pod ended, and rows of the timeline."""

    def __init__(self, in_memory: bool = True) -> None:
        super().__init__("pods", STAYS)
        self.rows = 0
        self.rows_kind = Work.HELD_ROWS if in_memory else Work.WRITTEN_ROWS
        self.most_rows = self.rows_kind.most
        self._warned = False

    def add_rows(self, count: int) -> None:
        """Count rows of the timeline."""
        self.rows += count
        if self.rows > self.most_rows:
            refuse_progress("timeline", self.rows, self.rows_kind, FEWER_ROWS)

    def add_stays(self, count: int, ended: int, pods: int, now_s: float) -> None:
        """Count stays on nodes that ended by second ``now_s``; ``ended`` of ``pods`` arrived pods have ended so far."""
        self.things = f"of {pods:,} pods"
        if ended != self.ended:
            self.see(ended)
            return
        self.add(STAYS, count, now_s)
        stays, most = self.done[Work.STAYS], self.most[Work.STAYS]
        if stays > WARNED_AT * most and not self._warned:
            self._warned = True
            text = f"{amount_text(stays, Work.STAYS)}; the run stops at {most:,.0f}, until_s ends it earlier"
            warnings.warn(f"{self.where(now_s)}: {text}", NoHeadway, stacklevel=2)

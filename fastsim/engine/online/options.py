"""Options of a run of pods besides its plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fastsim.scenario.run_rules import NO_RULES, Rules

if TYPE_CHECKING:
    import pyarrow as pa

    from fastsim.engine.online.closing_stages import Deschedule, Inflation
    from fastsim.engine.online.user_scorers import MergedPoints
    from fastsim.scenario.prices import Prices
    from fastsim.telemetry.telemetry import Telemetry
    from fastsim.workload.oversized_pods import Oversized
    from fastsim.workload.typical_pods import TypicalPods


@dataclass(frozen=True)
class OnlineOptions:
    """Options of a run besides its plan.

    ``sample_s`` is the distance of timeline rows in seconds (None: a row for every event), ``until_s`` the end of the
    run, ``progress`` a function of the number of pods that have arrived; ``oversized`` counts pods larger than any
    node, ``each_batch`` is called with every batch of pods, ``merged`` counts points that rounding makes equal. Tables
    are streamed to files in the existing ``folder``, or stay in memory. ``telemetry`` adds a table of samples.
    ``prices`` has all GPU models of the cluster.
    """

    seed: int = 0
    sample_s: float | None = None
    until_s: float | None = None
    record: str = "all"
    deschedule: Sequence[Deschedule] = ()
    inflation: Inflation | None = None
    retarget: TypicalPods | None = None
    progress: Callable[[int], None] | None = None
    rules: Rules = NO_RULES
    oversized: Oversized | None = None
    merged: MergedPoints | None = None
    each_batch: Callable[[pa.RecordBatch], None] | None = None
    folder: Path | None = None
    telemetry: Telemetry | None = None
    prices: Prices | None = None

"""Options, setting and jobs of runs in rounds, and the compat switches that rounds honour."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from fastsim.errors import ScenarioError

if TYPE_CHECKING:
    from fastsim.performance.oracle import Oracle

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

REALLOC_S = 1920.0
"""Usual time between two allocations, seconds."""
MOST_FAILURES = 5
"""Rounds in a row without progress after which a job is given up."""
PATIENCE = 3
"""Steps of the ideal without progress or arrivals, before a run is given up."""
MOST_FROZEN = 1000
"""Rounds in a row in which time stands still, before a run is given up."""
LARGE = 1e9
"""Priority of a job that has a share and has not run yet, for each unit of the share."""

QUIRKS = (
    "new_job_reserves_gpus", "gang_last_chunk_failure", "idle_gap_accounting", "whole_steps", "reset_at_zero",
    "stale_arrival", "lease_cost", "unowed_pairs", "late_deadlines",
)  # fmt: skip
"""Compat switches that rounds of shares honour."""
LATE_SHARES = "late_shares"
"""The switch under which all jobs wait for the next allocation."""
USE_FROM_ZERO = "use_from_zero"
"""The switch under which utilization counts from second 0."""
ORDERED_QUIRKS = (
    "demotion_raises", "reclaim_sweeps", "whole_steps", "lease_end_finish", "idle_gap_ends", "stale_speedup",
)  # fmt: skip
"""Compat switches that ordered rounds honour."""


class Job(NamedTuple):
    """One job as the engine takes it: seconds, GPUs of the gang, steps."""

    submit_s: float
    kind: int
    num_gpu: int
    total_steps: float
    weight: float = 1.0
    deadline_s: float = float("inf")
    tenant: str = ""


class PriceSource(Protocol):
    """Prices that change with time."""

    def at(self, now_s: float) -> npt.NDArray[np.float64]:
        """Price of one GPU of each model, $/h."""

    def next_change_s(self, now_s: float) -> float:
        """The next time at which they may differ, seconds; infinite if never."""


class Urgency(Protocol):
    """Whether jobs under a plan may have to wait for an allocation."""

    @property
    def strict(self) -> bool:
        """Only jobs with a share run."""

    @property
    def prompt(self) -> bool:
        """No job may wait for its share."""


@dataclass(frozen=True)
class RoundOptions:
    """Options of the rounds.

    ``round_s``: length of a round, seconds. ``realloc_s``: least time between two allocations; by default 1,920 s,
    or 0 where jobs wait for one although GPUs are free, or miss deadlines (``gap_s``). ``restart_s``: time a job loses
    when it goes on with GPUs it did not hold in the last round, not when it first starts; adaptive jobs have times of
    their own (``fastsim.performance.applications``) and pay for the first start, too. ``window``: measure and finish
    jobs ``[first, last)``, while others go on arriving. ``global_queue``: one queue for all GPU models instead of one
    each. ``until_s``: end of the run, seconds. ``begin_s``: earliest start of the first ordered round; others follow
    every ``round_s``. ``endless``: jobs are generated, so a next arrival is always known.
    """

    round_s: float = 360.0
    realloc_s: float | None = None
    restart_s: float = 0.0
    until_s: float = float("inf")
    window: tuple[int, int] | None = None
    global_queue: bool = False
    prices: PriceSource | None = None
    compat: frozenset[str] = field(default_factory=frozenset)
    endless: bool = False
    begin_s: float = 0.0

    def __post_init__(self) -> None:
        for name, low in (("round_s", 1e-9), ("realloc_s", 0.0), ("restart_s", 0.0)):
            value = getattr(self, name)
            if value is not None and not low <= value < float("inf"):
                raise ScenarioError(name, value, "seconds, finite and not negative (round_s: above 0)")
        if not abs(self.begin_s) < float("inf"):
            raise ScenarioError("begin_s", self.begin_s, "finite seconds")
        if self.restart_s >= self.round_s:
            raise ScenarioError("restart_s", self.restart_s, f"less than a round ({self.round_s:g} s)")
        if self.window is not None and not 0 <= self.window[0] < self.window[1]:
            raise ScenarioError("window", f"{self.window[0]}:{self.window[1]}", "FIRST:LAST with 0 <= FIRST < LAST")

    def gap_s(self, plan: Urgency) -> float:
        """Least seconds between two allocations: ``REALLOC_S`` if jobs without a share may run, else 0."""
        if self.realloc_s is not None:
            return self.realloc_s
        return REALLOC_S if self.quirk(LATE_SHARES) or not (plan.strict or plan.prompt) else 0.0

    def quirk(self, name: str) -> bool:
        """Whether a compat switch is on."""
        return name in self.compat


@dataclass(frozen=True)
class Setting:
    """The constants of a run: GPU models (sorted by name), GPUs of each, rates, seed."""

    gpu_models: tuple[str, ...]
    gpus__g: Ints
    oracle: Oracle
    """Rates on exactly these models, in this order."""
    reference__k: Floats
    """Rate of each kind on the fastest model the oracle has, steps/s."""
    seed: int = 0

"""The options that multiply work: for each the kind of work, and how much of it follows from the option.

An estimate before a run and the count while it goes on use the same row of :data:`KNOBS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from fastsim.foundation.limits.work_budget import Work, refuse_excess, refuse_progress

UNTIL = "until_s ends a run earlier"
"""A remedy for all that grows with the time of a run."""
FEWER_ROWS = "a longer sample_s makes fewer"


@dataclass(frozen=True)
class Knob:
    """An option that multiplies work.

    ``options`` are the spellings of the option (``FIELD`` of a scenario, or ``FIELD:NAME`` in its text), ``name`` is
    its name in messages, ``amount`` the work by the quantities that decide it, ``do`` another remedy, and
    ``do_then`` the remedy of a run that has begun, if it is another one.
    """

    name: str
    options: tuple[str, ...]
    work: Work
    amount: Callable[..., float]
    do: str = ""
    do_then: str = ""

    def refuse(self, *quantities: float, work: Work | None = None, name: str = "") -> None:
        """ScenarioError if these quantities make more work than its budget; ``work`` and ``name`` are other ones."""
        refuse_excess(name or self.name, self.amount(*quantities), work or self.work, self.do)

    def count(self, done: float, name: str = "") -> None:
        """ScenarioError if the work done so far is more than its budget; ``name`` is that of the place."""
        refuse_progress(name or self.name, done, self.work, self.do_then or self.do)


def samples(span_s: float, every_s: float) -> float:
    """Samples, one each ``every_s`` of ``span_s`` seconds."""
    return span_s / every_s


def readings(span_s: float, every_s: float, gpus: float, quantities: float) -> float:
    """Readings of ``quantities`` of every GPU, each ``every_s`` of ``span_s`` seconds."""
    return span_s / every_s * gpus * quantities


def node_changes(span_s: float, nodes: float, mtbf_s: float, mttr_s: float) -> float:
    """Failures and repairs of ``nodes`` in ``span_s`` seconds, on average."""
    return 2 * nodes * span_s / (mtbf_s + mttr_s)


def number(count: float) -> float:
    """As many as the option says."""
    return count


def hours(arrivals: float, rate_per_hour: float) -> float:
    """Hours until so many pods or jobs have arrived, on average."""
    return arrivals / rate_per_hour


def tuned(rows: float, target: float, demand: float) -> float:
    """Pods after the demand of ``rows`` pods has been raised to a target."""
    return rows * target / demand


def searched(runs: float, low: float, high: float, tolerance: float) -> float:
    """Runs until an interval of loads is halved down to ``tolerance``, with ``runs`` of each load."""
    return runs * (2 + math.ceil(max(0.0, math.log2((high - low) / high) - math.log2(tolerance))))


def product(rows: float, ratio: float) -> float:
    """Pods after ``rows`` pods have been multiplied by ``ratio``."""
    return rows * ratio


SAMPLE_S = Knob("sample_s", ("sample_s",), Work.SAMPLES, samples, FEWER_ROWS)
READINGS = Knob("telemetry", ("telemetry:every_s",), Work.READINGS, readings,
                "a longer time between samples makes fewer")  # fmt: skip
EXPORTER_SAMPLES = Knob("telemetry", ("telemetry:every_s",), Work.REFRESHES, samples,
                        "a longer time between samples makes fewer")  # fmt: skip
REFRESH_S = Knob("telemetry: refresh_s", ("telemetry:refresh_s",), Work.REFRESHES, samples, "longer gaps make fewer")
FAILURES = Knob("failures", ("failures:mtbf", "failures:mttr"), Work.NODE_CHANGES, node_changes, UNTIL,
                "until_s ends a run with what it did")  # fmt: skip
CHECKPOINT_PODS = Knob("checkpoint_pods", ("checkpoint_pods",), Work.CHECKPOINTS, samples,
                       "more pods between two make fewer")  # fmt: skip
INFLATION = Knob("inflation", ("inflation",), Work.HELD_PODS, product)

INFLATED = Knob("workload.inflated: ratio", ("Workload.inflated:ratio",), Work.HELD_PODS, product)
TUNE = Knob("workload.tune", ("workload:tune",), Work.HELD_PODS, tuned)
NODES = Knob("cluster", (
    "uniform:nodes", "mix:counts", "mix:parts", "scaled:nodes", "gavel:spec", "sia:spec", "synergy:spec",
), Work.NODES, number)  # fmt: skip
PODS = Knob("synth.pods", ("synth:openb:pods",), Work.PODS, number)
RESIDENTS = Knob("synth.warm_start", ("synth:openb:warm_start", "synth:openb:load"), Work.PODS, number)
JOBS = Knob("synth.jobs", ("synth:gavel:jobs", "synth:gavel-trace:jobs", "synth:synergy:jobs"), Work.PODS, number)
HELD_JOBS = Knob("synth.jobs", ("synth:sia:jobs", "synth:sia:copies"), Work.HELD_PODS, number)
DETECTORS = Knob("monitored jobs: jobs", ("synth:detectors:jobs",), Work.HELD_PODS, number)
LOG = Knob("synth.log", ("synth:synergy:log",), Work.HELD_PODS, number)
LENGTHS = Knob("synth.lengths", ("synth:gavel-trace:lengths",), Work.HELD_PODS, number)
WINDOW = Knob("window", ("window",), Work.PODS, number)
RATE_PER_HOUR = Knob("synth.rate_per_hour", (
    "synth:openb:rate_per_hour", "synth:openb:load", "synth:sia:rate_per_hour", "synth:synergy:rate_per_hour",
), Work.HOURS, hours, "raise the rate")  # fmt: skip
RUNS = Knob("sweep", ("sweep:axes", "sweep:points"), Work.RUNS, number)
KNEE = Knob("knee", ("sweep knee:tolerance", "sweep knee:low", "sweep knee:high"), Work.RUNS, searched,
            "a larger tolerance needs fewer")  # fmt: skip
RANGE = Knob("prometheus: range", ("monitor import:last", "monitor import:step"), Work.REFRESHES, samples,
             "a longer step makes fewer")  # fmt: skip
ADDITIONS = Knob("plan: most", ("plan:most",), Work.NODES, product)
EPISODES = Knob("num_envs", ("SchedulingVectorEnv:num_envs", "QueueVectorEnv:num_envs"), Work.EPISODES, number)
RESAMPLED = Knob("bootstrap", ("sweep stats:bootstrap",), Work.RESAMPLED, product, "Student's t needs none")
SERIES = Knob("series", ("prices", "carbon"), Work.TABLE_ROWS, number)
EXPLAINED = Knob("explain", ("explain:pods", "explain:sample"), Work.DECISION_BYTES, product, "select fewer pods")

# Work whose end is not known before it begins is counted: what a policy does until a job or pod ends.
LONGER_ROUNDS = "longer rounds are fewer, until_s ends a run with what it did"
WHAT_IT_DID = "until_s ends a run with what it did"
ROUND_S = Knob("round_s", ("round_s", "realloc_s"), Work.ROUNDS, number, LONGER_ROUNDS)
DECISIONS = Knob("round_s", ("round_s", "realloc_s", "policy:optimus:interval_s", "prices"), Work.DECISIONS, number,
                 LONGER_ROUNDS)  # fmt: skip
GENERATIONS = Knob("round_s", ("round_s", "policy:pollux:generations"), Work.GENERATIONS, product,
                   f"fewer generations, too; {LONGER_ROUNDS}")  # fmt: skip
STEPS = Knob("monitored", (
    "until_s", "telemetry:refresh_s", "policy:monitored:pass_s", "policy:monitored:placed_s",
), Work.STEPS, number, WHAT_IT_DID)  # fmt: skip
STAYS = Knob("restarts", ("restart_s", "checkpoint_every_s"), Work.STAYS, number, WHAT_IT_DID)

KNOBS = (
    SAMPLE_S, READINGS, EXPORTER_SAMPLES, REFRESH_S, FAILURES, INFLATION, CHECKPOINT_PODS, INFLATED, TUNE, NODES, PODS,
    RESIDENTS, JOBS, HELD_JOBS, DETECTORS, LOG, LENGTHS, WINDOW, RATE_PER_HOUR, RUNS, KNEE, RANGE, ADDITIONS,
    EPISODES, RESAMPLED, SERIES, EXPLAINED, ROUND_S, DECISIONS, GENERATIONS, STEPS, STAYS,
)  # fmt: skip
"""All options that multiply work."""

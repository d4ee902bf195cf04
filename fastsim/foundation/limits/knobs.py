"""The options that multiply work: for each the kind of work, and how much of it follows from the option.

An estimate before a run and the count while it goes on use the same row of :data:`KNOBS`.
"""

from __future__ import annotations

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

    def refuse(self, *quantities: float, work: Work | None = None) -> None:
        """ScenarioError if these quantities make more work than its budget; ``work`` is another kind."""
        refuse_excess(self.name, self.amount(*quantities), work or self.work, self.do)

    def count(self, done: float) -> None:
        """ScenarioError if the work done so far is more than its budget."""
        refuse_progress(self.name, done, self.work, self.do_then or self.do)


def samples(span_s: float, every_s: float) -> float:
    """Samples, one each ``every_s`` of ``span_s`` seconds."""
    return span_s / every_s


def readings(span_s: float, every_s: float, gpus: float, quantities: float) -> float:
    """Readings of ``quantities`` of every GPU, each ``every_s`` of ``span_s`` seconds."""
    return span_s / every_s * gpus * quantities


def node_changes(span_s: float, nodes: float, mtbf_s: float, mttr_s: float) -> float:
    """Failures and repairs of ``nodes`` in ``span_s`` seconds, on average."""
    return 2 * nodes * span_s / (mtbf_s + mttr_s)


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
INFLATION = Knob("inflation", ("inflation",), Work.HELD_PODS, product)

KNOBS = (SAMPLE_S, READINGS, EXPORTER_SAMPLES, REFRESH_S, FAILURES, INFLATION)
"""All options that multiply work."""

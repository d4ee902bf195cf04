"""Sort keys once more, in plain Python: what `fastsim_ext.sorting` says, for jobs in rounds and for pods that
wait."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class KeyInputs:
    """What a job that stands in line asks for and has had; seconds, milli-CPU, MiB."""

    submit_s: float
    left_s: float
    total_s: float
    gpus: float
    cpu_milli: float = 0.0
    memory_mib: float = 0.0
    attained_s: float = 0.0
    last_s: float = 0.0
    weight: float = 1.0
    priority: int = 0
    columns: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    """By name the values of a job, or of each pod of an entry."""

    def parts(self, yard: OrderContext) -> list[float]:
        """Of the cluster's GPUs, CPUs and memory."""
        pairs = (self.gpus, yard.gpus), (self.cpu_milli, yard.cpu_milli), (self.memory_mib, yard.memory_mib)
        return [part / whole if whole else 0.0 for part, whole in pairs]


@dataclass(frozen=True)
class OrderContext:
    """Now, and all there is."""

    now_s: float
    gpus: float
    cpu_milli: float
    memory_mib: float


def finish_ratio(claim: KeyInputs, yard: OrderContext) -> float:
    """How much later than alone it will end."""
    if not claim.total_s > 0:
        return math.inf
    return 1.0 if claim.total_s == math.inf else (yard.now_s - claim.submit_s + claim.left_s) / claim.total_s


def packing(claim: KeyInputs, yard: OrderContext) -> float:
    """Small and short; what asks for nothing is smallest."""
    gpus, cpu, memory = claim.parts(yard)
    return (gpus + cpu + memory) * claim.left_s if gpus + cpu + memory else 0.0


TERM: dict[str, Callable[[KeyInputs, OrderContext], float]] = {
    "arrival": lambda claim, yard: claim.submit_s,
    "starving": lambda claim, yard: claim.priority,
    "remaining": lambda claim, yard: claim.left_s,
    "service": lambda claim, yard: claim.attained_s * claim.gpus,
    "attained": lambda claim, yard: claim.attained_s,
    "finish_ratio": finish_ratio,
    "dominant": lambda claim, yard: max(claim.parts(yard)),
    "packing": packing,
    "service_left": lambda claim, yard: claim.left_s * claim.gpus if claim.gpus else 0.0,
    "weight": lambda claim, yard: claim.weight,
    "gpus": lambda claim, yard: claim.gpus,
    "last": lambda claim, yard: claim.last_s,
}
"""Every term but the one that has steps."""


def of_column(values: Sequence[float | None], reverse: bool) -> float:
    """The first of these values in the direction of the sort; what has none is behind all."""
    return min(math.inf if value is None else -value if reverse else value for value in values)


def key(order: Sequence[str], claim: KeyInputs, yard: OrderContext, level_s: Sequence[float]) -> list[float]:
    """The sort key of a claim; ``level_s`` are GPU seconds."""
    found = []
    for text in order:
        term = text.removeprefix("-")
        if term.startswith("column("):
            found.append(of_column(claim.columns[term[len("column(") : -1]], text.startswith("-")))
            continue
        level = float(sum(claim.attained_s * claim.gpus >= step for step in level_s))
        value = level if term == "level" else TERM[term](claim, yard)
        found.append(-value if text.startswith("-") else value)
    return found

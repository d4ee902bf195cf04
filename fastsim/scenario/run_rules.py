"""Rules of a run beyond placing single pods: quotas, shares, preemption, failures, in one value.

Everything is off in ``Rules()``. Scenarios and the command line have the tables as texts:
``"alice:gpu_milli=8000,cpu_milli=64000;*:gpu_milli=4000"`` for quotas, ``"alice=2,bob=1"`` for weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from fastsim.errors import ScenarioError
from fastsim.foundation.option_texts import groups_text, numbers_text
from fastsim.scenario.outages import NO_OUTAGES, Outages, failures_from, maintenance_from
from fastsim.scenario.sort_keys import OF_SERVICE, queue_key

RESOURCES = ("cpu_milli", "memory_mib", "gpu_milli")
"""Resources of quotas and of dominant shares: milli-CPU, MiB and milli-GPU."""
PREEMPT = ("none", "priority")
"""Pods that a pod which fits nowhere may preempt: none, or running ones of lower priority."""
NODE_LOSS = ("lost", "requeue")
"""Pods of a node that is removed or fails: they are lost, or they queue again."""
MOST_WEIGHT = 1e9
"""Largest weight of a tenant; the smallest is one over it."""
OTHER_TENANTS = "*"
"""The tenant of a quota that holds for every tenant without its own."""

Quotas = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Rules:
    """Rules of a run that hold for every policy.

    ``preempt`` one of :data:`PREEMPT` · ``on_node_loss`` one of :data:`NODE_LOSS` · ``checkpoint_every_s`` seconds of
    work after which a stopped pod may go on (None: it begins again, 0: nothing is lost) · ``restart_s`` seconds that
    every restart adds · ``quotas`` most of a resource that a tenant's running pods may hold · ``weights`` of tenants
    for the queue rule ``drf`` (1 unless given) · ``outages`` when nodes fail and are maintained.
    """

    preempt: str = "none"
    on_node_loss: str = "lost"
    checkpoint_every_s: float | None = None
    restart_s: float = 0.0
    quotas: Quotas = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    outages: Outages = NO_OUTAGES

    def limits(self, tenant: str | None) -> tuple[float, float, float]:
        """Most milli-CPU, MiB and milli-GPU the tenant's pods may hold at once; infinite without a quota."""
        quota = self.quotas.get(tenant or "", self.quotas.get(OTHER_TENANTS, {}))
        cpu, memory, gpu = (quota.get(name, math.inf) for name in RESOURCES)
        return cpu, memory, gpu

    def weight(self, tenant: str | None) -> float:
        """The tenant's weight, relative to other tenants."""
        return self.weights.get(tenant or "", 1.0)

    def kept_s(self, worked_s: float) -> float:
        """Seconds of an interrupted interval's work that need not be done again."""
        if self.checkpoint_every_s is None:
            return 0.0
        if self.checkpoint_every_s == 0:
            return worked_s
        # The product may be rounded up beyond what was worked.
        return min(worked_s, math.floor(worked_s / self.checkpoint_every_s) * self.checkpoint_every_s)

    def refuse(self, queue: str, columns: Any, deschedules: bool = False) -> None:
        """ScenarioError if these rules have no meaning together, or with a queue rule or a pod column."""
        backfills, gangs = queue in ("easy", "conservative"), "gang_size" in columns
        if backfills and self.preempt != "none":
            raise ScenarioError("preempt", f"{self.preempt!r} with queue={queue!r}", "another queue rule",
                                "a reservation has no meaning for pods that may be stopped")  # fmt: skip
        if backfills and gangs:
            raise ScenarioError("queue", f"{queue!r} with a gang_size column", "another queue rule",
                                "reservations are for single pods; drop the column to place pods singly")  # fmt: skip
        served = not {term.removeprefix("-") for term in queue_key(queue)}.isdisjoint(OF_SERVICE)
        if served and self.preempt == "none" and self.on_node_loss == "lost":
            raise ScenarioError("queue", f"{queue!r}, where no pod that ran waits again",
                                "preempt='priority' or on_node_loss='requeue' with it",
                                "without them no pod has received service: it is the rule fifo")  # fmt: skip
        if deschedules and gangs:
            raise ScenarioError("deschedule", "a workload with a gang_size column", "no descheduling of gangs",
                                "drop the column to place pods singly")  # fmt: skip
        if self.on_node_loss == "requeue" and queue == "drop":
            raise ScenarioError("on_node_loss", "'requeue' with queue='drop'", "a queue rule that lets pods wait")


NO_RULES = Rules()
"""Nothing beyond placing single pods."""


def rules_from(scenario: Any) -> Rules:
    """The rules of a scenario, from fields named as in :class:`Rules`, ``failures`` and ``maintenance``."""
    return Rules(
        preempt=scenario.preempt,
        on_node_loss=scenario.on_node_loss,
        checkpoint_every_s=scenario.checkpoint_every_s,
        restart_s=scenario.restart_s,
        quotas=quotas_from(scenario.quotas),
        weights=weights_from(scenario.weights),
        outages=outages_of(scenario),
    )


def outages_of(scenario: Any) -> Outages:
    """The outages of a scenario, from its fields ``failures`` and ``maintenance``."""
    mtbf_s, mttr_s = failures_from(scenario.failures)
    return Outages(mtbf_s, mttr_s, maintenance_from(scenario.maintenance))


def quotas_from(value: Quotas | str) -> dict[str, dict[str, int]]:
    """Quotas by tenant from a mapping or a text."""
    rows: Mapping[str, Any] = _split(value, "quotas") if isinstance(value, str) else value
    if not isinstance(rows, Mapping):
        raise ScenarioError("quotas", type(value).__name__, "a table of tenants")
    return {str(tenant): _amounts(str(tenant), amounts) for tenant, amounts in rows.items()}


def _split(text: str, where: str) -> dict[str, str]:
    parts = [part.partition(":") for part in text.split(";") if part.strip()]
    if not all(sign for _, sign, _ in parts):
        raise ScenarioError(where, repr(text), "a text such as 'alice:gpu_milli=8000;*:gpu_milli=4000'")
    return {unquote(tenant.strip()): rest for tenant, _, rest in parts}


def _amounts(tenant: str, value: Any) -> dict[str, int]:
    where = f"quotas: {tenant}"
    pairs = _pairs(value, where, "{'gpu_milli': 8000} for 8 GPUs")
    for name, amount in pairs.items():
        if name not in RESOURCES:
            raise ScenarioError(where, f"a limit of {name!r}", f"limits of {', '.join(RESOURCES)}")
        whole = isinstance(amount, int) and not isinstance(amount, bool)
        if not (whole or (isinstance(amount, float) and amount.is_integer())) or not 0 <= amount < 2**53:
            raise ScenarioError(f"{where}: {name}", repr(amount), "a whole number of 0 or more, below 2**53")
    return {name: int(pairs[name]) for name in RESOURCES if name in pairs}


def _pairs(value: Any, where: str, example: str) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    if not isinstance(value, str):
        raise ScenarioError(where, repr(value), f"names and numbers, such as {example}")
    numbers: dict[str, Any] = {}
    for item in filter(None, (part.strip() for part in value.split(","))):
        name, _, number = item.partition("=")
        try:
            numbers[unquote(name.strip())] = float(number)
        except ValueError:
            raise ScenarioError(where, repr(item), "name=number") from None
    return numbers


def weights_from(value: Mapping[str, float] | str) -> dict[str, float]:
    """Weights by tenant from a mapping or a text such as ``"alice=2,bob=1"``."""
    weights = {str(tenant): weight for tenant, weight in _pairs(value, "weights", "{'anna': 2, 'bert': 1}").items()}
    for tenant, weight in weights.items():
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not number or not 1 / MOST_WEIGHT <= weight <= MOST_WEIGHT:
            expected = f"a number from {1 / MOST_WEIGHT:g} to {MOST_WEIGHT:g}"
            raise ScenarioError(f"weights: {tenant}", repr(weight), expected)
    return {tenant: float(weight) for tenant, weight in weights.items()}


def quotas_text(quotas: Quotas) -> str:
    """Quotas as the text that :func:`quotas_from` reads."""
    return groups_text(quotas)


def weights_text(weights: Mapping[str, float]) -> str:
    """Weights as the text that :func:`weights_from` reads."""
    return numbers_text(weights)

"""What the running pods of each tenant hold, against quotas and as dominant shares. Milli-CPU, MiB, milli-GPU."""

from __future__ import annotations

from collections.abc import Sequence

from fastsim.engine.online.plan import PodRequest
from fastsim.scenario.run_rules import Rules
from tests.reference.online.nodes import WHOLE, Node, demand_with_instances
from tests.reference.online.tables import Outcome

Amounts = tuple[int, int, int]
"""Milli-CPU, MiB and milli-GPU."""


def amounts(request: PodRequest) -> Amounts:
    """What a pod adds to its tenant's use."""
    return request.cpu_milli, request.memory_mib, demand_with_instances(request)


def capacity(nodes: Sequence[Node | None]) -> Amounts:
    """All there is on the nodes that are present."""
    shapes = [node.shape for node in nodes if node is not None]
    return (
        sum(shape.cpu_milli for shape in shapes), sum(shape.memory_mib for shape in shapes),
        sum((shape.num_gpu + shape.mig_gpus) * WHOLE for shape in shapes),
    )  # fmt: skip


class Tenants:
    """Use of every tenant; pods without one belong to the tenant ``None``."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.used: dict[str | None, Amounts] = {}

    def add(self, pod: Outcome, sign: int) -> None:
        """A pod starts (1) or has ended (-1)."""
        self.used[pod.tenant] = _sum(self._of(pod.tenant), amounts(pod.request), sign)

    def excess(self, members: Sequence[Outcome]) -> Outcome | None:
        """The first of some pods with which its tenant would be over its quota, if they start one after another."""
        held: dict[str | None, Amounts] = {}
        for pod in members:
            held[pod.tenant] = _sum(held.get(pod.tenant, self._of(pod.tenant)), amounts(pod.request), 1)
            if any(amount > most for amount, most in zip(held[pod.tenant], self.rules.limits(pod.tenant), strict=True)):
                return pod
        return None

    def share(self, tenant: str | None, whole: Amounts) -> float:
        """The tenant's largest share of any resource, divided by its weight; what there is none of has no share."""
        shares = [amount / most for amount, most in zip(self._of(tenant), whole, strict=True) if most > 0]
        return max(shares, default=0.0) / self.rules.weight(tenant)

    def _of(self, tenant: str | None) -> Amounts:
        return self.used.get(tenant, (0, 0, 0))


def _sum(held: Amounts, more: Amounts, sign: int) -> Amounts:
    return held[0] + sign * more[0], held[1] + sign * more[1], held[2] + sign * more[2]

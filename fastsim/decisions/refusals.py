"""kube-scheduler's words about nodes that cannot host a pod: of each node, and all nodes in one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastsim.decisions.refusal_text import (
    BETWEEN_PODS,
    CLAIM_IN_USE,
    CLAIMS,
    NO_PORTS,
    PORTS,
    SPREAD,
    SUMMED,
    TOO_MANY_VOLUMES,
    insufficient,
    near_text,
    order_of_labels,
    sentence,
    summed,
)
from fastsim.decisions.replay import NAMES
from fastsim.hardware.node_constraints import unstated
from fastsim.kubernetes.pod_rules.pod_affinity import APART, KEPT_AWAY
from fastsim.kubernetes.pod_rules.resource_claims import CANNOT
from fastsim.kubernetes.pod_rules.volumes import IN_USE_TEXT

if TYPE_CHECKING:
    from fastsim.decisions.replay import Decision
    from fastsim.hardware.node_constraints import Conditions

AMOUNTS = ("no_gpu", "no_gpu_memory", "no_cpu", "no_memory", "no_extra", "no_pod_slot")
"""Checks of amounts: a node counts once for every amount that it has too little of."""
CAPACITIES = {"no_cpu": "cpu_milli", "no_memory": "memory_mib", "no_gpu": "num_gpu"}
"""Columns of nodes, and of requests, by check of amounts; slots for pods are not among them, as each pod frees one."""
MENDABLE = {
    NO_PORTS, IN_USE_TEXT, SUMMED["spread"], SUMMED["no_pod_slot"], BETWEEN_PODS[APART][1], BETWEEN_PODS[KEPT_AWAY][1],
}  # fmt: skip
"""Texts about nodes that may host the pod once pods there are stopped."""
LATE = {TOO_MANY_VOLUMES: CLAIM_IN_USE, CANNOT: CLAIMS}
"""Texts about amounts that come after those of labels, and the last of these places before each."""
Row = Mapping[str, Any]


class Refusals:
    """Words about pods of one run; ``rows`` are rows of the node table, as pods see the nodes."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._unlike: dict[Conditions, dict[int, tuple[str, int]]] = {}

    def texts(self, decision: Decision, n: int) -> list[str]:
        """kube-scheduler's texts for node ``n``, which cannot host the pod."""
        check = NAMES[int(decision.reason__n[n])]
        if check == "no_match":
            return list(self._texts_of_labels(decision, n))
        if check == "pod_affinity":
            return [near_text(int(decision.found__n[n]))[1]]
        return list(self._texts(decision, n, check))

    def is_lasting(self, decision: Decision, n: int) -> bool:
        """Whether node ``n`` cannot host the pod, whatever pods are stopped there.

        kube-scheduler's preemption leaves such nodes out: what is asked for is more than the whole node has, or a
        rule forbids it in which the pods there have no part.
        """
        texts, lacking = self.texts(decision, n), _lacking(decision, n)
        if CANNOT in texts:
            return True
        if NAMES[int(decision.reason__n[n])] in AMOUNTS or (lacking and texts == lacking):
            return self._exceeds(decision, n)
        return not MENDABLE.issuperset(texts)

    def _exceeds(self, decision: Decision, n: int) -> bool:
        """Whether an amount that node ``n`` lacks is more than it has without any pods."""
        request, row = decision.request, self._rows[n]
        checks, resources = decision.lacking(n)
        asked, whole = dict(request.conditions.extra_resources), dict(row.get("extra_resources") or ())
        beyond = (
            getattr(request, CAPACITIES[check]) > row[CAPACITIES[check]] for check in checks if check in CAPACITIES
        )
        device_mib = row.get("gpu_memory_mib")
        return (
            any(beyond) or any(asked[name] > whole.get(name, unstated(name)) for name in resources)
            or (device_mib is not None and request.conditions.gpu_memory_mib > device_mib)
        )  # fmt: skip

    def sentence(self, decision: Decision) -> str:
        """Why no node can host the pod of this decision."""
        counts, lacks = Counter[str](), decision.lacks__n
        keys = np.stack((decision.reason__n, np.zeros_like(decision.reason__n) if lacks is None else lacks))
        kinds, kind__n = np.unique(keys, axis=1, return_inverse=True)
        for kind, reason in enumerate(kinds[0].tolist()):
            nodes = np.flatnonzero(kind__n.ravel() == kind).tolist()
            check = NAMES[reason]
            if check == "no_match":
                for n in nodes:
                    counts.update(self._texts_of_labels(decision, n))
            elif check == "pod_affinity":
                counts.update(near_text(int(decision.found__n[n]))[1] for n in nodes)
            else:
                counts.update(dict.fromkeys(self._texts(decision, nodes[0], check), len(nodes)))
        return sentence(counts, len(decision.reason__n))

    def _texts(self, decision: Decision, n: int, check: str) -> Iterable[str]:
        """The texts for node ``n``, whose first failed check is ``check``."""
        lacking = _lacking(decision, n) if check in AMOUNTS else []
        first = summed(check, decision.request.conditions, self._rows[n], *_figures(decision, n))
        return dict.fromkeys([*lacking, *([first] if check == "no_gpu_memory" or not lacking else [])])

    def _texts_of_labels(self, decision: Decision, n: int) -> Iterable[str]:
        """The texts for node ``n``, whose labels, taints or pods keep the pod away."""
        conditions = decision.request.conditions
        known = self._unlike.setdefault(conditions, {})
        if n not in known:
            row = self._rows[n]
            known[n] = summed("no_match", conditions, row, 0, 0), order_of_labels(conditions, row)
        text, order = known[n]
        lacking = _lacking(decision, n) if order > PORTS else []
        if lacking and order > LATE.get(lacking[0], -1):
            return lacking
        return [SUMMED["spread"] if order > SPREAD and decision.breaks_spread(n) else text]


def _figures(decision: Decision, n: int) -> tuple[int, int]:
    return int(decision.found__n[n]), int(decision.needed__n[n])


def _lacking(decision: Decision, n: int) -> list[str]:
    """The texts for all amounts that node ``n`` has too little of."""
    checks, resources = decision.lacking(n)
    texts = [summed(check, decision.request.conditions, {}, 0, 0) for check in checks]
    texts += [insufficient(name) for name in resources]
    # kube-scheduler looks at volumes after amounts, and at claims last.
    late = [text for text in LATE if text in texts]
    return [text for text in texts if text not in late] or late[:1]

"""The online engine with a listener that is called before and after every decision on watched pods.

``DecisionTrace`` runs without rules, ``RulesDecisionTrace`` with them; both decide as in any other run.
During a call the listener may query the inputs of the decision: ``filtered``, ``scored`` and ``picked`` compute them by
the engine's own filter, scores and device pick, without reading or changing the caches of its faster variants.
``lacking`` has every amount that a node has too little of.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from fastsim_ext.online.loop import OnlineLoop
from fastsim_ext.online.queue_loop import QueueLoop
from fastsim_ext.select.scan import Selector
from fastsim_ext.state.node_table import NodeTable
from fastsim_ext.state.pod_table import WorkTable

ABSENT: int
"""Stands for a reason where a node is not there at the moment."""
NO_GPU_MEMORY: int
"""Stands for a reason where enough devices have room, but too few of them the requested memory."""
LACKS_GPU: int
LACKS_CPU: int
LACKS_MEMORY: int
LACKS_POD_SLOT: int
LACKS_EXTRA: int
"""Bits of the amounts that a node has too little of; the further resource at position g has LACKS_EXTRA << g."""
BREAKS_SPREAD: int
"""Bit of a node where rules of spread refuse the pod."""

class _Listener(Protocol):
    def before(self, seq: int, cls: int, t_s: float) -> None: ...
    def after(self, seq: int, node: int, gpus: int, how: str) -> None: ...
    def never(self, seq: int, cls: int, t_s: float, reason: int) -> None: ...

class Watch:
    """The pods whose arrival number is marked in ``watched``, and the listener to the decisions about them.

    ``listener.before(seq, class, t)`` is called before a decision at ``t`` seconds and
    ``listener.after(seq, node, devices as bits, how)`` after it, with node -1 if the pod did not start. ``how`` is the
    rule that affected the answer, or empty. A pod that could not start on an empty cluster either is never decided on:
    ``listener.never(seq, class, t, reason)`` is called instead.
    """

class DecisionTrace(OnlineLoop):
    """A run that calls ``listener`` for the pods marked in ``watched``, as a watch does; ``how`` is always empty."""

    def __init__(
        self,
        nodes: NodeTable,
        work: WorkTable,
        select: Selector,
        options: Mapping[str, Any],
        watched: Any,
        listener: _Listener,
    ) -> None: ...
    def move(self, slot: int) -> bool:
        """As OnlineLoop.move, with calls of the listener."""

def filtered(select: Selector, cls: int, reason__n: Any, found__n: Any, needed__n: Any) -> None:
    """The first check every node fails for a class (a Reason; 0 none, -1 absent), what it has and what it needs."""

def lacking(select: Selector, cls: int, lacks__n: Any) -> None:
    """Every amount that a node has too little of for a class, as bits; 0 for a node that is absent."""

def scored(select: Selector, cls: int, term: int, raw__n: Any, points__n: Any) -> None:
    """Raw and normalised points of one term of the plan, on every node that can host the class now."""

def picked(select: Selector, cls: int, gpus__n: Any) -> None:
    """The devices, as bits, that the class would get on every node that can host it now."""

class RulesDecisionTrace(QueueLoop):
    """A run with rules that calls ``listener`` for the pods marked in ``watched``, as a watch does.

    ``how`` is ``preemption``, ``backfill``, ``over_quota``, ``gang`` (all members start, or another one fits nowhere)
    or empty.
    """

    def __init__(
        self,
        nodes: NodeTable,
        work: WorkTable,
        select: Selector,
        options: Mapping[str, Any],
        watched: Any,
        listener: _Listener,
    ) -> None: ...
    def move(self, slot: int) -> bool:
        """As OnlineLoop.move, with calls of the listener."""
    def filtered(self, cls: int, reason__n: Any, found__n: Any, needed__n: Any) -> None:
        """The first check every node fails for a class (a Reason; 0 none, -1 absent), what it has and what it needs."""
    def lacking(self, cls: int, lacks__n: Any) -> None:
        """As the function ``lacking``, with further resources and rules of spread."""
    def scored(self, cls: int, term: int, raw__n: Any, points__n: Any) -> None:
        """Raw and normalised points of one term of the plan, on every node that can host the class now."""
    def preferred(self, cls: int, part: int, raw__n: Any) -> None:
        """Points of one part of the preferences, on every node that can host the class now."""
    def picked(self, cls: int, gpus__n: Any) -> None:
        """The devices, as bits, that the class would get on every node that can host it now."""

"""Orders as data: sort keys of jobs in rounds, and of pods in the waiting line.

A key is a list of terms; a minus sign before one turns it round. What a term counts in a job of rounds, and in a pod:

=============  ======================================================  ===============================================
term           job                                                     pod that waits
=============  ======================================================  ===============================================
arrival        when it came, seconds                                   the same
priority       1 if it has waited longer than ``starving_s``, else 0   none
remaining      seconds it still takes on the fastest GPU model, with   seconds it still takes, as ``est_duration_s`` or
               what it needs (``fair``: with its fair share)           else ``duration_s`` says; endless without them
service        GPU seconds it has had so far                           the same: it ran before it was stopped
attained       seconds it has had so far                               the same
finish_ratio   (time since it came + remaining) / time it takes in     the same; 1 for an endless one
               all at its fair share
dominant       largest part of the cluster's GPUs, CPUs and memory     the same, of the nodes that are there
               that it needs
packing        sum of the three parts x remaining                      the same
service_left   remaining x GPUs                                        the same
level          how many of ``level_s`` its service has reached         the same, with one level: a GPU hour
weight         importance of the job                                   none
gpus           size of the gang                                        GPUs, parts of shared ones included
last           when it last was at work, or came, seconds              none
=============  ======================================================  ===============================================
"""

from __future__ import annotations

from array import array

TERMS = (
    "arrival", "priority", "remaining", "service", "attained", "finish_ratio", "dominant", "packing", "service_left",
    "level", "weight", "gpus", "last",
)  # fmt: skip
"""What sort keys are made of, by their number in the compiled loops."""
MOST_TERMS = 4
"""Terms of one key."""

ORDERS: dict[str, tuple[str, ...]] = {
    "fcfs": ("arrival",),
    "srtf": ("remaining", "arrival"),
    "srsf": ("service_left", "arrival"),
    "las": ("service", "arrival"),
    "tiresias": ("level", "arrival"),
    "ftf": ("-finish_ratio", "arrival"),
    "drf": ("dominant", "arrival"),
    "tetris": ("packing", "arrival"),
    "round_robin": ("last", "arrival"),
}
"""The keys of published orders."""
PODS: dict[str, tuple[str, ...]] = {
    "srtf": ORDERS["srtf"],
    "srsf": ORDERS["srsf"],
    "las": ORDERS["las"],
    "tiresias": ORDERS["tiresias"],
    "ftf": ORDERS["ftf"],
    "smallest": ORDERS["drf"],
    "tetris": ORDERS["tetris"],
}
"""Those of them that mean something to pods that wait. ``smallest`` is what Synergy calls DRF, each job a tenant of its
own; the queue rule ``drf`` looks at real tenants. ``fcfs`` is ``fifo``; slices of time need rounds."""
SERVED = ("las", "tiresias")
"""Orders that look at what a pod has had: they need pods that ran before they wait."""
POD_LEVEL_S = (3600.0,)
"""GPU seconds at which a pod goes to the second queue of ``tiresias``."""

PODS_QUEUES = tuple(f"{name}{how}" for name in PODS for how in ("", "_skip"))
"""Queue rules of pods that are orders; with ``_skip`` others pass one that fits nowhere."""


def line_order(queue: str) -> dict[str, object]:
    """What the compiled waiting line is told of a queue rule; nothing if it is no order."""
    key = PODS.get(queue.removesuffix("_skip")) if queue in PODS_QUEUES else None
    return {} if key is None else {"terms": numbers(key), "level_s": array("d", POD_LEVEL_S)}


def numbers(order: tuple[str, ...]) -> list[tuple[int, float]]:
    """Number and sign of each term."""
    return [(TERMS.index(term.removeprefix("-")), -1.0 if term.startswith("-") else 1.0) for term in order]

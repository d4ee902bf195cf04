"""Orders as data: sort keys of jobs in rounds, and of pods in the waiting line.

A key is a list of terms; a minus sign before a term reverses it. Values of the terms for jobs in rounds and for pods:

=============  ======================================================  ===============================================
term           job                                                     pod that waits
=============  ======================================================  ===============================================
arrival        arrival, seconds                                        the same
starving       1 if it has waited longer than ``starving_s``, else 0   none
remaining      seconds it still takes on the fastest GPU model, with   seconds it still takes, by ``est_duration_s`` or
               its demand (``fair``: with its fair share)              else ``duration_s``; endless without them
service        GPU seconds it has received so far                      the same: it ran before it was stopped
attained       seconds it has run so far                               the same
finish_ratio   (time since arrival + remaining) / time it takes in     the same; 1 for an endless one
               all at its fair share
dominant       largest part of the cluster's GPUs, CPUs and memory     the same, of the nodes that are there
               that it needs
packing        sum of the three parts x remaining                      the same
service_left   remaining x GPUs                                        the same
level          number of ``level_s`` that its service has reached      the same, with one level: a GPU hour
weight         importance of the job                                   none
gpus           size of the gang                                        GPUs, parts of shared ones included
last           end of its last round, or arrival, seconds              none
=============  ======================================================  ===============================================
"""

from __future__ import annotations

from array import array

TERMS = (
    "arrival", "starving", "remaining", "service", "attained", "finish_ratio", "dominant", "packing", "service_left",
    "level", "weight", "gpus", "last",
)  # fmt: skip
"""Terms of sort keys, by their number in the compiled loops."""
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
"""Those of them that apply to waiting pods. ``smallest`` is Synergy's DRF, in which each job is a tenant of its own;
the queue rule ``drf`` compares real tenants. ``fcfs`` is ``fifo``; slices of time need rounds."""
SERVED = ("las", "tiresias")
"""Orders by received service: they need pods that ran before they wait."""
POD_LEVEL_S = (3600.0,)
"""GPU seconds at which a pod goes to the second queue of ``tiresias``."""

PODS_QUEUES = tuple(f"{name}{how}" for name in PODS for how in ("", "_skip"))
"""Queue rules of pods that are orders; with ``_skip`` others overtake a pod that fits nowhere."""


def line_order(queue: str) -> dict[str, object]:
    """Options of the compiled queue for a queue rule; empty if it is no order."""
    key = PODS.get(queue.removesuffix("_skip")) if queue in PODS_QUEUES else None
    return {} if key is None else {"terms": numbers(key), "level_s": array("d", POD_LEVEL_S)}


def numbers(order: tuple[str, ...]) -> list[tuple[int, float]]:
    """Number and sign of each term."""
    return [(TERMS.index(term.removeprefix("-")), -1.0 if term.startswith("-") else 1.0) for term in order]

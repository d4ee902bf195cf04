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
column(NAME)   its value in a column of the workload, see              the same; of a gang the pod that comes first
               :mod:`fastsim.scenario.column_values`                    by it
=============  ======================================================  ===============================================
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Sequence

TERMS = (
    "arrival", "starving", "remaining", "service", "attained", "finish_ratio", "dominant", "packing", "service_left",
    "level", "weight", "gpus", "last",
)  # fmt: skip
"""Terms of sort keys, by their number in the compiled loops; columns of the workload have the next one."""
OF_JOBS = ("starving", "weight", "last")
"""Terms that pods do not have."""
OF_SERVICE = ("service", "attained", "level")
"""Terms that differ only among those that have run."""
MOST_TERMS = 4
"""Terms of one key."""
COLUMN = re.compile(r"-?column\((.*\S.*)\)")
ARRIVAL = "arrival"

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
    "edf": ("column(deadline_s)", "arrival"),
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
    "edf": ORDERS["edf"],
}
"""Those of them that apply to waiting pods. ``smallest`` is Synergy's DRF, in which each job is a tenant of its own;
the queue rule ``drf`` compares real tenants. ``fcfs`` is ``fifo``; slices of time need rounds."""
SERVED = tuple(name for name, key in PODS.items() if not {*key}.isdisjoint(OF_SERVICE))
"""Orders by received service: they need pods that ran before they wait."""
POD_LEVEL_S = (3600.0,)
"""GPU seconds at which a pod goes to the second queue of ``tiresias``."""

PODS_QUEUES = tuple(f"{name}{how}" for name in PODS for how in ("", "_skip"))
"""Queue rules of pods that are published orders; with ``_skip`` others overtake a pod that fits nowhere."""


def column_of(term: str) -> str:
    """The column of the workload that a term reads; empty for a term of :data:`TERMS`."""
    found = COLUMN.fullmatch(term)
    return found[1].strip() if found else ""


def key_of(text: str, most: int = MOST_TERMS) -> tuple[str, ...]:
    """The terms of a text, separated by commas; ties go by arrival where one of ``most`` terms is left for it."""
    terms = tuple(part.strip() for part in re.split(r",(?![^()]*\))", text))
    return terms if ARRIVAL in terms or len(terms) >= most else (*terms, ARRIVAL)


def key_fault(key: Sequence[str], but: Collection[str] = (), most: int = MOST_TERMS) -> tuple[str, str, str] | None:
    """What is wrong with a key: what was found, what is expected, what to do. ``but``: terms that it cannot have."""
    known = [term for term in TERMS if term not in but]
    unknown = next((term for term in key if not column_of(term) and term.removeprefix("-") not in known), None)
    if unknown is None and 1 <= len(key) <= most:
        return None
    found, word = f"{len(key)} terms" if unknown is None else repr(unknown), (unknown or "").removeprefix("-")
    do = f"the values of a column are column({word})" if word.isidentifier() else ""
    return found, f"1 to {most} of {', '.join(known)}, column(NAME)", do


def queue_key(queue: str) -> tuple[str, ...]:
    """The key of a queue rule for pods, a published one or the text of one; empty for a rule that is no order."""
    name = queue.removesuffix("_skip")
    if name in PODS:
        return PODS[name]
    return key_of(name) if name in TERMS or {*"-,("}.intersection(name) else ()


def line_order(queue: str) -> dict[str, object]:
    """Options of the compiled queue for a queue rule; empty if it is no order."""
    key = queue_key(queue)
    return {"terms": numbers(key), "level_s": array("d", POD_LEVEL_S)} if key else {}


def numbers(order: Sequence[str]) -> list[tuple[int, float]]:
    """Number and sign of each term; values of columns have their signs already."""
    return [
        (len(TERMS), 1.0) if column_of(term) else (TERMS.index(term.removeprefix("-")), -1.0 if term[0] == "-" else 1.0)
        for term in order
    ]

"""Checks of what a chooser returns: points for all jobs of a round.

Points may need more CPUs and memory than the servers have: jobs that find no room on a server wait.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

from fastsim.engine.orders.plan import ResourcePoint
from fastsim.errors import PolicyError, kind_of
from fastsim.foundation.limits.quantities import is_whole

AMOUNTS = {"cpu": "CPUs", "memory_gb": "GB", "speedup": "times the fair share's speed"}
"""Numbers of a point, with their units."""


def checked_points(answer: Any, count__k: Sequence[int], where: str) -> dict[int, list[ResourcePoint]]:
    """The points by kind, in their order; PolicyError unless they are of ``count__k[k]`` jobs of each kind."""
    expected = "a list of points with kind, jobs, cpu, memory_gb and speedup"
    if not isinstance(answer, list | tuple):
        raise PolicyError(where, kind_of(answer), expected)
    points: dict[int, list[ResourcePoint]] = {}
    for number, point in enumerate(answer):
        if not all(hasattr(point, name) for name in ("kind", "jobs", *AMOUNTS)):
            raise PolicyError(f"{where}: point {number}", kind_of(point), expected)
        _check(point, len(count__k), f"{where}: point {number}")
        points.setdefault(int(point.kind), []).append(point)
    for kind, count in enumerate(count__k):
        jobs = sum(point.jobs for point in points.get(kind, ()))
        if jobs != count:
            found, expected = f"points for {jobs} jobs of kind {kind}", f"points for {count}, the number in this round"
            raise PolicyError(where, found, expected)
    return points


def _check(point: Any, kinds: int, where: str) -> None:
    """PolicyError for a point of no kind, or with a number that is none."""
    if not is_whole(point.kind) or not 0 <= point.kind < kinds:
        raise PolicyError(f"{where}: kind", kind_of(point.kind), f"the number of a kind, 0 to {kinds - 1}")
    if not is_whole(point.jobs) or point.jobs < 0:
        raise PolicyError(f"{where}: jobs", kind_of(point.jobs), "a number of jobs, 0 or more")
    for name, unit in AMOUNTS.items():
        value = getattr(point, name)
        if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) < math.inf:  # false for NaN
            raise PolicyError(f"{where}: {name}", kind_of(value), f"{unit}, 0 or more")

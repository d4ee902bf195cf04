"""Scorers written in Python, in the form that the compiled loop calls."""

from __future__ import annotations

import math
import traceback
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np

from fastsim.engine.online.kernel_columns import read_only
from fastsim.engine.online.plan import OnlinePlan, PodRequest
from fastsim.errors import FastsimError, PolicyError, kind_of
from fastsim.foundation import interrupts
from fastsim.workload.pod_classes import PodClasses

MOST_POINTS = 2.0**53
"""Every whole number up to here is a float."""
MOST_INTEGER = 2**63 - 1
"""Largest points of a node."""


LOOKED_AT = 1000
"""Decisions in which the rounding of points is looked at."""


class MergedPoints:
    """Decisions in which rounding gives nodes with fewer points than the best node its whole number.

    ``decisions`` were looked at, ``merged`` of them are such decisions. ``low`` and ``high`` are the fewest and the
    most points of a node in them, of the scorer called ``name``.
    """

    def __init__(self) -> None:
        self.name = ""
        self.decisions = self.merged = 0
        self.low, self.high = math.inf, -math.inf

    def note(self, scorer: Any, points: Any, whole: Any) -> None:
        """Look at the points of one decision, and at the whole numbers that they become."""
        if self.decisions >= LOOKED_AT or len(points) < 2:
            return
        self.decisions += 1
        if bool((whole.max() == whole)[points < points.max()].any()):
            self.merged += 1
            self.name = _name(scorer)
            self.low, self.high = min(self.low, float(points.min())), max(self.high, float(points.max()))


class UserScorers:
    """The plan's Python scorers behind one call, with read-only columns as their inputs."""

    def __init__(
        self, plan: OnlinePlan, columns: dict[str, Any], classes: PodClasses, readings: dict[str, Any] | None = None,
        merged: MergedPoints | None = None,
    ) -> None:  # fmt: skip
        self.terms, self.classes = plan.node_terms, classes
        self.feasible = np.zeros(len(columns["cpu_cap"]), np.uint8)
        self._seen = columns, readings or {}
        self._merged = merged or MergedPoints()

    @cached_property
    def nodes(self) -> Any:
        """The inputs of scorers: columns that follow the state of the nodes."""
        columns, readings = self._seen
        seen = {"cpu_milli": "cpu_cap", "cpu_free": "cpu_left", "memory_mib": "mem_cap", "memory_free": "mem_left",
                "num_gpu": "num_gpu", "gpu_free": "gpu_left", "gpu_model": "model", "pods": "pods"}  # fmt: skip
        views = {name: columns[column] for name, column in seen.items()} | {"feasible": self.feasible} | readings
        return type("Nodes", (), read_only(views))()

    def request(self, cls: int) -> PodRequest:
        """The request of pods of this class."""
        cpu_milli, memory_mib, num_gpu, gpu_milli, models = self.classes.row(cls).item()
        names, conditions = self.classes.model_lists[models], self.classes.conditions[models]
        return PodRequest(
            cpu_milli=cpu_milli,
            memory_mib=memory_mib,
            num_gpu=num_gpu,
            gpu_milli=gpu_milli,
            gpu_models=names,
            conditions=conditions,
        )

    def __call__(self, term: int, cls: int) -> Any:
        """Integer points of every node from the scorer of one term, for a pod of one class."""
        scorer = self.terms[term].scorer
        assert scorer is not None
        interrupts.check()
        points = self._points(self._answer(scorer, cls), scorer)
        return np.ascontiguousarray(self._rounded(points, scorer) if points.dtype.kind == "f" else points, np.int64)

    def _answer(self, scorer: Any, cls: int) -> Any:
        """The points of the user's function; a failure in it is a PolicyError that names function, file and line."""
        try:
            return scorer(self.nodes, self.request(cls))
        except FastsimError:
            raise
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            found = f"{type(error).__name__}: {error} ({last.filename}:{last.lineno})"
            do = "the function is not part of fastsim; --debug or FASTSIM_TRACEBACK=1 shows all of its traceback"
            raise PolicyError(f"scorer {_name(scorer)}", found, "points of every node", do) from error

    def _points(self, answer: Any, scorer: Any) -> Any:
        """The answer as an array of a number for each node that has them all."""
        points = answer
        if type(answer) is not np.ndarray:
            with suppress(Exception):  # an object of the user's may fail in any way
                points = np.asarray(answer)
        shape, kind = getattr(points, "shape", None), getattr(getattr(points, "dtype", None), "kind", "")
        wide = kind == "u" and points.size and int(points.max()) > MOST_INTEGER
        if shape != self.feasible.shape or kind not in tuple("iubf") or wide or np.ma.is_masked(answer):
            found = f"points up to {points.max()}" if wide else kind_of(answer if kind in ("", "O") else points)
            found = "an array with masked values" if np.ma.is_masked(answer) else found
            raise PolicyError(f"scorer {_name(scorer)}", found, f"{len(self.feasible)} numbers, one for every node")
        return points

    def _rounded(self, points: Any, scorer: Any) -> Any:
        """The nearest whole numbers, halves to the even one; of nodes that cannot host the pod any number will do."""
        refused = (self.feasible != 0) & ~(np.abs(points) < MOST_POINTS)
        if refused.any():
            node = int(np.argmax(refused))
            expected = f"numbers between -{MOST_POINTS:g} and {MOST_POINTS:g} for nodes that can host the pod"
            raise PolicyError(f"scorer {_name(scorer)}", f"{points[node]} for the node at position {node}", expected)
        here = self.feasible != 0
        whole = np.rint(np.where(here, points, 0.0))
        self._merged.note(scorer, points[here], whole[here])
        return whole


def _name(scorer: Any) -> str:
    return f"{getattr(scorer, '__module__', '?')}:{getattr(scorer, '__qualname__', type(scorer).__qualname__)}"

"""Minimum-cost matching of jobs with places in the queues of GPUs; the heads of the queues run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fastsim.engine.shares.plan import Allocation, Floats, Ints, RoundView
from fastsim.errors import PolicyError
from fastsim.policies.allocators.fifo_queues import still_held
from fastsim.policies.allocators.munkres import munkres_matching

NO_RATE = 1e-10
"""Steps/s of a model on which a job cannot run, in the original's matrix."""
Matching = Callable[[Floats], tuple[Ints, Ints]]


class MatchedPlaces:
    """A job that started keeps its GPU model; the others are matched anew whenever GPUs are free.

    The k-th place from the end of a queue costs k times the job's duration, which enters the sum of completion times
    so often. Without ``compat`` the matrix has, of each model, only the places that m jobs can need if they all
    went there (its GPUs share them evenly), because a job on a place further from the end would cost more; of the
    jobs on a model the shortest start. Jobs that run on none of the models with free GPUs are left out.
    """

    def __init__(self, alpha: float, compat: bool, munkres: bool = False) -> None:
        self._alpha, self._compat = alpha, compat
        self._matched: Matching = munkres_matching if munkres else _matched
        self._model: dict[int, int] = {}

    def allocate(self, view: RoundView) -> Allocation | None:
        """1 on the model that a job holds, 0 elsewhere; None without jobs."""
        if (view.num_gpu > 1).any():
            job = int((view.num_gpu > 1).argmax())
            request = f"job {view.job_id[job]} on {view.num_gpu[job]} GPUs"
            raise PolicyError("policy allox", request, "jobs on 1 GPU", "choose another policy for this workload")
        if not len(view):
            return None
        ids, free = view.job_id.tolist(), view.setting.gpus__g.tolist()
        self._model = still_held(self._model, dict.fromkeys(ids, 1), free)
        free__g = np.array(free, np.int64)
        waiting = np.array([row for row, job in enumerate(ids) if job not in self._model], np.int64)
        if len(waiting) and free__g.sum():
            rows, model = self._started(view, waiting, free__g)
            self._model.update(zip(view.job_id[rows].tolist(), model.tolist(), strict=True))
        share__jg = np.zeros((len(view), len(free__g)))
        held = np.array([self._model.get(job, -1) for job in ids])
        share__jg[held >= 0, held[held >= 0]] = 1.0
        return Allocation.of_singles(view.job_id, share__jg)

    def state(self) -> dict[str, Any]:
        """The model of each job that started."""
        return {"model": [[job, model] for job, model in self._model.items()]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self._model = dict(state["model"])

    def _started(self, view: RoundView, waiting: Ints, free__g: Ints) -> tuple[Ints, Ints]:
        """Rows of the jobs that start now, and their models."""
        age_s = (view.now_s - view.submit_s)[waiting]
        oldest = waiting[np.argsort(-age_s, kind="stable")]
        if not self._compat:
            oldest = oldest[(view.rate__jg[oldest][:, free__g > 0] > 0).any(axis=1)]
        rows = oldest[: max(int(self._alpha * len(oldest)), int(free__g.sum()))]
        if not len(rows):
            return rows, rows
        started = _heads_of_all_places if self._compat else _shortest
        return started(view, rows, free__g, self._matched)


def _matched(cost: Floats) -> tuple[Ints, Ints]:
    """Rows and columns of the matching with the smallest sum of costs."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(cost)
    return rows, columns


def _heads_of_all_places(view: RoundView, rows: Ints, free__g: Ints, matched: Matching) -> tuple[Ints, Ints]:
    """The original's matrix: m places of each free GPU, those of one k side by side; the largest k of a GPU starts."""
    gpu_model = np.repeat(np.arange(len(free__g)), free__g)
    rate = view.rate__jg[rows][:, gpu_model]
    once_s = view.steps_left[rows][:, None] / np.where(rate > 0, rate, NO_RATE)
    times = np.arange(1, len(rows) + 1)
    age_s = (view.now_s - view.submit_s)[rows]
    cost = (times[:, None] * once_s[:, None, :]).reshape(len(rows), -1) + age_s[:, None]
    job, place = matched(cost)
    k, gpu = np.divmod(place, len(gpu_model))
    order = np.lexsort((-k, gpu))
    first = order[np.unique(gpu[order], return_index=True)[1]]
    return rows[job[first]], gpu_model[gpu[first]]


def _shortest(view: RoundView, rows: Ints, free__g: Ints, matched: Matching) -> tuple[Ints, Ints]:
    """The same optimum with as few places as there can be; ages move all costs of a job alike and are left out."""
    rate__jg = view.rate__jg[rows]
    with np.errstate(divide="ignore"):
        once_s = np.where(rate__jg > 0, view.steps_left[rows][:, None] / rate__jg, np.inf)
    # A job that comes after longer ones takes a later place without moving them: the matching is found 2 to 4 times
    # sooner in this order.
    longest = np.argsort(-once_s.min(axis=1), kind="stable")
    rows, once_s = rows[longest], once_s[longest]
    models = np.flatnonzero(free__g)
    place_model = np.repeat(models, len(rows))
    times = np.concatenate([np.arange(len(rows)) // free__g[model] + 1 for model in models])
    job, place = matched(once_s[:, place_model] * times)
    model = place_model[place]
    duration_s = once_s[job, model]
    order = np.lexsort((rows[job], duration_s, model))
    nth = np.arange(len(order)) - np.searchsorted(model[order], model[order])
    start = order[nth < free__g[model[order]]]
    return rows[job[start]], model[start]

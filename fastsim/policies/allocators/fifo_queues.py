"""First come, first served, as shares: all of a job's time on one GPU model, or none."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from fastsim.engine.shares.plan import Allocation, Floats, Ints, RoundView
from fastsim.policies.allocators.equal_shares import singles_and_pairs
from fastsim.policies.allocators.partners import draw_state, draws_from

if TYPE_CHECKING:
    from fastsim.performance.oracle import Oracle

LEAST_GAIN = 1.5
"""A waiting job joins a running one if rate together / rate alone, summed over both, is above this."""


class HeldQueue:
    """Every job keeps its model until it ends; the model is drawn, rates are not known.

    With ``compat`` the model taken is always the last one in the list of models with room, even if full; the draw
    only decides which model leaves that list once one is full. A job that ended passes its model to the head of the
    queue before the GPUs of later jobs are counted.
    """

    def __init__(self, seed: int, compat: bool) -> None:
        self._compat = compat
        self._draws = Random(seed)
        self._model: dict[int, int] = {}

    def allocate(self, view: RoundView) -> Allocation | None:
        """1 on the model that a job holds, 0 elsewhere; None without jobs."""
        if not len(view):
            return None
        row = {job: row for row, job in enumerate(view.job_id.tolist())}
        queue = deque(place for job, place in row.items() if job not in self._model)
        free = self._pass_models_on(view, row, queue) if self._compat else self._free_gpus(view, row)
        fill = self._fill_last if self._compat else self._fill_drawn
        fill(view, free, queue)
        share__jg = np.zeros((len(view), len(free)))
        for job, model in self._model.items():
            share__jg[row[job], model] = 1.0
        return Allocation.of_singles(view.job_id, share__jg)

    def state(self) -> dict[str, Any]:
        """The model of each job, and the state of the draws."""
        return {"model": [[job, model] for job, model in self._model.items()], "draws": draw_state(self._draws)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self._model = dict(state["model"])
        self._draws = draws_from(state["draws"])

    def _free_gpus(self, view: RoundView, row: dict[int, int]) -> list[int]:
        """GPUs left of each model, once jobs that ended or lost their GPUs are dropped."""
        free: list[int] = view.setting.gpus__g.tolist()
        self._model = still_held(self._model, {job: int(view.num_gpu[place]) for job, place in row.items()}, free)
        return free

    def _fill_drawn(self, view: RoundView, free: list[int], queue: deque[int]) -> None:
        rate__jg = view.rate__jg
        while queue:
            job = queue.popleft()
            gpus, rate__g = int(view.num_gpu[job]), rate__jg[job].tolist()
            fitting = [model for model, left in enumerate(free) if left >= gpus and rate__g[model] > 0]
            if not fitting:
                return
            model = fitting[self._draws.randrange(len(fitting))]
            self._model[int(view.job_id[job])] = model
            free[model] -= gpus

    def _pass_models_on(self, view: RoundView, row: dict[int, int], queue: deque[int]) -> list[int]:
        """Give the models of jobs that ended to the head of the queue; GPUs left, below 0 where a model is overfull."""
        free: list[int] = view.setting.gpus__g.tolist()
        rate__jg = view.rate__jg
        for job in sorted(self._model):
            model = self._model[job]
            if job in row:
                free[model] -= int(view.num_gpu[row[job]])
                continue
            del self._model[job]
            if queue and view.num_gpu[queue[0]] <= free[model] and rate__jg[queue[0], model] > 0:
                head = queue.popleft()
                self._model[int(view.job_id[head])] = model
                free[model] -= int(view.num_gpu[head])
        return free

    def _fill_last(self, view: RoundView, free: list[int], queue: deque[int]) -> None:
        listed = [model for model, left in enumerate(free) if left > 0]
        rate__jg = view.rate__jg
        while queue and listed:
            job = queue.popleft()
            gpus, last = int(view.num_gpu[job]), listed[-1]
            fitting = [place for place, model in enumerate(listed) if free[model] >= gpus]
            if not fitting:
                return
            drawn = fitting[self._draws.randrange(len(fitting))]
            if rate__jg[job, last] > 0:
                self._model[int(view.job_id[job])] = last
                free[last] -= gpus
                if free[last] == 0:
                    del listed[drawn]


def still_held(models: Mapping[int, int], num_gpu: Mapping[int, int], free: list[int]) -> dict[int, int]:
    """The model of each job that holds one still, in order of their starts; their GPUs are taken from ``free``.

    A job that is not in ``num_gpu`` has ended. Where nodes have gone, the jobs that started last wait again.
    """
    held = {}
    for job, model in models.items():
        if job in num_gpu and free[model] >= num_gpu[job]:
            held[job] = model
            free[model] -= num_gpu[job]
    return held


class FastestQueue:
    """Jobs take the fastest model with room, by arrival, anew each time; ``packed``: waiting jobs join running ones.

    With ``compat`` the first job that fits on no model joins none unless every GPU is taken.
    """

    def __init__(self, packed: bool, compat: bool = False) -> None:
        self._packed, self._compat = packed, compat
        self._fastest: dict[int, list[tuple[int, bool]]] = {}
        """By kind of job: models from the fastest on, and whether it runs there; among equals the first."""
        self._rates: Oracle | None = None
        """The rates that they are ranked by; others where a model has no GPU for a time."""

    def allocate(self, view: RoundView) -> Allocation | None:
        """1 on the model of a job or of a pair, 0 elsewhere; None without jobs."""
        if not len(view):
            return None
        model, waiting = self._fastest_with_room(view)
        pairs = _joined(view, model, waiting) if self._packed else []
        share__jg = np.zeros((len(view), len(view.setting.gpus__g)))
        share__jg[list(model), list(model.values())] = 1.0
        share__pg = np.zeros((len(pairs), share__jg.shape[1]))
        for pair, (host, guest) in enumerate(pairs):
            share__pg[pair] = share__jg[host]
            share__jg[[host, guest]] = 0.0
        return singles_and_pairs(view.job_id, share__jg, pairs, share__pg)

    def state(self) -> dict[str, Any]:
        """No state."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """No state to restore."""

    def _fastest_with_room(self, view: RoundView) -> tuple[dict[int, int], range]:
        """Model of each row that got one, and the rows that may join others."""
        free: list[int] = view.setting.gpus__g.tolist()
        model: dict[int, int] = {}
        if self._rates is not view.setting.oracle:
            self._rates, self._fastest = view.setting.oracle, {}
        for job, (kind, gpus) in enumerate(zip(view.kind.tolist(), view.num_gpu.tolist(), strict=True)):
            for place, runs in self._fastest.get(kind) or self._ranked(view, kind):
                if free[place] >= gpus and free[place]:
                    if runs:
                        model[job] = place
                        free[place] -= gpus
                    break
            else:
                return model, range(job + (self._compat and any(free)), len(view))
        return model, range(len(view), len(view))

    def _ranked(self, view: RoundView, kind: int) -> list[tuple[int, bool]]:
        rate__g = view.setting.oracle.alone__kg[kind].tolist()
        order = sorted(range(len(rate__g)), key=lambda place: -rate__g[place])
        self._fastest[kind] = [(place, rate__g[place] > 0) for place in order]
        return self._fastest[kind]


def _joined(view: RoundView, model: dict[int, int], waiting: range) -> list[tuple[int, int]]:
    """Pairs (running row, waiting row), up to the first waiting job that gains too little with every running one."""
    hosts, pairs = np.array(list(model), np.int64), []
    for guest in waiting:
        same_size = hosts[view.num_gpu[hosts] == view.num_gpu[guest]]
        if not len(same_size):
            break
        gain = _gain(view, same_size, guest, np.array([model[host] for host in same_size.tolist()], np.int64))
        best = int(gain.argmax())
        if not gain[best] > LEAST_GAIN:
            break
        pairs.append((int(same_size[best]), guest))
        hosts = hosts[hosts != same_size[best]]
    return pairs


def _gain(view: RoundView, hosts: Ints, guest: int, model: Ints) -> Floats:
    """Rate together over rate alone, summed over both, of ``guest`` with each of ``hosts`` on the host's model."""
    guests, each = np.full(len(hosts), guest), np.arange(len(hosts))
    rate__hg, rate__gg = view.pair_rates(hosts, guests)
    alone__jg = view.rate__jg
    # A job that cannot run on a model alone, or was not measured there with the other, gains nothing.
    gain: Floats = np.zeros(len(hosts))
    for together, alone in ((rate__hg, alone__jg[hosts, model]), (rate__gg, alone__jg[guest, model])):
        gain += np.divide(np.nan_to_num(together[each, model]), alone, out=np.zeros(len(hosts)), where=alone > 0)
    return gain

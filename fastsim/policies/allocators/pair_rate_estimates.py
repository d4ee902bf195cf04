"""Estimated rates of pairs: each job is matched with the reference workload whose profile is most alike.

A profile is completed from a few measurements by probabilistic matrix factorisation (Mnih and Salakhutdinov, NIPS
2007), fitted by alternating least squares.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np

from fastsim.engine.rounds.options import Setting
from fastsim.engine.shares.plan import Floats, Ints, RoundView
from fastsim.errors import PolicyError
from fastsim.policies.allocators.partners import draw_state, draws_from

RANK = 10
"""Columns of each factor."""
RIDGE = 1e-2
"""Weight of the squared norm of the factors in the fit."""
MOST_ROUNDS = 100
"""Rounds of alternating fits at most."""
SETTLED = 1e-3
"""Norm of the change of a round, divided by the number of entries, below which no further round is made."""


class Estimates:
    """The reference workload of each job, and the pairs whose true rates were observed.

    The engine calls ``arrive`` for every job in order of ids, ``observe`` when a pair has run and ``leave`` when a
    job has ended; ``view.pair_rates`` returns the estimated rates.
    """

    def __init__(
        self, setting: Setting, workloads: Sequence[str], references: int, profiled: float, column_bug: bool
    ) -> None:
        self._draws = Random(setting.seed + 4)  # its neighbours seed the job generator and the shuffle of models
        self._normals = np.random.RandomState(setting.seed % 2**32)
        self._profiled, self._column_bug = profiled, column_bug
        kinds = [setting.oracle.kind_index[workload, 1] for workload in workloads]
        self._kinds = kinds
        places = {(workload, 1): place for place, workload in enumerate(workloads)}
        # Jobs that accept some GPU models only are kinds of their own, with the profile of the others.
        self._place = {k: places[kind] for k, kind in enumerate(setting.oracle.kinds) if kind in places}
        self.names = tuple(workloads)
        self.profile__kgk = _profiles(setting, kinds)
        self.reference = sorted(self._draws.sample(range(len(kinds)), references))
        """Places of the reference workloads in ``names``."""
        self._reference__rgr = self.profile__kgk[self.reference][:, :, self.reference]
        self._alike: dict[int, int] = {}
        self._observed: dict[tuple[int, int], set[int]] = {}

    def __str__(self) -> str:
        """Parameters and reference workloads; a checkpoint compares them."""
        names = hashlib.sha256("\n".join(self.names).encode()).hexdigest()[:8]
        bug = ", column bug" if self._column_bug else ""
        return f"{self._profiled:g} of {len(self.reference)} references of {len(self.names)} workloads {names}{bug}"

    def arrive(self, job: int, kind: int) -> int:
        """Measure a new job with a drawn part of the references on every model, and match it.

        Returns the kind of the matched reference. A job that arrives again keeps its match.
        """
        if job in self._alike:
            return self._kinds[self.reference[self._alike[job]]]
        if kind not in self._place:
            raise PolicyError("estimator", f"job {job} of a kind without a profile", "known workloads on 1 GPU")
        width = self._reference__rgr[0].size
        drawn = [self._draws.random() <= self._profiled for _ in range(width)]
        profile__gk = self.profile__kgk[self._place[kind]]
        # The original counts columns as if there were no workloads but the references.
        true = profile__gk.ravel()[:width] if self._column_bug else profile__gk[:, self.reference].ravel()
        self._alike[job] = self._most_alike(true, np.array(drawn))
        return self._kinds[self.reference[self._alike[job]]]

    def observe(self, job_a: int, job_b: int, model: int) -> None:
        """Both jobs have run together on the model with this position: its true rates are known from now on."""
        self._observed.setdefault((min(job_a, job_b), max(job_a, job_b)), set()).add(model)

    def leave(self, job: int) -> None:
        """Drop a job that has ended."""
        self._alike.pop(job, None)
        for pair in [pair for pair in self._observed if job in pair]:
            del self._observed[pair]

    def alike(self, job: int) -> str:
        """The reference workload that the job is matched with."""
        return self.names[self.reference[self._alike[job]]]

    def __call__(self, view: RoundView, first: Ints, second: Ints) -> tuple[Floats, Floats]:
        """Estimated rates of the jobs in rows ``first`` and ``second`` while they share, one row a pair, steps/s."""
        for job, kind in zip(view.job_id.tolist(), view.kind.tolist(), strict=True):
            self.arrive(job, kind)
        alike = np.array([self._alike[job] for job in view.job_id.tolist()], np.int64)
        profile__rrg, alone__jg = self._reference__rgr.swapaxes(1, 2), view.rate__jg
        one = profile__rrg[alike[first], alike[second]] * alone__jg[first]
        two = profile__rrg[alike[second], alike[first]] * alone__jg[second]
        shared, a, b = view.setting.oracle.shared__kkg, view.kind[first], view.kind[second]
        observed = self._observed_on(view, first, second)
        return np.where(observed, shared[a, b], one), np.where(observed, shared[b, a], two)

    def state(self) -> dict[str, Any]:
        """The match of each job, the pairs observed, and the states of both streams of draws."""
        name, words, *place = self._normals.get_state(legacy=True)
        return {
            "alike": [[job, place] for job, place in self._alike.items()],
            "seen": [[one, two, sorted(models)] for (one, two), models in self._observed.items()],
            "draws": draw_state(self._draws),
            "normals": [name, [int(word) for word in words], *place],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self._alike = dict(state["alike"])
        self._observed = {(one, two): set(models) for one, two, models in state["seen"]}
        self._draws = draws_from(state["draws"])
        name, words, *place = state["normals"]
        self._normals.set_state((name, np.array(words, np.uint32), *place))

    def _most_alike(self, true: Floats, drawn: Any) -> int:
        """The reference whose profile has the least cosine distance from the completed one; the first of equals."""
        references = self._reference__rgr.reshape(len(self.reference), -1)
        row = np.where(drawn, true, 0.0)
        if not drawn.all():
            measured = np.vstack([np.ones_like(references), drawn])
            estimate = completed(np.vstack([references, row]), measured, self._normals)[-1]
            row = np.where(drawn, true, np.clip(estimate, 0.0, 1.0))
        length, norm = np.linalg.norm(references, axis=1), np.linalg.norm(row)
        if norm == 0 or not length.any():
            return self._draws.randrange(len(self.reference))
        cosine = np.divide(references @ row, length * norm, out=np.full(len(length), -np.inf), where=length > 0)
        return int((1.0 - cosine).argmin())

    def _observed_on(self, view: RoundView, first: Ints, second: Ints) -> Any:
        """Whether each pair of rows has run together, on each model."""
        row = {job: row for row, job in enumerate(view.job_id.tolist())}
        observed = np.zeros((len(first), len(view.setting.gpu_models)), bool)
        known = [(row[a], row[b], models) for (a, b), models in self._observed.items() if a in row and b in row]
        if not known:
            return observed
        order = np.lexsort((np.maximum(first, second), np.minimum(first, second)))
        pair_key = (np.minimum(first, second) * len(view) + np.maximum(first, second))[order]
        for one, two, models in known:
            key = one * len(view) + two
            rows = order[np.searchsorted(pair_key, key) : np.searchsorted(pair_key, key, side="right")]
            observed[rows[:, None], np.array(sorted(models))] = True
        return observed


def _profiles(setting: Setting, kinds: Sequence[int]) -> Floats:
    """Rate together over rate alone of each of ``kinds`` on each model with each other; 0 where it is not known."""
    alone__kg = setting.oracle.alone__kg[kinds]
    shared__kgk = setting.oracle.shared__kkg[np.ix_(kinds, kinds)].swapaxes(1, 2)
    divisor = np.broadcast_to(alone__kg[:, :, None], shared__kgk.shape)
    profile = np.divide(shared__kgk, divisor, out=np.zeros_like(shared__kgk), where=divisor > 0)
    return np.nan_to_num(profile)


def completed(known: Floats, measured: Floats, draws: np.random.RandomState) -> Floats:
    """A product of two matrices of rank 10 that is near ``known`` where ``measured`` is 1; other entries are ignored.

    Both start as standard normal numbers of ``draws``; each is fitted in turn to the other with a ridge of 0.01.
    """
    rows, columns = known.shape
    row_factor: Floats = draws.randn(rows, RANK)
    column_factor: Floats = draws.randn(columns, RANK)
    before: Floats = row_factor @ column_factor.T
    for _ in range(MOST_ROUNDS):
        row_factor = _fitted(column_factor, known, measured)
        column_factor = _fitted(row_factor, known.T, measured.T)
        after: Floats = row_factor @ column_factor.T
        if np.linalg.norm(after - before) / rows / columns < SETTLED:
            break
        before = after
    return after


def _fitted(factor: Floats, known: Floats, measured: Floats) -> Floats:
    """For each row of ``known`` the weights of ``factor`` that come nearest to its measured entries."""
    squares = (factor[:, :, None] * factor[:, None, :]).reshape(len(factor), -1)
    normal = (measured @ squares).reshape(-1, RANK, RANK) + RIDGE * np.eye(RANK)
    weights = np.linalg.solve(normal, ((measured * known) @ factor)[:, :, None])
    return np.asarray(weights[:, :, 0], np.float64)

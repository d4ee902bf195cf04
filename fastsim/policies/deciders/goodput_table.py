"""Rows of normalised goodput: of many jobs by a compiled kernel, of one job in Python.

The goodput of a job is known on GPU models it has run on: measured, projected from fewer GPUs, or that of one GPU to
begin with. On another model it is the goodput of a known model times the ratio of their rates on one GPU. In a row
the worst configuration has the value 1, or the number of GPUs of one replica if jobs are made of pipelines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fastsim.engine.adaptive.plan import AdaptiveSetting, JobView, SpeedEstimate
from fastsim.errors import InputError
from fastsim.performance.applications.application import Application
from fastsim.performance.goodput import BatchLimits, Goodput, Noise
from fastsim.policies.deciders.configurations import Configurations, NodeShape
from fastsim.policies.deciders.sia_program import Flags, Ints, Singles
from fastsim_ext.adaptive import goodput_table as kernels

NEVER = 1 << 40
"""GPUs of a replica on a model on which a job cannot run: no configuration has so many."""
CACHED_ROWS = 1 << 16
"""Rows kept for the next rounds: most jobs have measured nothing new, and jobs of one kind and age share a row."""
UNKNOWN = Noise(0.0, 0.0, 1)
LEAST = 1e-4
"""Goodput of configurations that a job cannot have or has no estimate for; every other goodput is larger."""
MOST_REPLICAS = 64
"""No job has more replicas than this."""


class ModelKnowledge(NamedTuple):
    """All that a row depends on."""

    app: str
    mode: str
    batch: int
    num_gpu: int
    noise: Noise | None
    estimate__g: tuple[SpeedEstimate | None, ...]


@dataclass
class GoodputTable:
    """Rows of goodput.

    With ``project`` goodput on models a job has not run on is estimated; with ``tuned`` adaptive jobs choose their
    batch sizes.
    """

    setting: AdaptiveSetting
    configurations: Configurations
    project: bool = True
    tuned: bool = True
    known: dict[ModelKnowledge, Singles] = field(default_factory=dict)
    requested: dict[tuple[ModelKnowledge, int], Singles] = field(default_factory=dict)

    def rows(self, jobs: Sequence[JobView]) -> Singles:
        """A row for each job."""
        keys = [self.knowledge(job) for job in jobs]
        if len(self.known) > CACHED_ROWS:
            self.known.clear()
        missing = [key for key in dict.fromkeys(keys) if key not in self.known]
        if missing:
            self.known |= zip(missing, self._computed(missing), strict=True)
        return np.array([self.known[key] for key in keys], np.float32).reshape(len(keys), len(self.configurations))

    def knowledge(self, job: JobView) -> ModelKnowledge:
        """All that the row of this job depends on."""
        request, groups = job.job, range(len(self.setting.groups))
        estimates = tuple(map(job.estimates.get, groups))
        return ModelKnowledge(
            app=request.application,
            mode=request.mode,
            batch=request.batch_size,
            num_gpu=request.num_gpu,
            noise=job.noise,
            estimate__g=estimates,
        )

    def requested_row(self, job: JobView, gpus: int) -> Singles:
        """Goodput of exactly ``gpus`` GPUs of each group, see :func:`requested_row`."""
        key = self.knowledge(job), gpus
        if len(self.requested) > CACHED_ROWS:
            self.requested.clear()
        if key not in self.requested:
            known = [self._known_of(key[0], g, gpus) for g in range(len(self.setting.groups))]
            self.requested[key] = requested_row(known, self.ratio(job.application), self.configurations.groups, gpus)
        return self.requested[key]

    # ------------------------------------------------------------------ many jobs

    def _computed(self, keys: Sequence[ModelKnowledge]) -> Singles:
        count, groups = len(keys), len(self.setting.groups)
        perf, noise = np.zeros((count, groups, 7)), np.array([key.noise or UNKNOWN for key in keys], np.float64)
        for j, key in enumerate(keys):
            for g, estimate in enumerate(key.estimate__g):
                if estimate is not None:
                    perf[j, g] = estimate.perf
        known = [[b is not None and key.noise is not None for b in key.estimate__g] for key in keys]
        rows = np.empty((count, len(self.configurations)), np.float32)
        self._kernel.rows(
            perf, np.array(known, np.uint8), np.array([self._most(key) for key in keys], np.int64), noise,
            np.array([self._position[key.app] for key in keys], np.int64),
            np.array([key.batch for key in keys], np.int64),
            np.array([self._is_tuned(key) for key in keys], np.uint8), rows,
        )  # fmt: skip
        return rows

    @cached_property
    def _position(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.setting.applications)}

    @cached_property
    def _kernel(self) -> kernels.GoodputKernel:
        apps, sizes = self.setting.applications.values(), self.configurations
        groups = range(len(self.setting.groups))
        limits__agp = np.array(list(self._limits.values()), np.int64)
        low, high, stages = (limits__agp[:, :, part].copy() for part in range(3))
        ratio = np.full((len(low), len(groups), len(groups)), np.nan)
        for a, app in enumerate(apps):
            for (c, d), value in self.ratio(app).items():
                ratio[a, c, d] = value
        per_node = np.array([group.gpus_per_node for group in sizes.groups], np.int64)
        return kernels.GoodputKernel(
            sizes.group__q.copy(), sizes.nodes__q.copy(), sizes.gpus__q.copy(), per_node, low, high, stages, ratio
        )

    @cached_property
    def _limits(self) -> dict[str, list[tuple[int, int, int]]]:
        """By application, for each group: samples a GPU takes at once, fewest and most, and the GPUs of a replica."""
        models, apps = [group.gpu_model for group in self.setting.groups], self.setting.applications
        return {name: [_limits_on(app, model) for model in models] for name, app in apps.items()}

    def _most(self, key: ModelKnowledge) -> list[int]:
        """Most replicas on each group; the largest number everywhere if the job projects."""
        app, limits__g, most = self.setting.applications[key.app], self._limits[key.app], []
        for g, estimate in enumerate(key.estimate__g):
            low, _, stages = limits__g[g]
            if stages == NEVER:
                most.append(0)
            elif key.mode != "adaptive":
                most.append(key.num_gpu)
            else:
                most.append(grown_replicas(estimate.most_replicas if estimate else 0, app.max_batch, low))
        return [max(most)] * len(most) if self.project else most

    def _is_tuned(self, key: ModelKnowledge) -> bool:
        return self.tuned and key.mode == "adaptive"

    def ratio(self, app: Application) -> dict[tuple[int, int], float]:
        """Rate of one GPU over that of one GPU of another group, for pairs of groups where both were measured."""
        if not self.project:
            return {}
        rates: dict[int, float] = {}
        for g, group in enumerate(self.setting.groups):
            try:
                rates[g] = app.on(group.gpu_model).one_gpu_rate
            except InputError:  # pipelines need several GPUs: no ratio
                continue
        return {(c, d): rates[c] / rates[d] for c in rates for d in rates if c != d}

    # ------------------------------------------------------------------ one job

    def row_by_hand(self, job: JobView) -> Singles:
        """The row of one job, in Python."""
        key = self.knowledge(job)
        known = [self._known_of(key, g, most) for g, most in enumerate(self._most(key))]
        return goodput_row(known, self.ratio(job.application), self.configurations)

    def _known_of(self, key: ModelKnowledge, group: int, most: int) -> KnownGoodput:
        app, estimate = self.setting.applications[key.app], key.estimate__g[group]
        low, high, stages = self._limits[key.app][group]
        if stages == NEVER:
            return KnownGoodput(None, BatchLimits(app.max_batch, low, high), 0, NEVER)
        limits = BatchLimits(key.batch, low, high, tuned=self._is_tuned(key), float32=True)
        learned = None if estimate is None or key.noise is None else Goodput(estimate.perf, key.noise)
        return KnownGoodput(learned, limits, most, stages)


@dataclass(frozen=True)
class KnownGoodput:
    """Knowledge of a job about one GPU model: its goodput (None if it never ran there), batch limits and size limits.

    ``stages`` is the number of GPUs of one replica, ``max_replicas`` the most replicas the job may have.
    """

    goodput: Goodput | None
    limits: BatchLimits
    max_replicas: int
    stages: int = 1


def _limits_on(app: Application, model: str) -> tuple[int, int, int]:
    """Samples a GPU takes at once, fewest and most, and the GPUs of a replica; no replica where none was measured."""
    if model not in app.steps:
        return 1, 1, NEVER
    return app.on(model).low, app.on(model).high, app.on(model).stages


def grown_replicas(profiled: int, max_batch: int, low: int) -> int:
    """Most replicas a job may have: at most twice as many as it was measured on, and as its largest batch can use."""
    return max(min(max(2 * profiled, 1), MOST_REPLICAS, max_batch // low), 1)


def goodput_row(
    known: Sequence[KnownGoodput], ratio: Mapping[tuple[int, int], float], configurations: Configurations
) -> Singles:
    """Normalised goodput of every configuration; ``known`` and ``ratio`` count the groups of the configurations.

    ``ratio[c, d]`` is the rate of one GPU of group ``c`` over one of ``d``; without it the goodput
    on ``c`` of a job that has run on ``d`` alone is unknown.
    """
    row = np.full(len(configurations), LEAST, np.float32)
    seeded = []
    source = next((d for d, at in enumerate(known) if at.goodput is not None), None)
    for c, (at, span) in enumerate(zip(known, configurations.spans, strict=True)):
        allowed = _allowed(at, configurations.gpus__q[span])
        from_group = c if at.goodput is not None else source
        if from_group is None or not allowed.any() or (from_group != c and (c, from_group) not in ratio):
            continue
        gpus, nodes = configurations.gpus__q[span][allowed], configurations.nodes__q[span][allowed]
        if from_group == c:
            goodput = _goodput(at, nodes, gpus // at.stages)
        else:
            learned = known[from_group]
            per_node = configurations.groups[from_group].gpus_per_node
            nodes = -(-gpus * learned.stages // per_node)
            goodput = _goodput(learned, nodes, gpus) * ratio[c, from_group]
        row[np.arange(span.start, span.stop)[allowed]] = goodput
        seeded.append(c)
    return _normalised(row, known, seeded, configurations)


def requested_row(
    known: Sequence[KnownGoodput], ratio: Mapping[tuple[int, int], float], groups: Sequence[NodeShape], gpus: int
) -> Singles:
    """Normalised goodput of exactly ``gpus`` GPUs of each group, the worst of them 1; 0 where a job cannot have them.

    An unknown goodput counts as the number of GPUs; so do all of them if none is known.
    """
    row, seeded = np.zeros(len(groups), np.float32), np.zeros(len(groups), np.bool_)
    source = next((d for d, at in enumerate(known) if at.goodput is not None), None)
    for c, (at, group) in enumerate(zip(known, groups, strict=True)):
        if gpus > min(group.nodes, group.max_nodes) * group.gpus_per_node or gpus % at.stages:
            continue
        row[c] = gpus
        learned, factor = (c, 1.0) if at.goodput is not None else (source, ratio.get((c, source or 0), math.nan))
        if learned is not None and not math.isnan(factor):
            replicas = gpus // known[learned].stages
            nodes = -(-gpus // groups[learned].gpus_per_node)
            row[c], seeded[c] = _goodput(known[learned], np.array([nodes]), np.array([replicas]))[0] * factor, True
    some = row[seeded & (row > 0)]
    if len(some):
        row[seeded] /= some.min()
    else:
        row[seeded] = gpus
    return row


def _allowed(at: KnownGoodput, gpus__q: Ints) -> Flags:
    """Configurations a job may have on one GPU model."""
    allowed: Flags = (gpus__q <= at.max_replicas * at.stages) & (gpus__q % at.stages == 0)
    return allowed


def _goodput(at: KnownGoodput, nodes: Ints, replicas: Ints) -> npt.NDArray[np.float64]:
    assert at.goodput is not None
    if at.stages > 1:
        return at.goodput.staged(nodes, replicas, at.limits.max_batch, at.stages)
    return at.goodput.best(nodes, replicas, at.limits).goodput


def _normalised(
    row: Singles, known: Sequence[KnownGoodput], seeded: list[int], configurations: Configurations
) -> Singles:
    least, unit = math.inf, 1
    for c in seeded:
        part = row[configurations.spans[c]]
        part = part[part > np.float32(LEAST)]
        if len(part) and float(part.min()) <= least:
            least, unit = float(part.min()), known[c].stages
    scaled = row * np.float32(1.0 / least if math.isfinite(least) else 1.0) * np.float32(unit)
    for c, span in enumerate(configurations.spans):
        if c not in seeded:
            one = np.flatnonzero(configurations.gpus__q[span] == known[c].stages)
            scaled[span.start + one] = known[c].stages
    normalised: Singles = np.maximum(scaled, np.float32(LEAST))
    return normalised

"""Adaptive jobs for tests: small clusters, random workloads, and decisions without a policy."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from fastsim.engine.adaptive.plan import AdaptiveJob, AdaptiveSetting, AdaptiveView, NodeGroup, Place
from fastsim.engine.rounds.options import Setting
from fastsim.performance.applications.family import Applications
from fastsim.performance.oracle import Oracle

APPS = Applications.default()
SMALL = ("bert", "cifar10", "deepspeech2", "yolov3")
"""Applications whose jobs end after some hours on a GPU."""
MOST_GPUS = 8
"""Of a job at random; every batch size keeps so many busy."""


def adaptive_setting(aws: int = 2, dgx: int = 1, rtx: int = 1, round_s: float = 60.0) -> AdaptiveSetting:
    """A cluster with so many nodes of 4, 8 and 8 GPUs."""
    sizes = {"aws": (4,) * aws, "dgx-ext": (8,) * dgx, "rtx": (8,) * rtx}
    first, groups = 0, []
    for model, gpus in sizes.items():
        if not gpus:
            continue
        groups.append(NodeGroup(model, gpus, tuple(range(first, first + len(gpus)))))
        first += len(gpus)
    return AdaptiveSetting(tuple(groups), APPS, round_s)


def random_jobs(draw: random.Random, count: int, spread_s: float = 3000.0) -> list[AdaptiveJob]:
    """Jobs of all modes in order of arrival."""
    found = []
    for submit_s in sorted(round(draw.uniform(0, spread_s), 3) for _ in range(count)):
        app = APPS[draw.choice(SMALL)]
        least = MOST_GPUS * max(times.low for times in app.steps.values())
        batch = draw.choice([size for size in app.curve.batches if size >= least])
        mode = draw.choice(("adaptive", "adaptive", "scale-gpus", "rigid"))
        found.append(AdaptiveJob(submit_s, app.name, draw.choice((1, 2, 4)), batch, mode))
    return found


@dataclass
class Whims:
    """Moves jobs at random: most stay, some get other GPUs, some get none."""

    setting: AdaptiveSetting
    draw: random.Random
    places: dict[int, Place] = field(default_factory=dict)
    solver_s: float = 0.0

    def decide(self, view: AdaptiveView) -> Mapping[int, Place]:
        """Places of those that stay, then places of others on what is left."""
        active = {job.id for job in view.jobs}
        self.places = {job: at for job, at in self.places.items() if job in active and self.draw.random() < 0.8}
        free = [list(group.gpus__n) for group in self.setting.groups]
        for place in self.places.values():
            for node in place.nodes:
                free[place.group][node] -= 1
        for job in view.jobs:
            if job.id not in self.places and self.draw.random() < 0.8:
                self._start(job.id, free)
        return dict(self.places)

    def _start(self, job: int, free: list[list[int]]) -> None:
        group = self.draw.randrange(len(free))
        nodes = [node for node, left in enumerate(free[group]) for _ in range(left)]
        wanted = self.draw.choice((1, 1, 2, 3, 4, 6, 8))
        if len(nodes) >= wanted:
            taken = tuple(sorted(self.draw.sample(nodes, wanted)))
            self.places[job] = Place(group, taken)
            for node in taken:
                free[group][node] -= 1


def told_of(setting: AdaptiveSetting) -> Setting:
    """Models and applications as tables of results name them."""
    models, kinds = tuple(group.gpu_model for group in setting.groups), tuple((name, 1) for name in APPS)
    gpus, shape = np.array([group.gpus for group in setting.groups]), (len(kinds), len(models))
    return Setting(
        models, gpus, Oracle(kinds, models, np.ones(shape), np.zeros((len(kinds), *shape))), np.ones(len(kinds))
    )

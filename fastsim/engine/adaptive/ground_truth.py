"""The true performance of applications, as tables of the compiled rounds: training curves, and times of steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from fastsim.engine.adaptive.plan import AdaptiveSetting, Place
from fastsim.performance.applications.application import Application
from fastsim.performance.applications.step_times import MICRO_BATCHES, Placement, placement_of
from fastsim.performance.applications.training_curve import TrainingCurve
from fastsim_ext.adaptive.training_job import PlacedStepTimes, TrainingCurveTable

Measurement = tuple[int, int, int, float, float]
"""Nodes, GPUs, samples of a GPU at once, seconds of a forward and backward pass and of a whole step."""
CACHED_CURVES = 64
"""Number of curves whose tables are cached for further runs."""


@dataclass
class GroundTruth:
    """Training curves and step times of one run; each table is made once."""

    setting: AdaptiveSetting
    curves: dict[str, TrainingCurveTable] = field(default_factory=dict)
    placed: dict[tuple[str, int, Placement], PlacedStepTimes] = field(default_factory=dict)
    most_nodes: dict[tuple[str, int], int] = field(default_factory=dict)
    """Most nodes on which an application was measured, by application and group."""

    def training_curve(self, app: Application) -> TrainingCurveTable:
        """The training curve of an application."""
        if app.name not in self.curves:
            self.curves[app.name] = curve_table(app.curve)
        return self.curves[app.name]

    def measured(self, app: Application, group: int, most: tuple[int, int]) -> list[Measurement]:
        """All measurements of an application on at most so many nodes and GPUs; none of pipelines."""
        model = self.setting.groups[group].gpu_model
        if model not in app.steps or app.on(model).stages > 1:
            return []
        seconds_of = {
            (row.num_nodes, row.num_gpu, int(row.atomic)): (row.step_s - row.sync_s, row.step_s)
            for row in app.on(model).rows
            if row.num_nodes <= most[0] and row.num_gpu <= most[1]
        }
        return [(*key, *seconds) for key, seconds in seconds_of.items()]

    def step_times(self, app: Application, place: Place) -> PlacedStepTimes:
        """Step times of an application on the nodes of a place."""
        model = self.setting.groups[place.group].gpu_model
        if (app.name, place.group) not in self.most_nodes:
            self.most_nodes[app.name, place.group] = app.on(model).max_nodes
        placement = placement_of(place.nodes, self.most_nodes[app.name, place.group])
        key = app.name, place.group, placement
        if key not in self.placed:
            self.placed[key] = placed_step_times(app, model, place.group, placement)
        return self.placed[key]


@lru_cache(maxsize=CACHED_CURVES)
def curve_table(curve: TrainingCurve) -> TrainingCurveTable:
    """A training curve as tables."""
    epochs, batches = range(curve.epochs), curve.batches
    noise = np.array([[curve.gradients(batch, epoch) for batch in batches] for epoch in epochs], np.float64)
    progress = np.array([curve.progress(epoch) for epoch in range(curve.epochs + 1)], np.float64)
    sqr, var = (np.ascontiguousarray(noise[:, :, part]) for part in range(2))
    return TrainingCurveTable(curve, progress, np.array(batches, np.float64), sqr, var)


def placed_step_times(app: Application, gpu_model: str, group: int, placement: Placement) -> PlacedStepTimes:
    """Step times of one placement, with room for every batch size."""
    times = app.on(gpu_model)
    high = times.largest(placement) if times.stages == 1 else times.high
    largest = times.largest_on(sum(placement))
    room = max(high, MICRO_BATCHES) + 1
    return PlacedStepTimes(
        group, placement, times, high, 1 << 40 if largest is None else largest, np.full(room, np.nan), np.zeros(room)
    )

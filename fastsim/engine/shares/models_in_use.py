"""GPU models with GPUs: a run has only these, and its outcome all models of the setting."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fastsim.engine.rounds.options import PriceSource, RoundOptions, Setting
from fastsim.engine.rounds.outcome import RoundOutcome
from fastsim.engine.shares.plan import Floats
from fastsim.errors import InputError

if TYPE_CHECKING:
    from fastsim.performance.oracle import Oracle

Models = tuple[int, ...]
"""Positions of models in a setting, ascending."""


def models_with_gpus(gpus: Sequence[int]) -> Models:
    """The models of which there are GPUs; InputError if there are none."""
    models = tuple(g for g, count in enumerate(gpus) if count > 0)
    if not models:
        raise InputError("cluster", "no GPU that fills a server", "one at least")
    return models


def setting_on(setting: Setting, gpus: Sequence[int], models: Models) -> Setting:
    """The setting with these models and so many GPUs of each."""
    count = np.array([gpus[g] for g in models], np.int64)
    if np.array_equal(count, setting.gpus__g):
        return setting
    names = tuple(setting.gpu_models[g] for g in models)
    oracle = setting.oracle if names == setting.gpu_models else setting.oracle.restricted(names)
    return dataclasses.replace(setting, gpu_models=names, gpus__g=count, oracle=oracle)


class PresentSettings:
    """The setting with the GPUs that are there; no job can run on a model without any."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._oracles: dict[bytes, Oracle] = {}

    def of(self, gpus: Sequence[int]) -> Setting:
        """The setting with so many GPUs of each model."""
        gpus__g = np.array(gpus, np.int64)
        absent__g = gpus__g == 0
        if not absent__g.any():
            return dataclasses.replace(self._setting, gpus__g=gpus__g)
        key = absent__g.tobytes()
        if key not in self._oracles:
            self._oracles[key] = self._setting.oracle.without(absent__g)
        return dataclasses.replace(self._setting, gpus__g=gpus__g, oracle=self._oracles[key])


def options_on(options: RoundOptions, models: Models) -> RoundOptions:
    """The options with prices of these models only."""
    if options.prices is None:
        return options
    return dataclasses.replace(options, prices=PricesOf(options.prices, models))


@dataclass(frozen=True)
class PricesOf:
    """Prices of some of the models."""

    prices: PriceSource
    models: Models

    def at(self, now_s: float) -> Floats:
        """Price of one GPU of each of the models, $/h."""
        return self.prices.at(now_s)[list(self.models)]

    def next_change_s(self, now_s: float) -> float:
        """The next time at which a price may differ, seconds; infinite if never."""
        return self.prices.next_change_s(now_s)


class EveryModel(NamedTuple):
    """Setting, options and GPUs of a run with all models, those without GPUs among them."""

    setting: Setting
    options: RoundOptions
    gpus: tuple[int, ...]

    def widened(self, run: RoundOutcome) -> RoundOutcome:
        """The outcome with all models of the setting; GPUs are numbered as they were, since the others have none."""
        models = models_with_gpus(self.gpus)
        if len(models) < len(self.gpus):
            run.tasks["model"] = np.array(models, np.int32)[run.tasks["model"]]
        return dataclasses.replace(run, setting=self.setting, options=self.options, gpus__g=self.gpus)

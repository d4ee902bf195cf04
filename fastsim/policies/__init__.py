"""Policies: ``fastsim.policies.FGD()``, ``0.9 * FGD() + 0.1 * PWR()``, ``MaxMinFairness(mode="packed")``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastsim.policies.online.best_fit import BestFit as BestFit
    from fastsim.policies.online.dot_product import DotProduct as DotProduct
    from fastsim.policies.online.fgd import FGD as FGD
    from fastsim.policies.online.gpu_clustering import GpuClustering as GpuClustering
    from fastsim.policies.online.gpu_packing import GpuPacking as GpuPacking
    from fastsim.policies.online.pwr import PWR as PWR
    from fastsim.policies.online.random import Random as Random
    from fastsim.policies.online.simon import Simon as Simon
    from fastsim.policies.online.user import PythonScorer as PythonScorer
    from fastsim.policies.registry import describe as describe
    from fastsim.policies.registry import names as names
    from fastsim.policies.registry import parse as parse
    from fastsim.policies.registry import policy as policy
    from fastsim.policies.rounds.allox import Allox as Allox
    from fastsim.policies.rounds.finish_time_fairness import FinishTimeFairness as FinishTimeFairness
    from fastsim.policies.rounds.first_come import Fifo as Fifo
    from fastsim.policies.rounds.gandiva import Gandiva as Gandiva
    from fastsim.policies.rounds.isolated import Isolated as Isolated
    from fastsim.policies.rounds.max_min_fairness import MaxMinFairness as MaxMinFairness
    from fastsim.policies.rounds.max_min_fairness_water_filling import WaterFillingFairness as WaterFillingFairness
    from fastsim.policies.rounds.max_sum_throughput import MaxSumThroughput as MaxSumThroughput
    from fastsim.policies.rounds.min_total_duration import MinTotalDuration as MinTotalDuration
    from fastsim.policies.rounds.optimus import Optimus as Optimus
    from fastsim.policies.rounds.proportional import Proportional as Proportional
    from fastsim.policies.rounds.queueing import DominantShare as DominantShare
    from fastsim.policies.rounds.queueing import FinishTimeRatio as FinishTimeRatio
    from fastsim.policies.rounds.queueing import FirstComeFirstServed as FirstComeFirstServed
    from fastsim.policies.rounds.queueing import LeastAttainedService as LeastAttainedService
    from fastsim.policies.rounds.queueing import RoundRobin as RoundRobin
    from fastsim.policies.rounds.queueing import ShortestRemainingService as ShortestRemainingService
    from fastsim.policies.rounds.queueing import ShortestRemainingTime as ShortestRemainingTime
    from fastsim.policies.rounds.queueing import Tetris as Tetris
    from fastsim.policies.rounds.queueing import Tiresias as Tiresias
    from fastsim.policies.rounds.rotation import Rotation as Rotation
    from fastsim.policies.rounds.sia import Sia as Sia
    from fastsim.policies.rounds.strategy_proof import StrategyProof as StrategyProof

_REGISTRY = ("describe", "names", "parse", "policy")


def __getattr__(name: str) -> Any:
    # A `from fastsim.policies import registry` here would ask this very function for "registry".
    registry = import_module("fastsim.policies.registry")
    if name in _REGISTRY:
        return getattr(registry, name)
    if not name[:1].isupper():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for cls in registry.classes():
        if cls.__name__ == name:
            return cls
    raise AttributeError(f"no policy class {name!r}; fastsim.policies.names() lists the policies")


def __dir__() -> list[str]:
    registry = import_module("fastsim.policies.registry")
    return sorted([*_REGISTRY, "registry", *(cls.__name__ for cls in registry.classes())])

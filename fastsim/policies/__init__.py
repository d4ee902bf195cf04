"""Policies: ``fastsim.policies.FGD()``, ``0.9 * FGD() + 0.1 * PWR()``, ``MaxMinFairness(mode="packed")``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastsim.policies.adaptive.optimus import Optimus as Optimus
    from fastsim.policies.adaptive.planned import Planned as Planned
    from fastsim.policies.adaptive.pollux import Pollux as Pollux
    from fastsim.policies.adaptive.rotation import Rotation as Rotation
    from fastsim.policies.adaptive.served import Served as Served
    from fastsim.policies.adaptive.sia import Sia as Sia
    from fastsim.policies.monitored.exclusive_and_gpushare import Exclusive as Exclusive
    from fastsim.policies.monitored.exclusive_and_gpushare import GpuShare as GpuShare
    from fastsim.policies.monitored.knots import Knots as Knots
    from fastsim.policies.online.best_fit import BestFit as BestFit
    from fastsim.policies.online.by_readings import Coolest as Coolest
    from fastsim.policies.online.by_readings import LeastPower as LeastPower
    from fastsim.policies.online.by_readings import LeastUtilised as LeastUtilised
    from fastsim.policies.online.by_readings import MostFreeMemory as MostFreeMemory
    from fastsim.policies.online.dot_product import DotProduct as DotProduct
    from fastsim.policies.online.fgd import FGD as FGD
    from fastsim.policies.online.gpu_clustering import GpuClustering as GpuClustering
    from fastsim.policies.online.gpu_packing import GpuPacking as GpuPacking
    from fastsim.policies.online.preferred import Preferred as Preferred
    from fastsim.policies.online.pwr import PWR as PWR
    from fastsim.policies.online.python_scorer import PythonScorer as PythonScorer
    from fastsim.policies.online.random import Random as Random
    from fastsim.policies.online.simon import Simon as Simon
    from fastsim.policies.orders import DominantShare as DominantShare
    from fastsim.policies.orders import EarliestDeadline as EarliestDeadline
    from fastsim.policies.orders import FinishTimeRatio as FinishTimeRatio
    from fastsim.policies.orders import FirstComeFirstServed as FirstComeFirstServed
    from fastsim.policies.orders import LeastAttainedService as LeastAttainedService
    from fastsim.policies.orders import OwnOrder as OwnOrder
    from fastsim.policies.orders import RoundRobin as RoundRobin
    from fastsim.policies.orders import ShortestRemainingService as ShortestRemainingService
    from fastsim.policies.orders import ShortestRemainingTime as ShortestRemainingTime
    from fastsim.policies.orders import Tetris as Tetris
    from fastsim.policies.orders import Tiresias as Tiresias
    from fastsim.policies.registry import describe as describe
    from fastsim.policies.registry import names as names
    from fastsim.policies.registry import parse as parse
    from fastsim.policies.registry import policy as policy
    from fastsim.policies.shares.allox import Allox as Allox
    from fastsim.policies.shares.fifo import Fifo as Fifo
    from fastsim.policies.shares.finish_time_fairness import FinishTimeFairness as FinishTimeFairness
    from fastsim.policies.shares.gandiva import Gandiva as Gandiva
    from fastsim.policies.shares.isolated import Isolated as Isolated
    from fastsim.policies.shares.max_min_fairness import MaxMinFairness as MaxMinFairness
    from fastsim.policies.shares.max_sum_throughput import MaxSumThroughput as MaxSumThroughput
    from fastsim.policies.shares.min_total_duration import MinTotalDuration as MinTotalDuration
    from fastsim.policies.shares.proportional import Proportional as Proportional
    from fastsim.policies.shares.strategy_proof import StrategyProof as StrategyProof
    from fastsim.policies.shares.water_filling import WaterFillingFairness as WaterFillingFairness

_REGISTRY = ("describe", "names", "parse", "policy")


def __getattr__(name: str) -> Any:
    # `from fastsim.policies import registry` would call this function again, for "registry".
    registry = import_module("fastsim.policies.registry")
    if name in _REGISTRY:
        return getattr(registry, name)
    if not name[:1].isupper():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    classes = {cls.__name__: cls for cls in registry.classes()}
    if name in classes:
        return classes[name]
    from fastsim.errors import suggestion

    raise AttributeError(
        f"no policy class {name!r}; {suggestion(name, classes) or 'fastsim.policies.names() lists the policies'}"
    )


def __dir__() -> list[str]:
    registry = import_module("fastsim.policies.registry")
    return sorted([*_REGISTRY, "registry", *(cls.__name__ for cls in registry.classes())])

"""fastsim: a GPU-cluster scheduling simulator.

>>> import fastsim as fs
>>> cluster = fs.Cluster.uniform(nodes=4, gpu="T4", gpus=2)
>>> pods = fs.Workload.synth("openb", pods=100, seed=1)
>>> result = fs.simulate(cluster, pods, policy="0.9*fgd + 0.1*pwr")

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastsim import policies as policies
    from fastsim.cluster.cluster import Cluster as Cluster
    from fastsim.errors import FastsimError as FastsimError
    from fastsim.errors import InputError as InputError
    from fastsim.errors import PolicyError as PolicyError
    from fastsim.errors import ResultError as ResultError
    from fastsim.errors import ScenarioError as ScenarioError
    from fastsim.errors import SolverError as SolverError
    from fastsim.explanation import NeverTried as NeverTried
    from fastsim.explanation import explain as explain
    from fastsim.hardware.model_catalog import Catalog as Catalog
    from fastsim.job_charts import job_chart as job_chart
    from fastsim.performance.oracle import Oracle as Oracle
    from fastsim.performance.sensitivity import Sensitivity as Sensitivity
    from fastsim.plots import Comparison as Comparison
    from fastsim.plots import compare as compare
    from fastsim.pool import simulate_pool as simulate_pool
    from fastsim.reporting import Report as Report
    from fastsim.reporting import report as report
    from fastsim.result import Result as Result
    from fastsim.resuming import fork as fork
    from fastsim.resuming import resume as resume
    from fastsim.scenario.prices import Prices as Prices
    from fastsim.scenario.scenario import Scenario as Scenario
    from fastsim.simulation import ColumnIgnored as ColumnIgnored
    from fastsim.simulation import PodTooLarge as PodTooLarge
    from fastsim.simulation import simulate as simulate
    from fastsim.simulation import simulate_many as simulate_many
    from fastsim.stages import Deschedule as Deschedule
    from fastsim.sweep import Sweep as Sweep
    from fastsim.telemetry.telemetry import Telemetry as Telemetry
    from fastsim.workload import Workload as Workload
    from fastsim.workload.typical_pods import TypicalPods as TypicalPods

_HOMES = {
    "hardware.model_catalog": ("Catalog",),
    "cluster.cluster": ("Cluster",),
    "errors": ("FastsimError", "InputError", "PolicyError", "ResultError", "ScenarioError", "SolverError"),
    "explanation": ("NeverTried", "explain"),
    "job_charts": ("job_chart",),
    "performance.oracle": ("Oracle",),
    "plots": ("Comparison", "compare"),
    "pool": ("simulate_pool",),
    "scenario.prices": ("Prices",),
    "reporting": ("Report", "report"),
    "result": ("Result",),
    "resuming": ("fork", "resume"),
    "performance.sensitivity": ("Sensitivity",),
    # A scenario finds all its mistakes only where the floors above have told it what texts mean.
    "simulation": ("ColumnIgnored", "PodTooLarge", "Scenario", "simulate", "simulate_many"),
    "stages": ("Deschedule",),
    "sweep": ("Sweep",),
    "telemetry.telemetry": ("Telemetry",),
    "workload.typical_pods": ("TypicalPods",),
    "workload": ("Workload",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [*sorted(_HOME_OF), "__version__", "policies"]


def __getattr__(name: str) -> Any:
    if name == "policies":
        return import_module("fastsim.policies")
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("fastsim-gpu")
        except PackageNotFoundError:
            return "0+unknown"
    if name not in _HOME_OF:
        raise AttributeError(f"module 'fastsim' has no attribute {name!r}")
    value = getattr(import_module(f"fastsim.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

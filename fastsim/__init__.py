"""fastsim: a GPU-cluster scheduling simulator.

>>> import fastsim as fs
>>> cluster = fs.Cluster.uniform(nodes=4, gpu="T4", gpus=2)
>>> pods = fs.Workload.synth("openb", pods=100, seed=1)
>>> result = fs.simulate(cluster, pods, policy="0.9*fgd + 0.1*pwr")

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

# ``python -m fastsim`` loads this module while the current folder still comes before Python's own modules, so that it
# and ``displays`` load nothing that Python has not loaded before, ``__future__`` included.

from importlib import import_module

from fastsim.foundation.displays import drawn_by

TYPE_CHECKING = False  # for type checkers it is true; to load ``typing`` takes seven times as long as all the rest
if TYPE_CHECKING:
    from typing import Any

    from fastsim import policies as policies
    from fastsim.cluster.cluster import Cluster as Cluster
    from fastsim.decisions.explain import NeverTried as NeverTried
    from fastsim.decisions.explain import explain as explain
    from fastsim.decisions.tenant_usage import tenant_usage as tenant_usage
    from fastsim.decisions.waiting_pods import waiting_pods as waiting_pods
    from fastsim.engine.online.closing_stages import Deschedule as Deschedule
    from fastsim.engine.result import Result as Result
    from fastsim.errors import FastsimError as FastsimError
    from fastsim.errors import InputError as InputError
    from fastsim.errors import PolicyError as PolicyError
    from fastsim.errors import ResultError as ResultError
    from fastsim.errors import ScenarioError as ScenarioError
    from fastsim.errors import SolverError as SolverError
    from fastsim.experiments.many_runs import simulate_many as simulate_many
    from fastsim.experiments.statistics.ranked_runs import stats as stats
    from fastsim.experiments.sweep.sweep import Sweep as Sweep
    from fastsim.hardware.model_catalog import Catalog as Catalog
    from fastsim.performance.oracle import Oracle as Oracle
    from fastsim.performance.sensitivity import Sensitivity as Sensitivity
    from fastsim.reports.comparison import Comparison as Comparison
    from fastsim.reports.comparison import compare as compare
    from fastsim.reports.pairs.paired_jobs import PairedJobs as PairedJobs
    from fastsim.reports.pairs.paired_jobs import paired_jobs as paired_jobs
    from fastsim.reports.plots import job_chart as job_chart
    from fastsim.reports.plots import plot as plot
    from fastsim.reports.report import Report as Report
    from fastsim.reports.report import report as report
    from fastsim.scenario.prices import Prices as Prices
    from fastsim.scenario.scenario import Scenario as Scenario
    from fastsim.simulation.fifo_pool import simulate_pool as simulate_pool
    from fastsim.simulation.resume import fork as fork
    from fastsim.simulation.resume import resume as resume
    from fastsim.simulation.simulate import ColumnIgnored as ColumnIgnored
    from fastsim.simulation.simulate import PodTooLarge as PodTooLarge
    from fastsim.simulation.simulate import simulate as simulate
    from fastsim.telemetry.telemetry import Telemetry as Telemetry
    from fastsim.workload import Workload as Workload
    from fastsim.workload.typical_pods import TypicalPods as TypicalPods

_HOMES = {
    "hardware.model_catalog": ("Catalog",),
    "cluster.cluster": ("Cluster",),
    "errors": ("FastsimError", "InputError", "PolicyError", "ResultError", "ScenarioError", "SolverError"),
    "decisions.explain": ("NeverTried", "explain"),
    "decisions.tenant_usage": ("tenant_usage",),
    "decisions.waiting_pods": ("waiting_pods",),
    "performance.oracle": ("Oracle",),
    "reports.comparison": ("Comparison", "compare"),
    "simulation.fifo_pool": ("simulate_pool",),
    "scenario.prices": ("Prices",),
    "reports.pairs.paired_jobs": ("PairedJobs", "paired_jobs"),
    "reports.plots": ("job_chart", "plot"),
    "reports.report": ("Report", "report"),
    "engine.result": ("Result",),
    "simulation.resume": ("fork", "resume"),
    "performance.sensitivity": ("Sensitivity",),
    # Scenario by way of simulate: that module registers the meaning of texts, without which validation is incomplete.
    "simulation.simulate": ("ColumnIgnored", "PodTooLarge", "Scenario", "simulate"),
    "experiments.many_runs": ("simulate_many",),
    "experiments.statistics.ranked_runs": ("stats",),
    "engine.online.closing_stages": ("Deschedule",),
    "experiments.sweep.sweep": ("Sweep",),
    "telemetry.telemetry": ("Telemetry",),
    "workload.typical_pods": ("TypicalPods",),
    "workload": ("Workload",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [*sorted(_HOME_OF), "__version__", "policies"]


def __getattr__(name: str) -> "Any":
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
    if _HOME_OF[name] != "errors":  # which are there in any process, for those who catch them
        import_module("fastsim.foundation.limits.environment").refuse_unfit()
    value = getattr(import_module(f"fastsim.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def _drawing(shown: "Any", chart: str | None = None, **options: "Any") -> "Any":
    return __getattr__("plot")(shown, chart, **options)


drawn_by(_drawing)  # results and clusters stand below the charts, so the face of the package joins them

"""CPUs, memory and storage of servers, and the demands of jobs for them: the tables of ordered rounds.

==================  ===================================================================================================
workload            needs
==================  ===================================================================================================
with a sensitivity  CPUs, memory and storage of its profile on these servers, with which it is faster than at the fair
                    share; all servers are equal
pods                the CPUs and memory of their requests, which do not change their speed
anything else       GPUs alone; rates by GPU model
==================  ===================================================================================================
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastsim.cluster.server import GB_MIB, STORAGE_MB_S, Server
from fastsim.engine.orders.plan import family
from fastsim.engine.rounds.job_batches import Request, needs_by_kind
from fastsim.errors import InputError, PolicyError, suggestion
from fastsim.performance.sensitivity import Demand, Demands, attached

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.engine.orders.plan import OrderPlan
    from fastsim.engine.rounds.options import Setting
    from fastsim.performance.sensitivity import Sensitivity

Floats = npt.NDArray[np.float64]

RESOURCES = ("cpu_milli", "memory_mib", "storage_mb_s")
"""Columns of the tables below."""


@dataclass(frozen=True, eq=False)
class ServerDemands:
    """Servers in the order of GPU numbers, and kinds of jobs as in the setting's oracle."""

    num_gpu__s: tuple[int, ...]
    cap__sr: Floats
    """By server and resource: milli-CPU, MiB, MB/s."""
    base: tuple[int, ...]
    """First server of each GPU model, and the number of all."""
    need__kr: Floats
    """By kind, for the whole gang; NaN: the kind cannot run here, see ``refused``."""
    size__k: npt.NDArray[np.int32]
    """GPUs."""
    speedup__k: Floats
    """Speed with the demand over speed at the fair share."""
    step_s__kg: Floats
    """By kind and GPU model, seconds of a step at the fair share; 0: cannot run."""
    demands: Demands | None = None
    """The source of needs and speedups, with the whole surfaces."""
    refused: tuple[tuple[int, InputError], ...] = ()
    known: str = "gpus"
    """Knowledge of the jobs' demands: ``gpus``, ``requests`` or ``speedups``."""
    workload__k: tuple[str, ...] = ()
    """Names of the kinds' workloads."""

    @property
    def gpus__g(self) -> tuple[int, ...]:
        """GPUs of each model."""
        return tuple(sum(self.num_gpu__s[a:b]) for a, b in zip(self.base, self.base[1:], strict=False))

    def check(self, plan: OrderPlan) -> None:
        """PolicyError if the mechanism needs more knowledge of the jobs than there is."""
        self.check_names(plan)
        least = {"fair": ("gpus", "requests", "speedups"), "greedy": ("requests", "speedups")}
        allowed = least.get(plan.mechanism, ("speedups",))
        surfaces = () if self.demands is None else self.demands.grids
        if plan.mechanism == "opt" and not any(grid is not None for grid in surfaces):
            allowed = ()
        if self.known not in allowed:
            found = {"gpus": "jobs that only need GPUs", "requests": "pods with fixed requests"}
            raise PolicyError(
                f"mechanism {plan.mechanism}", found.get(self.known, "a sensitivity without a surface"),
                EXPECTED[plan.mechanism],
            )  # fmt: skip

    def check_names(self, plan: OrderPlan) -> None:
        """PolicyError if no workload has one of the names in ``skewed``."""
        if plan.skewed and self.known == "requests":
            raise PolicyError("skewed", "pods, which are of no workload", "jobs with workloads, or place for all")
        known = sorted({*self.workload__k, *map(family, self.workload__k)})
        unknown = [name for name in plan.skewed if name not in known]
        if unknown:
            expected = f"names among {', '.join(known)}"
            raise PolicyError("skewed", repr(unknown[0]), expected, suggestion(unknown[0], known))


EXPECTED = {
    "greedy": "jobs that need CPUs and memory: a sensitivity model (rates='synergy') or pods, or mechanism fair",
    "tune": "a sensitivity model, the gain of jobs from CPUs and memory (rates='synergy'), or another mechanism",
    "opt": "a sensitivity model with the whole surface (rates='synergy'), or another mechanism",
}
"""Requirements of the mechanisms, for error messages."""


def needs_of(
    cluster: Cluster, setting: Setting, sensitivity: Sensitivity | None, requests: list[Request] | None,
    quirks: Collection[str],
) -> ServerDemands:  # fmt: skip
    """The tables of a run; ``requests`` are those of each kind, if its jobs are pods."""
    servers = servers_of(cluster, setting.gpu_models)
    if sensitivity is not None:
        return needs_on(servers, setting, sensitivity, Server.of(cluster.nodes, cluster.name), quirks)
    kinds = len(setting.oracle.kinds)
    need = np.zeros((kinds, len(RESOURCES)))
    if requests is not None:
        need[:, :2] = needs_by_kind(requests)
    rate = setting.oracle.alone__kg
    step_s = np.divide(1.0, rate, out=np.zeros(rate.shape), where=np.nan_to_num(rate) > 0)
    known = "gpus" if requests is None else "requests"
    return ServerDemands(
        *servers, need, sizes(setting), np.ones(kinds), step_s, known=known, workload__k=workloads(setting)
    )


def sizes(setting: Setting) -> npt.NDArray[np.int32]:
    """GPUs of each kind."""
    return np.array([num_gpu for _, num_gpu in setting.oracle.kinds], np.int32)


def workloads(setting: Setting) -> tuple[str, ...]:
    """Names of the kinds' workloads."""
    return tuple(name for name, _ in setting.oracle.kinds)


def servers_of(cluster: Cluster, gpu_models: tuple[str, ...]) -> tuple[tuple[int, ...], Floats, tuple[int, ...]]:
    """GPUs and resources of each node with GPUs, model by model, and where each model begins."""
    nodes = cluster.offered.select(["gpu_model", "num_gpu", "cpu_milli", "memory_mib", "extra_resources"]).to_pylist()
    servers: list[dict[str, Any]] = []
    base = [0]
    for model in gpu_models:
        servers += [node for node in nodes if node["gpu_model"] == model and node["num_gpu"]]
        base.append(len(servers))
    cap = np.array(
        [(n["cpu_milli"], n["memory_mib"], dict(n["extra_resources"] or ()).get(STORAGE_MB_S, 0)) for n in servers],
        np.float64,
    ).reshape(len(servers), len(RESOURCES))
    return tuple(node["num_gpu"] for node in servers), cap, tuple(base)


def needs_on(
    servers: tuple[tuple[int, ...], Floats, tuple[int, ...]], setting: Setting, sensitivity: Sensitivity,
    server: Server, quirks: Collection[str],
) -> ServerDemands:  # fmt: skip
    """The tables of jobs with these sensitivities; every server is like ``server``."""
    kinds, refused, demand__k = setting.oracle.kinds, [], []
    for k, kind in enumerate(kinds):
        try:
            demand = attached(sensitivity.profile(kind[0]), kind[1], server, quirks)
        except InputError as error:  # raised when a job of this kind arrives
            demand = Demand(np.nan, np.nan, np.nan, 1.0)
            refused.append((k, error))
        demand__k.append(demand)
    profiles = [sensitivity.profile(workload) for workload, _ in kinds]
    cpu, memory, storage, speedup = np.array(demand__k, np.float64).reshape(len(kinds), 4).T.copy()
    iteration_s = np.array([p.iteration_s for p in profiles], np.float64)
    demands = Demands(
        kinds=kinds,
        server=server,
        cpu__k=cpu,
        memory_gb__k=memory,
        storage_mb_s__k=storage,
        speedup__k=speedup,
        iteration_s__k=iteration_s,
        grids=tuple(p.grid for p in profiles),
    )
    need = np.column_stack([cpu * 1000, memory * GB_MIB, storage])
    step_s = np.where(setting.oracle.alone__kg == 0, 0.0, iteration_s[:, None])
    return ServerDemands(
        *servers, need, sizes(setting), speedup, step_s, demands, tuple(refused), "speedups",
        workloads(setting),
    )  # fmt: skip

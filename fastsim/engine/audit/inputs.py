"""The inputs of an audit: tables of a run, its cluster and its workload, without code of the engines.

Jobs, stays and nodes look the same for every engine here: a job in rounds has the number of its arrival as its id and
holds whole GPUs, and two jobs that share GPUs have half of each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl
import pyarrow as pa

from fastsim.cluster.node_table import watts
from fastsim.engine.audit.metric_definitions import ROUND_ENGINES
from fastsim.errors import ResultError
from fastsim.hardware.mig import gpu_milli
from fastsim.hardware.node_constraints import further
from fastsim.scenario import run_inputs
from fastsim.scenario.round_texts import window_from
from fastsim.scenario.scenario import Scenario
from fastsim.workload import Workload, texts

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.workload.typical_pods import TypicalPods

MONITORED = "monitored"
"""The engine in which any number of containers share a GPU."""
MARKS = (
    (MONITORED, "jobs", "admitted"), ("adaptive", "summary", "restarts_mean"), ("orders", "summary", "reclaims"),
    ("shares", "summary", "policy_calls"),
)  # fmt: skip
"""Engines by a column that only they have; the first one that is there counts, and pods have none of them."""
WHOLE = 1000
"""Milli-GPU of a device."""
LOST = ("node_lost", "evicted", "preempted")
"""States of pods that had a place and lost it."""
REQUEST = ("cpu_milli", "memory_mib", "gpu_milli")
"""The request of a pod beside its number of GPUs; ``gpu_milli`` is the part of each."""
FURTHER = ("duration_s", "tenant", "job_id", "gang_size", "weight", "total_work", "deadline_s", "near", "spread_sets",
           "after_gang", "bound_node")  # fmt: skip
"""Further columns of a workload that figures use, where it has them."""
ENDS = ("submit_s", "start_s", "end_s")
"""Instants of a job; the last of a run is one of them or an event of the timeline."""
NEEDED = {
    "placements": ("pod_id", "attempt", "node_id", "gpu_ids", "start_s", "end_s", "reason"),
    "jobs": ("pod_id", "submit_s", "state"), "timeline": ("t_s", "event"), "summary": ("makespan_s",),
}  # fmt: skip
"""Columns that an audit needs."""


class RunTables(Protocol):
    """The part of a result that an audit reads: tables and provenance."""

    @property
    def frames(self) -> Mapping[str, pl.DataFrame]:
        """Tables by name."""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Everything that decided the tables."""

    def origin(self, where: str = "result", allow_code: bool = False) -> Scenario:
        """The scenario that was run."""

    @property
    def summary(self) -> pl.DataFrame:
        """One row for the run."""

    @property
    def jobs(self) -> pl.DataFrame:
        """A row for every pod or job."""

    @property
    def placements(self) -> pl.DataFrame:
        """A row for every stay on a node."""

    def require(self, name: str, where: str = "") -> None:
        """ResultError of ``where`` unless the run recorded this table."""


@dataclass(frozen=True)
class Evidence:
    """The tables and inputs of a run, in one form for all engines.

    ``pods`` has a row for each row of ``jobs`` with its request, ``stays`` one for each placement on a node:
    pod_id, attempt, node_id, gpu_ids, start_s, end_s (infinite while it runs), ``milli`` of each GPU, cpu_milli,
    memory_mib and ``share``, the part of its GPUs that a job has. ``nodes`` are rows of the cluster with their watts.
    """

    engine: str
    scenario: Scenario
    summary: dict[str, Any]
    jobs: pl.DataFrame
    timeline: pl.DataFrame
    pods: pl.DataFrame
    stays: pl.DataFrame
    nodes: list[dict[str, Any]]
    typical: TypicalPods
    missing: str
    """The reason why the workload lacks some of the jobs; "" if it has all."""

    @property
    def in_rounds(self) -> bool:
        """Whether the engine is one of rounds."""
        return self.engine in ROUND_ENGINES

    @property
    def allocates_gpus_alone(self) -> bool:
        """Whether GPUs are in use as a whole, even if shared, and CPUs and memory are not allocated."""
        return self.in_rounds or self.engine == MONITORED

    @property
    def first_s(self) -> float:
        """The first arrival, seconds."""
        return first_arrival_s(self.jobs)

    @cached_property
    def last_s(self) -> float:
        """The end of the run, seconds."""
        return last_instant_s(self.jobs, self.timeline, float(self.summary["makespan_s"]))

    @property
    def changing(self) -> str:
        """The reason why nodes change in ways that inputs do not show; "" if they do not."""
        if self.scenario.failures or self.scenario.maintenance:
            return "nodes fail or are maintained"
        if self.in_rounds and any(node[name] is not None for node in self.nodes for name in ("add_s", "remove_s")):
            return "nodes come and go, which rounds see when they begin"
        return "GPUs are partitioned" if any(node["mig"] is not None for node in self.nodes) else ""

    def counted(self) -> pl.DataFrame:
        """Jobs that count, those of the window or all."""
        window = window_from(self.scenario.window)
        return self.jobs if window is None else self.jobs.slice(window[0], window[1] - window[0])


def first_arrival_s(jobs: pl.DataFrame) -> float:
    """The first arrival, 0 without any, seconds."""
    first: Any = jobs["submit_s"].min()
    return 0.0 if first is None else float(first)


def last_instant_s(jobs: pl.DataFrame, timeline: pl.DataFrame, makespan_s: float) -> float:
    """The end of a run, seconds: the instant of its tables that lies a makespan after the first arrival.

    A makespan is a rounded difference, so the sum may miss the instant by a digit. With none there the sum is the end.
    """
    first_s = first_arrival_s(jobs)
    last_s = first_s + makespan_s
    instants: list[Any] = [timeline["t_s"].max(), *(jobs[name].max() for name in ENDS if name in jobs.columns)]
    off_s = 2 * math.ulp(max(abs(first_s), abs(last_s)))
    return max((float(one) for one in instants if one is not None and abs(one - last_s) <= off_s), default=last_s)


def evidence(result: RunTables, scenario: Scenario | None = None) -> Evidence:
    """The run's tables and inputs; ``scenario`` is that of a run whose folder does not keep all of its inputs."""
    result.require("placements", "audit")
    for table, names in NEEDED.items():
        for name in names:
            if name not in result.frames[table].columns:
                raise ResultError(f"audit: {table}: {name}: found no such column, expected the tables of a run")
    scenario = scenario or result.origin("audit", allow_code=True)  # its policy is never made
    cluster, offered, untuned = run_inputs.inputs_from(scenario.cluster, scenario.workload)
    workload = Workload.of(texts.in_memory(offered))
    typical = run_inputs.typical_from(scenario.typical, workload if untuned is offered else untuned, cluster)
    engine = next((name for name, table, column in MARKS if column in result.frames[table].columns), "pods")
    same_inputs(result, cluster, workload)
    requests = workload.table()
    jobs = _by_arrival(result.jobs, requests)
    pods, missing = _pods(engine, jobs, requests)
    return Evidence(
        engine=engine,
        scenario=scenario,
        summary=result.summary.row(0, named=True),
        jobs=jobs,
        timeline=result.frames["timeline"],
        pods=pods,
        stays=_stays(engine, result, pods),
        nodes=_nodes(cluster),
        typical=typical,
        missing=missing,
    )


def _by_arrival(jobs: pl.DataFrame, requests: pa.Table) -> pl.DataFrame:
    """Jobs in order of arrival, those drawn without end last; a folder lists them as they leave."""
    ids = pl.Series("pod_id", requests["pod_id"].to_numpy()).to_frame().with_row_index("arrival")
    return (
        jobs.join(ids, on="pod_id", how="left").sort("arrival", "submit_s", "pod_id", nulls_last=True).drop("arrival")
    )


def same_inputs(result: RunTables, cluster: Cluster, workload: Workload) -> None:
    """ResultError for inputs that have changed since the run."""
    for name, table in (("cluster", cluster), ("workload", workload)):
        if table.checksum() != result.provenance[name]["sha256"]:
            raise ResultError(f"audit: {name}: found other rows than those of the run, expected the same")


def _pods(engine: str, jobs: pl.DataFrame, table: pa.Table) -> tuple[pl.DataFrame, str]:
    """The request of each job of the table, and the reason why the workload lacks some; "" if it has all."""
    requests = pl.DataFrame(pl.from_arrow(table))
    requests = requests.with_columns(demand_milli=pl.Series(demand_milli(table), dtype=pl.Int64))
    if engine in ROUND_ENGINES:
        requests = requests.with_columns(pl.lit(0, pl.Int64).alias(name) for name in REQUEST[:2])
        requests = requests.with_columns(gpu_milli=pl.lit(WHOLE, pl.Int64), demand_milli=WHOLE * pl.col("num_gpu"))
    further_names = [name for name in FURTHER if name in requests.columns]
    requests = requests.select(
        "pod_id", pl.col("submit_s").alias("request_s"), "num_gpu", "demand_milli", *REQUEST, *further_names
    )
    pods = jobs.select("pod_id", "submit_s").join(requests, on="pod_id", how="left", maintain_order="left")
    if not pods["num_gpu"].null_count():
        return pods, ""
    own = pods.with_columns(jobs["num_gpu"], pl.lit(WHOLE, pl.Int64).alias("gpu_milli"))
    own = own.with_columns(
        pl.col(*REQUEST[:2]).fill_null(0), demand_milli=WHOLE * pl.col("num_gpu"), request_s="submit_s"
    )
    return own, "the workload draws jobs without end"


def demand_milli(table: pa.Table) -> list[int]:
    """Milli-GPU of each pod's request, those of instances of partitioned GPUs included."""
    names = [name for name in ("num_gpu", "gpu_milli", "extra_resources", "mig") if name in table.column_names]
    demand = []
    for row in table.select(names).to_pylist():
        instances = gpu_milli(further(row.get("extra_resources"), row.get("mig")))
        demand.append(row["num_gpu"] * row["gpu_milli"] + instances)
    return demand


def _stays(engine: str, result: RunTables, pods: pl.DataFrame) -> pl.DataFrame:
    """Placements on nodes, with the resources they hold; in rounds, running ones end with the run or are given up."""
    held = result.placements.filter(pl.col("node_id").is_not_null()).join(
        pods.select("pod_id", "demand_milli", *REQUEST), on="pod_id", how="left", maintain_order="left"
    )
    last_s = last_instant_s(result.jobs, result.frames["timeline"], result.summary["makespan_s"].item())
    runs_on = (pl.col("reason") == "running") & (pl.col("end_s") >= last_s)
    lasts = runs_on if engine in ROUND_ENGINES else pl.col("end_s").is_null()
    held = held.with_columns(
        end_s=pl.when(lasts).then(float("inf")).otherwise(pl.col("end_s")), reason=pl.col("reason").cast(pl.String)
    )
    if engine == MONITORED:
        nothing = (pl.lit(0, pl.Int64).alias(name) for name in REQUEST[:2])
        whole = pl.lit(WHOLE, pl.Int64)
        return held.with_columns(equal_parts(held, last_s), *nothing, gpu_milli=whole, demand_milli=whole, milli=whole)
    shared = pl.col("mate_id").is_not_null() if "mate_id" in held.columns else pl.lit(False)
    # A job whose mate ends within the round has the GPU alone until the round ends.
    return (
        held.with_columns(
            milli=pl.col("gpu_milli") // pl.when(shared).then(2).otherwise(1),
            pair=shared,
            part=equal_parts(held, last_s),
        )
        .with_columns(share=pl.when("pair").then("part").otherwise(1.0))
        .drop("pair", "part")
    )


def equal_parts(held: pl.DataFrame, last_s: float) -> pl.Series:
    """The part of its GPU that each stay has: 1 over the number of stays there, mean over its time."""
    gpu = pl.struct("node_id", pl.col("gpu_ids").list.first().alias("gpu"))
    stays = held.select(gpu=gpu, start_s="start_s", end_s=pl.col("end_s").clip(upper_bound=last_s))
    moves = pl.concat([stays.select("gpu", t_s=name, more=more) for name, more in (("start_s", 1), ("end_s", -1))])
    change = moves.group_by("gpu", "t_s", maintain_order=True).agg(pl.col("more").sum()).sort("gpu", "t_s")
    counted = pl.col("more").cum_sum().shift(1).over("gpu")
    change = change.with_columns(count=counted, span_s=pl.col("t_s").diff().over("gpu"))
    had_s = pl.when(pl.col("count") > 0).then(pl.col("span_s") / pl.col("count")).otherwise(0.0)
    had = change.select("gpu", "t_s", had_s=had_s.cum_sum().over("gpu"))  # seconds of a stay without begin and end
    for name in ("start_s", "end_s"):
        until = had.rename({"t_s": name, "had_s": f"had_{name}"})
        stays = stays.join(until, on=["gpu", name], how="left", maintain_order="left")
    length = pl.col("end_s") - pl.col("start_s")
    part = (pl.col("had_end_s") - pl.col("had_start_s")) / length
    return stays.select(share=pl.when(length > 0).then(part).otherwise(1.0))["share"]


def _nodes(cluster: Cluster) -> list[dict[str, Any]]:
    """Rows of the nodes, with their watts."""
    drawn = watts(cluster.nodes, cluster.catalog)
    rows: list[dict[str, Any]] = cluster.nodes.to_pylist()
    return [row | draw for row, draw in zip(rows, drawn.to_pylist(), strict=True)]

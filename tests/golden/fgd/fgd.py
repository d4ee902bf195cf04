"""The recorded runs of the FGD simulator: their inputs as ours, their plans as ours, their curves.

Nothing here names a run: folders are listed and described by their own ``summary.json``. The
original breaks ties by node names that carry a random prefix, so a cluster's nodes stand in the
order of those names, and ``node_idx`` remembers each node's number in the recordings.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from fastsim.cluster.cluster import Cluster
from fastsim.engine.online.options import OnlineOptions
from fastsim.engine.online.plan import OnlinePlan, ScoreTerm
from fastsim.engine.online.run import run_online
from fastsim.engine.result import Result
from fastsim.experiments.reproduce.placement_figures import discrete_table
from fastsim.workload import Workload
from fastsim.workload.typical_pods import TypicalPods
from tests.conftest import SHARED

FGD = SHARED / "golden/fgd"
MIB = 1 << 20

TERMS: dict[str, ScoreTerm] = {
    "FGDScore": ScoreTerm("fgd"),
    "PWRScore": ScoreTerm("pwr", normalise="min_max_100"),
    "BestFitScore": ScoreTerm("best_fit", normalise="min_max_0"),
    "DotProductScore": ScoreTerm("dot_product"),
    "GpuPackingScore": ScoreTerm("gpu_packing"),
    "GpuClusteringScore": ScoreTerm("gpu_clustering"),
    "RandomScore": ScoreTerm("random"),
    "SimonScore": ScoreTerm("simon", normalise="min_max_0"),
}
"""The original's score plugins as our terms."""
PICKS = {
    "best": "best", "worst": "worst", "random": "random",
    "FGDScore": "fgd", "PWRScore": "pwr", "DotProductScore": "dot_product",
}  # fmt: skip
"""The original's ways to pick devices as ours."""
METRICS = {
    "used_nodes": "active_nodes", "used_gpus": "active_node_gpus", "used_gpu_milli": "gpu_milli_alloc",
    "arrived_gpu_milli": "arrived_gpu_milli", "used_cpu_milli": "cpu_milli_alloc",
    "arrived_cpu_milli": "arrived_cpu_milli", "power_cpu_w": "power_cpu_w", "power_gpu_w": "power_gpu_w",
}  # fmt: skip
"""Recorded metrics that are whole numbers, and our timeline columns."""
FRAGMENTS = (
    "q1_lack_both", "q2_lack_gpu", "q3_satisfied", "q4_lack_cpu", "xl_satisfied", "xr_lack_cpu", "no_access",
)  # fmt: skip
"""Recorded metrics that are sums over nodes in an unknown order, and our columns of the same name."""


@dataclass(frozen=True)
class PodTable:
    """A pod list as a stream of record batches."""

    frame: pl.DataFrame

    def batches(self) -> Iterable[pa.RecordBatch]:
        """Record batches in file order."""
        batches: list[pa.RecordBatch] = self.frame.to_arrow().to_batches(max_chunksize=4096)
        return batches


@dataclass(frozen=True)
class Inputs:
    """What one run was given: nodes in tie-break order, pods in order of arrival, the untuned trace."""

    trace: str
    seed: int

    @cached_property
    def nodes(self) -> pl.DataFrame:
        """Recorded node rows in the order of their prefixed names."""
        return (_recorded_nodes(self) if _folder(self).exists() else _permuted_nodes(self)).sort("node")

    @cached_property
    def cluster(self) -> Cluster:
        """The nodes as a cluster of ours."""
        columns = self.nodes.select(
            pl.col("node").alias("name"), "cpu_milli", (pl.col("memory_bytes") // MIB).alias("memory_mib"),
            "num_gpu", "gpu_model", "max_pods",
        )  # fmt: skip
        return Cluster(columns.to_arrow(), name=f"{self.trace}-{self.seed}")

    @cached_property
    def pods(self) -> pl.DataFrame:
        """Pods in order of arrival; ``native_id`` is the recorded name."""
        return _recorded_pods(self) if _folder(self).exists() else _ordered_pods(self)

    @cached_property
    def workload(self) -> Workload:
        """The pods one second after another, none of which ever leaves."""
        return Workload.from_arrow(_submitted(self.pods), name=f"{self.trace}-{self.seed}")

    @property
    def typical(self) -> TypicalPods:
        """Typical pods of the untuned trace."""
        return typical(self.trace)


@cache
def inputs(trace: str, seed: int) -> Inputs:
    """Inputs of the runs of one trace and seed."""
    return Inputs(trace, seed)


@cache
def typical(trace: str) -> TypicalPods:
    """Typical pods of an untuned trace."""
    return TypicalPods.of(PodTable(raw_trace(FGD, trace)))


def models(spec: str = "gpu_spec") -> pl.Expr:
    """``A|B`` as the list of accepted models, empty text as null (any model)."""
    return pl.when(pl.col(spec) != "").then(pl.col(spec).str.split("|")).alias("gpu_models")


def raw_trace(folder: Path, trace: str) -> pl.DataFrame:
    """The untuned pod list of a trace, in file order, with ``gpu_models`` as lists."""
    return pl.read_parquet(folder / "inputs" / "traces" / f"{trace}.parquet").with_columns(models())


def _folder(run: Inputs) -> Path:
    return FGD / "inputs" / f"{run.trace}-seed{run.seed}"


def _recorded_nodes(run: Inputs) -> pl.DataFrame:
    return pl.read_parquet(_folder(run) / "nodes.parquet")


def _permuted_nodes(run: Inputs) -> pl.DataFrame:
    """Nodes of any expanded run under the prefixes of this one: all runs share one cluster."""
    known = pl.read_parquet(sorted(FGD.glob("inputs/*/nodes.parquet"))[0]).drop("node")
    perm = pl.read_parquet(FGD / "inputs/orders/node_perm.parquet")
    perm = perm.filter(pl.col("trace").cast(pl.String) == run.trace, pl.col("seed") == run.seed)
    prefixes = perm.select(pl.col("node_idx").cast(pl.Int32), pl.col("prefix").cast(pl.String).str.zfill(4))
    named = known.join(prefixes, on="node_idx")
    return named.with_columns(pl.format("{}-{}", "prefix", "orig_name").alias("node")).drop("prefix")


def _recorded_pods(run: Inputs) -> pl.DataFrame:
    pods = pl.read_parquet(_folder(run) / "pods.parquet").sort("seq")
    return pods.with_columns(
        models(), (pl.col("memory_bytes") // MIB).alias("memory_mib"), pl.col("pod").alias("native_id")
    )


def _ordered_pods(run: Inputs) -> pl.DataFrame:
    order = pl.read_parquet(FGD / "inputs/orders" / f"{run.trace}.parquet").filter(pl.col("seed") == run.seed)
    order = order.sort("seq").with_columns(pl.col("csv_row").cast(pl.Int32))
    pods = order.join(raw_trace(FGD, run.trace), on="csv_row", maintain_order="left")
    clone = pl.format("{}-tuned-{}", "name", "tuned")
    return pods.with_columns(pl.when(pl.col("tuned") < 0).then("name").otherwise(clone).alias("native_id"))


def _submitted(pods: pl.DataFrame) -> pl.DataFrame:
    return pods.select(
        pl.col("seq").cast(pl.Int64).alias("pod_id"), pl.col("seq").cast(pl.Float64).alias("submit_s"),
        pl.col("cpu_milli", "memory_mib").cast(pl.Int64), pl.col("num_gpu", "gpu_milli").cast(pl.Int16),
        "gpu_models", "native_id",
    )  # fmt: skip


def summaries() -> dict[str, dict[str, Any]]:
    """Description of every recorded run, by folder name."""
    folders = sorted(path.parent for path in FGD.glob("*/placements.parquet"))
    return {folder.name: json.loads((folder / "summary.json").read_text()) for folder in folders}


def reproducible(summary: dict[str, Any]) -> bool:
    """Whether the original makes the same placements again when it is run again."""
    return "note" not in summary and "RandomScore" not in summary["weights"]


def plan_of(summary: dict[str, Any]) -> OnlinePlan:
    """The plan of a recorded run."""
    dim, norm = summary["dim_ext"], summary["norm"]
    terms = []
    for plugin, weight in summary["weights"].items():
        like = TERMS[plugin]
        terms.append(ScoreTerm(like.kernel, weight=weight, normalise=like.normalise, dim=dim, norm=norm))
    return OnlinePlan(tuple(terms), gpu_pick=PICKS[summary["gpu_sel"]], gpu_dim=dim, gpu_norm=norm)


@cache
def plans() -> dict[str, OnlinePlan]:
    """The plan of every policy that was recorded anywhere, by its name there."""
    return {summary["policy"]: plan_of(summary) for summary in summaries().values()}


def simulated(policy: str, trace: str, seed: int, record: str = "all") -> Result:
    """Our run of a recorded policy on recorded inputs."""
    run = inputs(trace, seed)
    return run_online(run.cluster, run.workload, plans()[policy], run.typical, OnlineOptions(seed=seed, record=record))


def arrivals(result: Result) -> pl.DataFrame:
    """The timeline's row after each pod."""
    return result.timeline.filter(pl.col("event") == "arrival")


def placement_sha256(result: Result, run: Inputs) -> str:
    """Digest of all placements as the recordings write it: ``<seq>,<node_idx>,<gpu>`` line by line."""
    node_idx = run.nodes["node_idx"].to_list()
    digest = hashlib.sha256()
    for pod, node, gpus in result.placements.select("pod_id", "node_id", "gpu_ids").iter_rows():
        where = -1 if node is None else node_idx[node]
        digest.update(f"{pod},{where},{'|'.join(map(str, gpus))}\n".encode())
    return digest.hexdigest()


def discrete(result: Result, total_gpus: int) -> pl.DataFrame:
    """The FGD paper's table of a run: allocation and fragmentation by arrived demand, all in per cent."""
    rows = arrivals(result).with_columns(pl.sum_horizontal(FRAGMENTS).alias("idle_milli"))
    columns = (rows[name].to_numpy() for name in ("arrived_gpu_milli", "gpu_milli_alloc", "frag_milli", "idle_milli"))
    arrived, alloc, frag, idle = columns
    return pl.DataFrame(discrete_table(arrived, alloc, frag, idle, total_gpus))

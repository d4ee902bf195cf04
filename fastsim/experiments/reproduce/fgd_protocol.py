"""The FGD protocol for one trace: shuffled pods tuned to 1.3 times the GPUs, nodes in a shuffled order, typical pods.

A trace is generated, or read from a folder: openb's lists are in it or in its ``data/openb``, orders recorded from the
published experiments in its ``golden/fgd``. A recorded order is used if there is one; otherwise pods and nodes are
drawn as the original draws them, which gives the same orders.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl
import pyarrow as pa

from fastsim.cluster.cluster import Cluster
from fastsim.errors import InputError
from fastsim.workload import Workload
from fastsim.workload.typical_pods import TypicalPods

LOAD = 1.3
"""GPU demand offered, relative to the cluster's GPUs."""
GENERATED = tuple(f"generated-{k:02}" for k in range(1, 17))
"""Names of the generated traces."""
PODS = 8152
"""Length of a generated trace, as of the openb list."""
LIST = "openb_pod_list_"
LISTS = Path("data/openb")
SUFFIXES = (".parquet", ".csv", ".csv.gz")
NODES = "openb_node_list_gpu_node"
RECORDED = Path("golden/fgd")


class Trace(Protocol):
    """The pods of one trace, and cluster and workload of each seed."""

    @property
    def typical(self) -> TypicalPods:
        """Typical pods of the untuned trace."""

    def offered(self, seed: int) -> tuple[Cluster, Workload]:
        """Nodes and pods in the orders of this seed."""


class Shuffled:
    """Any pods on any cluster, drawn as the original draws them."""

    def __init__(self, pods: Workload, cluster: Cluster) -> None:
        self.pods, self.cluster = pods, cluster

    @cached_property
    def typical(self) -> TypicalPods:
        """Typical pods of the untuned trace."""
        return TypicalPods.of(self.pods)

    def offered(self, seed: int) -> tuple[Cluster, Workload]:
        """Nodes and pods in the orders of this seed."""
        pods = self.pods.shuffled(seed).tune(LOAD, self.cluster.total_gpu_milli, seed)
        return self.cluster.shuffled(seed, after=pods), pods


class Recorded:
    """A trace whose orders of pods and nodes are recorded for the published seeds."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name

    @cached_property
    def pods(self) -> pa.Table:
        """Requests of the untuned pods, in the order of the list."""
        models = pl.when(pl.col("gpu_spec") != "").then(pl.col("gpu_spec").str.split("|")).alias("gpu_models")
        frame = pl.read_parquet(self.folder / "inputs/traces" / f"{self.name}.parquet").sort("csv_row")
        whole, small = pl.col("cpu_milli", "memory_mib").cast(pl.Int64), pl.col("num_gpu", "gpu_milli").cast(pl.Int16)
        return frame.select(whole, small, models).to_arrow(compat_level=pl.CompatLevel.oldest())

    @cached_property
    def typical(self) -> TypicalPods:
        """Typical pods of the untuned trace."""
        return TypicalPods.of(_one_a_second(self.pods, self.name))

    @cached_property
    def order(self) -> pl.DataFrame:
        """Rows of the list by seed and position."""
        columns = (pl.col(name).cast(pl.Int64) for name in ("seed", "seq", "csv_row"))
        return pl.read_parquet(self.folder / "inputs/orders" / f"{self.name}.parquet").select(columns).sort("seq")

    @cached_property
    def prefixes(self) -> pl.DataFrame:
        """Rank of every node by seed, by which the published experiments break ties."""
        columns = (pl.col(name).cast(pl.Int64) for name in ("seed", "node_idx", "prefix"))
        perm = pl.read_parquet(self.folder / "inputs/orders/node_perm.parquet")
        return perm.filter(pl.col("trace").cast(pl.String) == self.name).select(columns).sort("node_idx")

    def offered(self, seed: int) -> tuple[Cluster, Workload]:
        """Nodes and pods in the recorded orders of this seed."""
        rows = self.order.filter(pl.col("seed") == seed)["csv_row"]
        order = np.argsort(self.prefixes.filter(pl.col("seed") == seed)["prefix"].to_numpy(), kind="stable")
        pods = _one_a_second(self.pods.take(pa.array(rows.to_numpy())), f"{self.name}-{seed}")
        return recorded_cluster(self.folder).reordered(order.tolist()), pods


def trace_names(data: Path | None) -> tuple[str, ...]:
    """Names of the traces of a folder, or of the generated ones."""
    if data is None:
        return GENERATED
    in_lists = {path.name[len(LIST) :].split(".")[0] for path in _lists(data).glob(f"{LIST}*")}
    recorded = {path.stem for path in (data / RECORDED / "inputs/orders").glob("*.parquet")} - {"node_perm"}
    if not in_lists | recorded:
        raise InputError(str(data), f"no {LIST}*.csv", "a folder with the pod and node lists of openb")
    return tuple(sorted(in_lists | recorded))


def is_recorded(data: Path | None, name: str) -> bool:
    """Whether the orders of the published experiments are known for this trace."""
    return data is not None and (data / RECORDED / "inputs/orders" / f"{name}.parquet").exists()


def _lists(data: Path) -> Path:
    return data / LISTS if (data / LISTS).is_dir() else data


def _list(data: Path, stem: str) -> Path:
    for suffix in SUFFIXES:
        path = _lists(data) / f"{stem}{suffix}"
        if path.is_file():
            return path
    raise InputError(str(_lists(data)), f"no {stem}.csv", "this list of openb (CSV, CSV.gz or Parquet)")


@lru_cache(maxsize=2)
def trace(data: Path | None, name: str) -> Trace:
    """A trace by its name; the last two are cached."""
    if data is None:
        pods = Workload.synth("openb", pods=PODS, seed=GENERATED.index(name) + 1)
        return Shuffled(Workload.from_arrow(pods.table(), name=name), _preset())
    if is_recorded(data, name):
        return Recorded(data / RECORDED, name)
    return Shuffled(Workload.from_openb(_list(data, f"{LIST}{name}")), _listed_cluster(data))


@lru_cache(maxsize=1)
def recorded_cluster(folder: Path) -> Cluster:
    """The nodes of the recorded experiments, by their number."""
    nodes = pl.read_parquet(sorted(folder.glob("inputs/*/nodes.parquet"))[0]).sort("node_idx")
    columns = nodes.select(
        pl.col("orig_name").alias("name"), "cpu_milli", (pl.col("memory_bytes") // 2**20).alias("memory_mib"),
        "num_gpu", "gpu_model", "max_pods",
    )  # fmt: skip
    return Cluster(columns.to_arrow(), name="openb")


@lru_cache(maxsize=1)
def _preset() -> Cluster:
    return Cluster.preset("openb")


@lru_cache(maxsize=1)
def _listed_cluster(data: Path) -> Cluster:
    return Cluster.from_openb(_list(data, NODES))


def _one_a_second(pods: pa.Table, name: str) -> Workload:
    number = np.arange(len(pods))
    table = pods.append_column("pod_id", pa.array(number)).append_column(
        "submit_s", pa.array(number.astype(np.float64))
    )
    return Workload.from_arrow(table.combine_chunks(), name=name)

"""A cluster at one moment: pods that run, pods that wait, boards on which no pod runs, and runs with other layouts.

Pods that wait are all there at once and never end. A node whose instances are in use has free boards only among its
whole GPUs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl
import pyarrow as pa

from fastsim.cluster.cluster import Cluster
from fastsim.cluster.node_table import NODE_SCHEMA
from fastsim.hardware import mig
from fastsim.hardware.node_constraints import conditions_of, node_labels
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.simulate import played
from fastsim.workload import Workload
from fastsim.workload import schema as s

WHOLE = ""
"""Layout of a GPU that is not divided."""
MET = {"fastsim.source": "kubernetes"}
"""Metadata of pods whose expressions have the taints of their cluster already."""


@dataclass(frozen=True)
class Spare:
    """Free resources of a node without its free boards: milli-CPU, MiB, milli-GPU, instances by resource."""

    cpu_milli: int
    memory_mib: int
    gpu_milli: int
    instances: tuple[tuple[str, int], ...]


class PresentCluster:
    """Nodes with the pods that run there, and pods that wait."""

    def __init__(self, cluster: Cluster, workload: Workload) -> None:
        self.cluster = Cluster(cluster.nodes, cluster.catalog, cluster.name)
        self.nodes: list[dict[str, Any]] = cluster.nodes.to_pylist()
        self.labels = [node_labels(row) for row in self.nodes]
        self.layouts = [mig.layouts(row["mig"], row["num_gpu"]) for row in self.nodes]
        self.table = _at_once(workload.table())
        self.rows: list[dict[str, Any]] = self.table.to_pylist()
        self.waiting = [row for row in self.rows if row.get(s.BOUND_NODE) is None]

    @cached_property
    def places(self) -> dict[int, tuple[int, tuple[int, ...]]]:
        """Position of the node, and numbers of GPUs there, of each pod that runs and fits; by id."""
        runs = pa.array([row.get(s.BOUND_NODE) is not None for row in self.rows], pa.bool_())
        if not runs.true_count:
            return {}
        placed = self._placements(self.cluster, self.table.filter(runs)).to_arrow()
        whole = [[g for g, layout in enumerate(layouts) if not layout] for layouts in self.layouts]
        pods, nodes, devices = (column.to_pylist() for column in placed.columns)
        return {
            pod: (node, tuple(whole[node][g] for g in gpus or ()))
            for pod, node, gpus in zip(pods, nodes, devices, strict=True)
        }

    @cached_property
    def on_node(self) -> list[list[dict[str, Any]]]:
        """Rows of the pods that run on each node."""
        on: list[list[dict[str, Any]]] = [[] for _ in self.nodes]
        for row in self.rows:
            if row[s.POD_ID] in self.places:
                on[self.places[row[s.POD_ID]][0]].append(row)
        return on

    @cached_property
    def instances_in_use(self) -> list[Counter[str]]:
        """Instances that running pods hold on each node, by resource."""
        return [
            Counter({name: count for row in rows for name, count in conditions_of(row).extra_resources
                     if name in mig.resources()})
            for rows in self.on_node
        ]  # fmt: skip

    def free_boards(self, n: int) -> list[int]:
        """Numbers of the GPUs of a node that can be divided anew; none of a model that has no instances."""
        if self.nodes[n]["gpu_model"] not in mig.profiles():
            return []
        used = {gpu for row in self.on_node[n] for gpu in self.places[row[s.POD_ID]][1]}
        kept = any(self.instances_in_use[n].values())
        return [g for g, layout in enumerate(self.layouts[n]) if g not in used and not (layout and kept)]

    def spare(self, n: int, free: Collection[int]) -> Spare:
        """Free resources of a node beside its ``free`` boards."""
        row, rows = self.nodes[n], self.on_node[n]
        kept = [layout for g, layout in enumerate(self.layouts[n]) if g not in free]
        instances = Counter(dict(mig.instances(mig.layout_text(kept), len(kept))[1])) if kept else Counter[str]()
        instances.subtract(self.instances_in_use[n])
        held = sum(one[s.NUM_GPU] * one[s.GPU_MILLI] for one in rows)
        return Spare(
            row["cpu_milli"] - sum(one[s.CPU_MILLI] for one in rows),
            row["memory_mib"] - sum(one[s.MEMORY_MIB] for one in rows),
            mig.WHOLE * sum(not layout for layout in kept) - held,
            tuple(sorted((name, count) for name, count in instances.items() if count > 0)),
        )

    def divided(self, boards: Mapping[int, Mapping[int, str]]) -> Cluster:
        """The cluster with other layouts, by node and number of the GPU."""
        texts = [mig.layout_text(self.after(n, boards)) for n in range(len(self.nodes))]
        at = NODE_SCHEMA.get_field_index("mig")
        nodes = self.cluster.nodes.set_column(at, NODE_SCHEMA.field("mig"), pa.array(texts, pa.string()))
        return Cluster(nodes, self.cluster.catalog, self.cluster.name)

    def after(self, n: int, boards: Mapping[int, Mapping[int, str]]) -> list[str]:
        """The layouts of all GPUs of a node after some are changed."""
        changed = boards.get(n, {})
        return [changed.get(g, layout) for g, layout in enumerate(self.layouts[n])]

    def hosted(self, boards: Mapping[int, Mapping[int, str]]) -> int:
        """Waiting pods that the engine places beside the running ones with these layouts."""
        table = self.table
        if self.places:
            gpus = [self._devices(row, boards) for row in self.rows]
            field = s.POD_SCHEMA.field(s.BOUND_GPUS)
            at = table.schema.get_field_index(s.BOUND_GPUS)
            column = pa.array(gpus, field.type)
            table = table.append_column(field, column) if at < 0 else table.set_column(at, field, column)
        placed = self._placements(self.divided(boards), table)[s.POD_ID]
        return placed.filter(placed.is_in(self._waiting_ids)).n_unique()

    @cached_property
    def _waiting_ids(self) -> list[int]:
        return [row[s.POD_ID] for row in self.waiting]

    def _devices(self, row: Mapping[str, Any], boards: Mapping[int, Mapping[int, str]]) -> list[int] | None:
        """Numbers that the engine gives to the GPUs of a running pod: those of its boards among whole GPUs."""
        n, gpus = self.places.get(row[s.POD_ID], (-1, ()))
        if not gpus:
            return None
        whole = [g for g, layout in enumerate(self.after(n, boards)) if not layout]
        return [whole.index(g) for g in gpus]

    def _placements(self, cluster: Cluster, table: pa.Table) -> pl.DataFrame:
        """The id of each pod that the engine places, its node and its devices."""
        workload = Workload.from_arrow(table)
        workload.metadata |= MET
        scenario = Scenario(cluster, workload, "best_fit", record="placements")
        return played(scenario)[0].placements.select(s.POD_ID, "node_id", "gpu_ids").drop_nulls("node_id")


def _at_once(table: pa.Table) -> pa.Table:
    """The pods, all of which arrive at second 0 and never end."""
    zero = pa.array([0.0] * len(table), pa.float64())
    table = table.set_column(table.schema.get_field_index(s.SUBMIT_S), s.POD_SCHEMA.field(s.SUBMIT_S), zero)
    return table.drop_columns([s.DURATION_S]) if s.DURATION_S in table.schema.names else table

"""Clusters: a node table and a catalogue of models. The position of a node is its identity and breaks ties."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from fastsim.cluster import node_types
from fastsim.cluster.node_table import NODE_SCHEMA, Nodes, Where, node_table, offered, watts
from fastsim.errors import InputError, ScenarioError, reading, short, suggestion
from fastsim.foundation.columns.checksum import content_checksum
from fastsim.foundation.columns.content_equality import ComparedByContent
from fastsim.foundation.csv_table import map_text
from fastsim.foundation.displays import Completable, chart_of, html_table
from fastsim.foundation.draws.go_random import STARTING_DRAWS, DrawnPods, GoRandom, drawn_by
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.limits.work_budget import Work
from fastsim.foundation.object_cache import OBJECTS
from fastsim.foundation.option_texts import called, elements
from fastsim.foundation.parquet import parquet_table, replacing, write_parquet
from fastsim.hardware.model_catalog import Catalog

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from fastsim.cluster.column_mapping import Columns
    from fastsim.kubernetes.snapshot import Snapshot

FOR_ENGINES = frozenset({"own_columns", "content", "offered", "partitioned_gpus"})
"""Members that engines use."""
MODELS = 3
"""GPU models that the text of a cluster names, the most frequent ones."""
PRESETS = {"openb": False, "openb-all": True}
"""Presets by name; True includes nodes without GPUs."""


@whole_process
@dataclass(frozen=True, eq=False)
class Cluster(ComparedByContent, Completable):
    """Nodes as an Arrow table with the columns of `NODE_SCHEMA`, and the catalogue of their models.

    ``snapshot`` are the Kubernetes objects that the nodes were read from: pods that run there keep their nodes in every
    run, and taints keep pods away that do not tolerate them. Clusters of the same nodes, catalogue, name and snapshot
    object are equal.
    """

    for_engines: ClassVar[frozenset[str]] = Completable.for_engines | FOR_ENGINES
    nodes: pa.Table
    catalog: Catalog = field(default_factory=Catalog.default)
    name: str = "cluster"
    where: InitVar[Where | None] = None
    snapshot: Snapshot | None = field(default=None, repr=False)

    def __post_init__(self, where: Where | None) -> None:
        where = where or (lambda row: f"{self.name}:{row + 1}")
        object.__setattr__(self, "nodes", node_table(self.nodes, self.name, where, self.catalog))

    # ------------------------------------------------------------------ makers

    @classmethod
    def from_text(cls, text: str | os.PathLike[str] | Cluster) -> Cluster:
        """The cluster of a text, as `simulate` and the command line read it; `cluster.texts` has the table of texts.

        A cluster is returned as it is.

        >>> len(Cluster.from_text("openb:50"))
        50
        """
        if isinstance(text, Cluster):
            return text
        with reading(f"cluster {short(text)}", "a cluster that can be read"):
            return OBJECTS.cached(("cluster", str(text)), lambda: cls._meant_by(text))

    @classmethod
    def _meant_by(cls, text: Any) -> Cluster:
        from fastsim.cluster.texts import cluster_text

        maker, options, catalog, seed = cluster_text(text)
        made = called(f"cluster {str(text)!r}", getattr(cls, maker) if isinstance(maker, str) else maker, options)
        cluster: Cluster = cls(*made) if isinstance(made, Nodes) else made
        cluster = cluster if seed is None else cluster.shuffled(seed)
        return cluster if catalog is None else cluster.with_catalog(catalog)

    @classmethod
    def preset(cls, name: str) -> Cluster:
        """`openb`: the 1,213 nodes with GPUs; `openb-all`: all 1,523. The types are interleaved by a fixed shuffle.

        `openb:50` are 50 nodes in the same proportions, as in `scaled`. For other texts there is `from_text`.

        Ties go to the smallest position, so nodes sorted by type would favour one type and cost some policies several
        points of allocation; the published experiments shuffle their nodes for every run, as `shuffled` does. For the
        recorded cluster's own order read the trace with `from_openb`.
        """
        kind, _, nodes = name.partition(":")
        if kind in PRESETS and nodes.isdecimal():
            return cls.scaled(kind, nodes=int(nodes))
        parts = node_types.openb_parts(_preset(name))
        return cls.mix(parts, seed=0, name=name, max_pods=node_types.OPENB_MAX_PODS)

    @classmethod
    def scaled(cls, preset: str = "openb", *, nodes: int, seed: int = 0) -> Cluster:
        """`nodes` nodes in the proportions of a preset (largest remainder), types interleaved by a seeded shuffle."""
        if nodes < 1:
            raise ScenarioError("cluster.nodes", nodes, "1 or more")
        parts = node_types.openb_parts(node_types.apportioned(_preset(preset), nodes))
        return cls.mix(parts, seed=seed, name=f"{preset}-{nodes}", max_pods=node_types.OPENB_MAX_PODS)

    @classmethod
    def uniform(
        cls, *, nodes: int, gpu: str | None = None, gpus: int | None = None, cpu_milli: int = 96_000,
        memory_mib: int = 393_216, catalog: Catalog | None = None, **columns: Any,
    ) -> Cluster:  # fmt: skip
        """`nodes` equal nodes with `gpus` (8) devices of model `gpu`, none without `gpu`; further columns by name.

        `mig` partitions them: `"3g.40gb+2g.20gb+2g.20gb"` all alike, or a list with one layout for each GPU.
        """
        if gpus and not gpu:
            raise ScenarioError("cluster.uniform: gpus", f"{gpus} without a model", "gpu=MODEL with it, or no gpus")
        count = 8 if gpus is None and gpu else gpus or 0
        shape = {"gpu_model": gpu or None, "num_gpu": count, "cpu_milli": cpu_milli, "memory_mib": memory_mib}
        return cls.mix([(nodes, {"name": "node", **shape, **columns})], catalog=catalog, name="uniform")

    @classmethod
    def mix(
        cls, parts: Sequence[tuple[int, Mapping[str, Any]]] = (), *, seed: int | None = None, name: str = "mix",
        catalog: Catalog | None = None, max_pods: int | None = None, **counts: int,
    ) -> Cluster:  # fmt: skip
        """Nodes of several shapes: `mix(g2=10, t4=4)` by type name, or `mix([(10, {"num_gpu": 8, ...}), ...])`.

        Nodes stand in the order given, or interleaved by a seeded shuffle.
        """
        parts = elements("cluster.mix: parts", parts, "a list of (nodes, shape), or counts by keyword: mix(g2=10)")
        rows = [*parts, *node_types.named_parts(counts)]
        return cls(*node_types.mixed(rows, seed=seed, name=name, catalog=catalog, max_pods=max_pods))

    @classmethod
    def from_arrow(
        cls, data: Any, columns: Columns | None = None, *, catalog: Catalog | None = None, name: str = "cluster",
        where: str | None = None,
    ) -> Cluster:  # fmt: skip
        """Nodes from anything with the Arrow PyCapsule interface; ``columns`` and ``where`` as in `from_csv`."""
        if columns is not None or where is not None:
            return cls.from_csv(data, columns, catalog=catalog, where=where, name=name)
        from fastsim.foundation.parquet import arrow_table

        return cls(arrow_table(data, name), catalog or Catalog.default(), name)

    @classmethod
    def from_parquet(cls, path: str | os.PathLike[str], *, catalog: Catalog | None = None) -> Cluster:
        """Nodes from a canonical Parquet file."""
        return cls(parquet_table(path, Work.NODES), catalog or Catalog.default(), str(path))

    @classmethod
    def from_csv(
        cls, data: Any, columns: Columns | None = None, *, catalog: Catalog | None = None, where: str | None = None,
        delimiter: str = ",", name: str | None = None,
    ) -> Cluster:  # fmt: skip
        """Nodes of a CSV file (plain or .gz) or a frame, under other names; see `cluster.column_mapping`.

        ``columns``: column of `NODE_SCHEMA` -> source column or expression, such as ``{"num_gpu": "cap_gpu",
        "memory_mib": "cap_mem * 1024"}``. ``where``: a condition over source columns. Columns that nothing uses stay as
        `native_` ones.
        """
        from fastsim.cluster.importers import nodes_of
        from fastsim.cluster.table_sources import source_of

        source = source_of(data, name, delimiter, work=Work.NODES)
        return cls(*nodes_of(source, columns, where=where, catalog=catalog))

    @classmethod
    def from_polars(cls, frame: Any, columns: Columns | None = None, **options: Any) -> Cluster:
        """Nodes of a polars frame under other names; options as in `from_csv`."""
        return cls.from_csv(frame.collect() if hasattr(frame, "collect") else frame, columns, **options)

    @classmethod
    def from_pandas(cls, frame: Any, columns: Columns | None = None, **options: Any) -> Cluster:
        """Nodes of a pandas frame under other names, without its index; options as in `from_csv`."""
        return cls.from_csv(frame, columns, **options)

    @classmethod
    def from_openb(cls, path: str | os.PathLike[str], *, catalog: Catalog | None = None) -> Cluster:
        """Nodes of an openb node list (CSV, CSV.gz or Parquet), in the file's order."""
        from fastsim.cluster.importers import import_nodes

        return cls(*import_nodes(path, catalog=catalog))

    @classmethod
    def from_gavel(
        cls, spec: str | os.PathLike[str], per_server: str = "1:1:1", *, catalog: Catalog | None = None
    ) -> Cluster:
        """Nodes of a Gavel cluster: `36:36:36` are GPUs of v100, p100 and k80; or a JSON file with one such text.

        `per_server` are the GPUs of one node, in the same order; GPUs that do not fill a node are left out. Nodes are
        sorted by model: k80, p100, v100.
        """
        from fastsim.cluster.published_specs import gavel_parts

        return cls.mix(gavel_parts(spec, per_server), name=f"gavel:{spec}", catalog=catalog)

    @classmethod
    def from_synergy(
        cls, spec: str | os.PathLike[str] | int, *, cpus: int | None = None, catalog: Catalog | None = None
    ) -> Cluster:
        """Servers of a Synergy cluster: an INI file, or their number, each with 8 GPUs and 24 or `cpus` CPUs."""
        from fastsim.cluster.published_specs import synergy_parts

        return cls.mix(synergy_parts(spec, cpus), name=f"synergy:{spec}", catalog=catalog)

    @classmethod
    def from_kubernetes(
        cls, path: str | os.PathLike[str], *, memory_unit: str = "GiB", catalog: Catalog | None = None,
        empty: bool = False,
    ) -> Cluster:  # fmt: skip
        """The nodes among Kubernetes objects (YAML, JSON, folders, KAI snapshots), with the pods that run there.

        ``empty``: without them. See `kubernetes.Snapshot`.
        """
        from fastsim.cluster.importers import snapshot_nodes
        from fastsim.kubernetes.snapshot import Snapshot

        snapshot = Snapshot.read(path, memory_unit=memory_unit)
        cluster = cls(*snapshot_nodes(snapshot, catalog))
        snapshot.warn(3)
        return cluster if not empty else cluster.emptied()

    # ------------------------------------------------------------------ reading

    def __len__(self) -> int:
        return int(self.nodes.num_rows)

    def __repr__(self) -> str:
        counts = self.nodes.group_by("gpu_model", use_threads=False).aggregate([("num_gpu", "sum")]).to_pylist()
        devices = sorted(((row["num_gpu_sum"], row["gpu_model"]) for row in counts if row["num_gpu_sum"]), reverse=True)
        named = [f"{count:,} {model or 'GPUs'}" for count, model in devices]
        rest = [f"{len(named) - MODELS} models more"] if len(named) > MODELS + 1 else named[MODELS:]
        by_model = ", ".join([*named[:MODELS], *rest])
        gpus = f"{self.total_gpus:,} GPUs" + (f" ({by_model})" if devices else "")
        memory_gib = int(pc.sum(self.nodes["memory_mib"]).as_py()) / 1024
        cpus = self.total_cpu_milli / 1000
        nodes = "1 node" if len(self) == 1 else f"{len(self):,} nodes"
        return f"Cluster({self.name!r}: {nodes}, {gpus}, {cpus:,g} CPUs, {memory_gib:,.0f} GiB)"

    def _repr_html_(self) -> str:
        """Kinds of nodes and their number, for notebooks."""
        kinds = self.kinds()
        rows = [list(row.values()) for row in kinds]
        return html_table(repr(self), list(kinds[0]) if kinds else [], rows)

    def kinds(self) -> list[dict[str, Any]]:
        """One mapping for each kind of node, the most frequent first: ``nodes``, model, GPUs, CPU and memory of each.

        >>> Cluster.uniform(nodes=4, gpu="T4", gpus=2).kinds()
        [{'nodes': 4, 'gpu_model': 'T4', 'num_gpu': 2, 'cpu_milli': 96000, 'memory_mib': 393216}]
        """
        columns = ("gpu_model", "num_gpu", "cpu_milli", "memory_mib")
        found = Counter(zip(*(self.nodes[name].to_pylist() for name in columns), strict=True))
        return [{"nodes": count} | dict(zip(columns, kind, strict=True)) for kind, count in found.most_common()]

    def plot(self, chart: str | None = None) -> alt.TopLevelMixin:
        """A chart of the nodes: ``gpus`` (GPUs by model) or ``nodes`` (nodes by kind). Needs the extra ``report``."""
        drawn: alt.TopLevelMixin = chart_of(self, chart)
        return drawn

    @property
    def total_gpus(self) -> int:
        """Devices of all nodes, absent or present, whole or partitioned."""
        return int(pc.sum(self.nodes["num_gpu"]).as_py())

    @property
    def total_gpu_milli(self) -> int:
        """GPU capacity of all nodes, thousandths of a device."""
        return 1000 * self.total_gpus

    @property
    def total_cpu_milli(self) -> int:
        """CPU capacity of all nodes, thousandths of a virtual CPU."""
        return int(pc.sum(self.nodes["cpu_milli"]).as_py())

    @property
    def offered(self) -> pa.Table:
        """The nodes as pods see them: whole GPUs as `num_gpu`, instances of the others as `extra_resources`."""
        return self._offered[0]

    @property
    def partitioned_gpus(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        """Partitioned GPUs of each node."""
        return self._offered[1]

    @cached_property
    def _offered(self) -> tuple[pa.Table, np.ndarray[Any, np.dtype[np.int32]]]:
        return offered(self.nodes)

    @cached_property
    def watts(self) -> pa.Table:
        """Watts of each node's devices and sockets with overrides applied; see `node_table.watts`."""
        return watts(self.nodes, self.catalog)

    @cached_property
    def device_memory_mib(self) -> list[int | None]:
        """Memory of each device by node, MiB: the node's own, else the catalogue's for its model; None = unknown."""
        known = self.catalog.gpu
        pairs = zip(self.nodes["gpu_memory_mib"].to_pylist(), self.nodes["gpu_model"].to_pylist(), strict=True)
        return [known[model].memory_mib if own is None and model in known else own for own, model in pairs]

    def content(self) -> Hashable:
        """The nodes and the watts they draw, the catalogue, the name and the snapshot object."""
        return self.name, self.checksum(), self.catalog, None if self.snapshot is None else id(self.snapshot)

    def checksum(self) -> str:
        """SHA-256 of the nodes, the watts they draw and the memory of their GPUs; the same however they are stored."""
        return self._checksum

    @cached_property
    def _checksum(self) -> str:
        table = self.own_columns(everywhere=True)
        return content_checksum(table.to_batches(), table.schema)

    def reordered(self, order: Sequence[int]) -> Cluster:
        """The same nodes in another tie-break order: position i holds what was at position `order[i]`."""
        positions = np.asarray(elements("cluster.reordered: order", order, "a list of positions"), np.int64)
        if not np.array_equal(np.sort(positions), np.arange(len(self))):
            raise InputError("cluster.reordered: order", "no permutation", f"each position 0 to {len(self) - 1} once")
        nodes = self.nodes.take(pa.array(positions)).drop_columns(["node_id"])
        return Cluster(nodes, self.catalog, self.name, snapshot=self.snapshot)

    def shuffled(self, seed: int = 0, after: DrawnPods | None = None) -> Cluster:
        """The same nodes in the random tie-break order of FGD's simulator, which their names and the seed decide.

        There, pods are drawn before the nodes: ``after`` are pods that this seed shuffled or tuned, if it did.
        """
        drawn = None if after is None else drawn_by(after)
        if drawn is not None and drawn[0] != seed:
            raise ScenarioError("cluster.shuffled: after", f"pods drawn by seed {drawn[0]}", f"pods of seed {seed}")
        draws = GoRandom.of_run(seed, after)
        for _ in range(STARTING_DRAWS):
            draws.word()
        # Nodes sorted by name get numbers in front of their names, and ties go to the first name as text.
        numbers = [f"{number:04d}-" for number in draws.permutation(len(self))]
        by_name = pc.sort_indices(self.nodes["name"].combine_chunks()).to_numpy()
        return self.reordered(by_name[np.argsort(np.array(numbers))].tolist())

    def with_catalog(self, catalog: Catalog) -> Cluster:
        """The same nodes with another catalogue; InputError if a model is missing from it."""
        return Cluster(self.nodes, catalog, self.name, snapshot=self.snapshot)

    def like(self, name: str) -> pa.Table:
        """A row like that of a node of this name, without devices that several nodes reach; no row without a node."""
        from fastsim.kubernetes.devices.device_demands import SHARED

        rows = [row for row in self.nodes.to_pylist() if row["name"] == name]
        for row in rows:
            own = [one for one in row["extra_resources"] or () if not one[0].startswith(SHARED)]
            row["extra_resources"] = own or None
        return pa.Table.from_pylist(rows, schema=self.nodes.schema)

    def with_claims(self, snapshot: Snapshot) -> Cluster:
        """The same nodes with the resources and labels that claims for devices in other Kubernetes objects ask for."""
        if self.snapshot is None or not snapshot.has_claims:
            return self
        rows = {row["name"]: row for row in snapshot.node_rows}
        own = [rows.get(name) for name in self.nodes["name"].to_pylist()]
        nodes = self.nodes
        for name in ("labels", "extra_resources") if None not in own else ():
            column = pa.array([row[name] for row in own if row is not None], NODE_SCHEMA.field(name).type)
            if column.to_pylist() != nodes[name].to_pylist():
                nodes = nodes.set_column(nodes.column_names.index(name), NODE_SCHEMA.field(name), column)
        return self if nodes is self.nodes else Cluster(nodes, self.catalog, self.name, snapshot=self.snapshot)

    def table(self) -> pa.Table:
        """All nodes at once: `nodes`, by the name that workloads have for it."""
        return self.nodes

    def frame(self) -> pl.DataFrame:
        """All nodes at once, as a polars frame."""
        import polars as pl

        return pl.DataFrame(pl.from_arrow(self.nodes))

    def emptied(self) -> Cluster:
        """The same nodes without running pods."""
        left = None if self.snapshot is None else self.snapshot.without_pods()
        return Cluster(self.nodes, self.catalog, self.name, snapshot=left)

    # ------------------------------------------------------------------ writing

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes canonical Parquet, complete or not at all; watts outside the default catalogue become columns."""
        table = self.own_columns()
        stamp = {"fastsim.schema": "nodes", "fastsim.schema_version": "1.0", "fastsim.time_unit": "s"}
        write_parquet(path, table.to_batches(), table.schema, stamp, ("node_id",))

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes CSV, complete or not at all; columns without any value are left out."""
        table = self.own_columns()
        for index, item in enumerate(table.schema):
            if pa.types.is_map(item.type):
                texts = pa.array(map(map_text, table[item.name].to_pylist()), pa.string())
                table = table.set_column(index, item.name, texts)
        with replacing(path) as partial:
            pa.csv.write_csv(table, partial, pa.csv.WriteOptions(quoting_style="needed"))

    def own_columns(self, everywhere: bool = False) -> pa.Table:
        """The nodes with watts and device memory as columns where the catalogue is not the default one.

        Empty columns are left out.
        """
        nodes, default = self.nodes, Catalog.default()
        if everywhere or self.catalog != default:
            known = {name: self.watts[name] for name in self.watts.column_names}
            known["gpu_memory_mib"] = pa.array(self.device_memory_mib, pa.int64())
            for index, name in enumerate(NODE_SCHEMA.names):
                if name in known:
                    nodes = nodes.set_column(index, NODE_SCHEMA.field(name), known[name])
        return nodes.select([name for name in nodes.column_names if nodes[name].null_count < len(nodes)])


def _preset(name: str) -> dict[str, int]:
    if name not in PRESETS:
        expected = f"one of: {', '.join(PRESETS)}, openb:NODES"
        do = suggestion(name, PRESETS) or "Cluster.from_text reads every text of a cluster"
        raise ScenarioError("cluster.preset", repr(name), expected, do)
    return node_types.openb_counts(PRESETS[name])

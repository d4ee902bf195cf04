"""A workload: pods in order of arrival, where they come from, and the same pods under another load."""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING, Any

from fastsim.errors import ScenarioError, suggestion
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.option_texts import refuse_options
from fastsim.foundation.parquet import arrow_table
from fastsim.workload.pod_rows import Held, PodRows

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.cluster.column_mapping import Columns


@whole_process
class Workload(PodRows):
    """A stream of pods sorted by `submit_s` (seconds); every row is checked as it is read.

    Make one with `from_text`, `from_parquet`, `from_csv`, `from_polars`, `from_pandas`, `from_arrow`, `synth` or one of
    the importers `from_openb`, `from_gavel`, `from_synergy`, `from_philly`, `from_sia` and `from_trace`. It can be read
    any number of times; rows in memory are checked the first time only, so what they were made from must not change
    afterwards.
    A workload is equal to itself alone; `checksum` compares rows.
    """

    for_engines = PodRows.for_engines | {"of"}

    # ------------------------------------------------------------------ makers

    @classmethod
    def of(cls, pods: PodRows) -> Workload:
        """The same pods as a workload; a workload is returned as it is."""
        if isinstance(pods, Workload):
            return pods
        workload = cls(pods.source, pods.columns, name=pods.name, rows=pods.rows, metadata=pods.metadata)
        workload.snapshot, workload.population = pods.snapshot, pods.population
        return workload

    @classmethod
    def from_text(cls, text: str | os.PathLike[str], cluster: Cluster | None = None) -> Workload:
        """The pods of a text, as `simulate` and the command line read it; `workload.texts` has the table of texts.

        ``cluster``: what `load=`, `tune=` and `oversized=` are relative to, and whose running pods come first.

        >>> len(Workload.from_text("synth:openb?pods=50"))
        50
        """
        from fastsim.workload.texts import pods_from

        return cls.of(pods_from(text, cluster).pods)

    @classmethod
    def from_parquet(cls, path: str | os.PathLike[str]) -> Workload:
        """The pods of a canonical Parquet file, read lazily and in constant memory; the same as `scan`."""
        return cls.scan(path)

    @classmethod
    def from_arrow(
        cls, data: Any, columns: Columns | None = None, *, name: str = "workload", **options: Any
    ) -> Workload:
        """The pods of anything with the Arrow PyCapsule interface (polars, pyarrow, duckdb, ...), held in memory.

        With ``columns``, the sources of canonical columns as in `from_csv`, it takes the options of that method.
        """
        if columns is not None or options:
            return cls.from_csv(data, columns, name=name, **options)
        table = arrow_table(data, name)
        return cls(Held(table), table.column_names, name=name, rows=table.num_rows)

    @classmethod
    def from_csv(
        cls, data: Any, columns: Columns | None = None, *, origin: str = "min", where: str | None = None,
        delimiter: str = ",", name: str | None = None,
    ) -> Workload:  # fmt: skip
        """The pods of a CSV file (plain or .gz) or a frame under other names; see `cluster.column_mapping`.

        ``columns``: canonical column -> source column or expression, such as ``{"submit_s": "start[iso]", "num_gpu":
        "plan_gpu/100"}``. ``where``: a condition over source columns, such as ``state = 'COMPLETED'``. ``origin``:
        `min` = the first arrival is 0 s, `keep` = the clock of the table. Columns that nothing uses stay as `native_`
        ones.
        """
        from fastsim.workload.mapped_pods import import_table

        return cls.of(import_table(data, columns, origin=origin, where=where, delimiter=delimiter, name=name))

    @classmethod
    def from_polars(cls, frame: Any, columns: Columns | None = None, **options: Any) -> Workload:
        """The pods of a polars frame under other names; options as in `from_csv`."""
        return cls.from_csv(frame.collect() if hasattr(frame, "collect") else frame, columns, **options)

    @classmethod
    def from_pandas(cls, frame: Any, columns: Columns | None = None, **options: Any) -> Workload:
        """The pods of a pandas frame under other names, without its index; options as in `from_csv`."""
        return cls.from_csv(frame, columns, **options)

    @classmethod
    def from_openb(cls, path: str | os.PathLike[str], **options: Any) -> Workload:
        """The pods of an openb list (CSV, CSV.gz or Parquet); options as in `openb.import_pods`."""
        from fastsim.workload.importers.openb import import_pods

        refuse_options(f"workload.from_openb {path}", options, tuple(inspect.signature(import_pods).parameters))
        return cls.of(import_pods(path, **options))

    @classmethod
    def from_gavel(cls, path: str | os.PathLike[str]) -> Workload:
        """The jobs of a Gavel trace of 7, 10 or 12 fields (plain or .gz); see `gavel_trace.import_jobs`."""
        from fastsim.workload.importers.gavel import import_jobs

        return cls.of(import_jobs(path))

    @classmethod
    def from_sia(cls, path: str | os.PathLike[str]) -> Workload:
        """The jobs of a list of Sia or Pollux (CSV, plain or .gz); see `sia_trace.import_jobs`."""
        from fastsim.workload.importers.sia import import_jobs

        return cls.of(import_jobs(path))

    @classmethod
    def from_synergy(cls, path: str | os.PathLike[str]) -> Workload:
        """The jobs of a Synergy trace (plain or .gz); see `synergy_trace.import_jobs`."""
        from fastsim.workload.importers.synergy import import_jobs

        return cls.of(import_jobs(path))

    @classmethod
    def from_philly(cls, path: str | os.PathLike[str], **options: Any) -> Workload:
        """The jobs of a Philly log (JSON) or of its reduced form (CSV); options as in `philly.import_jobs`."""
        from fastsim.workload.importers.philly import import_jobs

        refuse_options(f"workload.from_philly {path}", options, tuple(inspect.signature(import_jobs).parameters))
        return cls.of(import_jobs(path, **options))

    @classmethod
    def from_trace(cls, kind: str, path: str | os.PathLike[str], **options: Any) -> Workload:
        """The jobs of a published trace: `helios`, `acme`, `pai`, `swf`, `slurm`, `alibaba`, `tiresias`, `opendc`.

        All take ``where`` and ``origin`` as in `from_csv`; further options as in `import_jobs` of their modules.
        """
        from fastsim.workload.texts import import_trace

        return cls.of(import_trace(kind, path, **options))

    @classmethod
    def from_kubernetes(
        cls, path: str | os.PathLike[str], *nodes: str | os.PathLike[str], memory_unit: str = "GiB",
        read_as: str = "now", unpin: str | bool = "",
    ) -> Workload:  # fmt: skip
        """The pods among Kubernetes objects, workloads expanded; `nodes` are further files, of the nodes they meet.

        ``read_as``: ``now`` as they stand, or ``trace`` at their own times; see `kubernetes.Snapshot.pod_rows`.
        ``unpin``: pods that run wait like the others, so that policies can be compared on them: all with True, those
        of an owner with its kind, such as ``ReplicaSet``, or those with a label, ``team=a``.
        """
        from fastsim.workload.importers.kubernetes import import_objects

        return cls.of(import_objects(path, *nodes, memory_unit=memory_unit, read_as=read_as, unpin=unpin))

    @classmethod
    def synth(cls, kind: str = "openb", **options: Any) -> Workload:
        """Generated pods or jobs; options as in `synth_openb`, `synth_gavel`, `synth_gavel_trace` and `synth_sia`."""
        from fastsim.workload.generators.recipes import GENERATORS

        if kind not in GENERATORS:
            expected, do = f"one of: {', '.join(GENERATORS)}", suggestion(str(kind), GENERATORS)
            raise ScenarioError("workload.synth", repr(kind), expected, do)
        refuse_options(f"workload.synth: {kind}", options, tuple(inspect.signature(GENERATORS[kind]).parameters))
        return cls.of(GENERATORS[kind](**options))

    # ------------------------------------------------------------------ the FGD protocol

    def ordered(self) -> Workload:
        """The same pods in the order of their names, one per second, for ever."""
        from fastsim.workload.load_tuning import ordered

        return self.of(ordered(self))

    def shuffled(self, seed: int = 0) -> Workload:
        """The same pods in a seeded random order, one per second, for ever."""
        from fastsim.workload.load_tuning import shuffled

        return self.of(shuffled(self, seed))

    def tune(self, ratio: float, cluster_gpu_milli: int, seed: int = 0) -> Workload:
        """Pods removed or cloned until their GPU request is `ratio` times the cluster's `cluster_gpu_milli`."""
        from fastsim.workload.load_tuning import tuned

        return self.of(tuned(self, ratio, cluster_gpu_milli, seed))

    def fitting(self, cluster: Cluster, how: str = "drop") -> Workload:
        """Without jobs on more GPUs than the cluster has of one model; ``shrink``: they take as many as there are."""
        from fastsim.workload.oversized_pods import fitting

        return self.of(fitting(self, cluster, how))

    def inflated(self, ratio: float, cluster: Cluster, seed: int = 0) -> Workload:
        """The pods followed by clones of random ones, up to `ratio` times as many, within the cluster's capacity."""
        from fastsim.workload.load_tuning import inflated

        return self.of(inflated(self, ratio, cluster, seed))

"""The meaning of the texts for workloads, also of those for typical pods; those for clusters stand in `cluster.texts`.

Every text is ``HEAD`` or ``HEAD?name=value&name=value``. A head that names an existing file is a file.

================  ==========================================================================================
workload          ``synth:openb?pods=1000&seed=1`` (``load=1``: as much demand as GPUs of the run)
                  · ``synth:gavel?jobs=1000&rate_per_hour=6&seed=1``
                  · ``synth:synergy?jobs=1000&rate_per_hour=9&log=10000``
                  · ``synth:detectors?jobs=30&over=50`` (pods that share GPUs)
                  · a Parquet file · a CSV file or lines of JSON with our own columns · an openb pod list (CSV)
                  · ``csv:FILE?map=submit_s=start,num_gpu=gpus`` (a table under other names, as in
                  `cluster.column_mapping`, with ``where=``, ``origin=``, ``delimiter=``)
                  · a Gavel trace (``.trace``, ``gavel:FILE``)
                  · ``kubernetes:PATH?nodes=PATH`` (pods, and their nodes if those are in another file;
                  ``as=trace``: at their recorded times, finished ones included; ``unpin=true``: pods that run wait
                  like the others, ``unpin=KIND`` and ``unpin=LABEL=VALUE`` those of an owner or with a label)
                  · a Synergy trace (``synergy:FILE``) · a Philly log (``philly:FILE``)
                  · a job list of Sia or Pollux (``sia:FILE``) · a published trace (``helios:FILE``, ``acme:FILE``,
                  ``pai:FILE``, ``swf:FILE``, ``slurm:FILE``, ``alibaba:FILE``, ``tiresias:FILE``, ``opendc:FOLDER``;
                  ``where=gpu_num>0`` keeps rows, further options as in the module of its importer);
                  ``KIND:PATH`` of another package that has an entry point KIND in the group ``fastsim.importers``, a
                  function of the path and of options that returns a Workload;
                  every one takes ``tune=1.3`` (GPU demand relative to the cluster) and ``tune_seed=0``, and
                  ``oversized=drop`` or ``shrink`` for jobs on more GPUs than the cluster has of one model
typical pods      a workload text, or ``same`` for the run's own, with ``threshold=95``, ``step=1``,
                  ``cpu_pods=true`` and ``gpu_weight=0``; or a Parquet file of typical pods
================  ==========================================================================================
"""

from __future__ import annotations

import csv
import inspect
import math
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fastsim.cluster.cluster import Cluster
from fastsim.cluster.table_sources import JSON_LINES
from fastsim.cluster.texts import table_options
from fastsim.errors import FastsimError, InputError, ScenarioError, reading, suggestion
from fastsim.foundation.limits.quantities import GO_SEEDS, is_go_seed
from fastsim.foundation.object_cache import OBJECTS
from fastsim.foundation.option_texts import (
    called,
    joined,
    names_file,
    refuse_objects,
    refuse_options,
    source_parts,
    unknown_name,
)
from fastsim.workload.pod_rows import Held, PodRows

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster

with (Path(__file__).parent / "published_traces" / "tables" / "published_traces.csv").open(newline="") as _rows:
    PUBLISHED = {row["name"]: row["reads"] for row in csv.DictReader(_rows)}
"""Published traces: their modules in `published_traces`, each with `import_jobs`, and what they read."""
ENTRY_POINT_GROUP = "fastsim.importers"
HELD_ROWS = 1_000_000
"""Workloads of at most so many rows are read into memory; longer ones are streamed by every run."""

SYNTHETIC = {
    "synth:openb": "pods drawn like those of the openb traces: pods=, seed= and more",
    "synth:gavel": "training jobs as Gavel's simulator draws them: jobs=, rate_per_hour=, seed= and more",
    "synth:synergy": "training jobs as Synergy's simulator makes them: jobs=, rate_per_hour=, log= and more",
    "synth:gavel-trace": "short jobs as Gavel's trace generator draws them: jobs=, rate_per_hour=, seed= and more",
    "synth:detectors": "equal pods that share GPUs and declare over= per cent too much: jobs=, over=, unit= and more",
    "synth:sia": "adaptive jobs like those of the Sia experiments: jobs=, style=, rate_per_hour=, seed= and more",
}
"""Workload texts that need no file, and what they are."""

TUNE_OPTIONS = ("tune", "tune_seed")
JSON = ("kubernetes", "philly", "slurm")
"""Kinds of workloads that are JSON files."""
OVERSIZED = "oversized"
"""Option of every workload, see `oversized_pods.fitting`."""
GENERAL = (*TUNE_OPTIONS, OVERSIZED)
"""Options of every workload, which are looked at before a file is read."""
OF_A_CLUSTER = "synth:openb"
"""Generator whose option `load` is relative to a cluster: that of the run, unless `cluster=` names another."""


Options = Mapping[str, Any]


class TunedPods(NamedTuple):
    """The pods of a text, and those that they were tuned from."""

    pods: PodRows
    untuned: PodRows


def is_relative(source: Any) -> bool:
    """Whether a workload is a text whose load is relative to the cluster beside it."""
    if not isinstance(source, str) or not source.strip().startswith(OF_A_CLUSTER):
        return False
    try:
        return _is_relative(*source_parts("workload", source))
    except ScenarioError:  # the mistake is found where the text is read
        return False


def _is_relative(head: str, options: Mapping[str, Any]) -> bool:
    return head == OF_A_CLUSTER and "load" in options and "cluster" not in options


def pods_from(source: Any, cluster: Cluster | None = None) -> TunedPods:
    """The pods of a text, tuned to the cluster if the text has that option."""
    if isinstance(source, PodRows):
        whole = _on(source, cluster)
        return TunedPods(whole, whole)
    head, options = source_parts("workload", source)
    tuning = {name: options.pop(name) for name in TUNE_OPTIONS if name in options}
    oversized = options.pop(OVERSIZED, None)
    loaded = cluster is not None and _is_relative(head, options)
    beside = {"cluster": cluster} if loaded else {}
    size = cluster.total_gpu_milli if cluster is not None and loaded else None
    key = ("pods", joined(head, options), size)
    untuned = OBJECTS.cached(key, lambda: _opened_pods(head, {**options, **beside}))
    if oversized is not None and cluster is not None:
        from fastsim.workload.oversized_pods import fitting

        untuned = fitting(untuned, cluster, str(oversized))
    ratio, seed = tuning.get("tune", 0), tuning.get("tune_seed", 0)
    if not isinstance(ratio, int | float) or isinstance(ratio, bool) or not 0 <= ratio < math.inf:
        raise ScenarioError(f"workload {source!r}", f"tune={ratio}", "a ratio, 0 = as they are")
    if not is_go_seed(seed):
        raise ScenarioError(f"workload {source!r}", f"tune_seed={seed}", GO_SEEDS)
    if not ratio or cluster is None:
        whole = _on(untuned, cluster)
        return TunedPods(whole, whole)
    capacity = cluster.total_gpu_milli
    tuned_key = ("tuned", joined(head, options), ratio, seed, capacity, oversized)
    tuned = OBJECTS.cached(tuned_key, lambda: _tuned(untuned, ratio, capacity, seed))
    return TunedPods(_on(tuned, cluster), untuned)


def _tuned(pods: PodRows, ratio: float, gpu_milli: int, seed: int) -> PodRows:
    from fastsim.workload.load_tuning import shuffled, tuned

    return tuned(shuffled(pods, seed), ratio, gpu_milli, seed)


def _on(offered: PodRows, cluster: Cluster | None) -> PodRows:
    """The pods with those that run on the cluster already, kept off taints that they do not tolerate."""
    if cluster is None or (cluster.snapshot is None and cluster.nodes["labels"].null_count == len(cluster)):
        return offered
    from fastsim.workload.importers.running_pods import with_running

    return with_running(offered, cluster)


class RowsLeftOut(UserWarning):
    """A workload lacks rows of its source that its importer cannot use, such as jobs that have not ended."""


def _opened_pods(head: str, options: Mapping[str, Any]) -> PodRows:
    with reading(f"workload {head!r}", "pods that can be read"):
        pods = _read_pods(head, dict(options))
        left_out = int(pods.metadata.get("fastsim.left_out", 0))
        if left_out and "where" not in options:
            rows = "1 row" if left_out == 1 else f"{left_out:,} rows"
            text = f"{head}: {rows} left out, for which this does not hold: {pods.metadata['fastsim.where']}"
            warnings.warn(text, RowsLeftOut, stacklevel=2)
        return in_memory(pods) if OBJECTS.caching else pods


def _drop_listed(options: Options) -> Options:
    return {name: str(value).split(",") if name == "drop" else value for name, value in options.items()}


def _read_as(options: Options) -> Options:
    return {"read_as" if name == "as" else name: value for name, value in options.items()}


@dataclass(frozen=True)
class TextKind:
    """A kind of files: its importer, ``module:function``.

    ``arguments`` are the importer's for the options of a text. ``names_files``: the path is that of one file, and
    ``KIND:`` before anything else is no text of this kind.
    """

    importer: str
    arguments: Callable[[Options], Options] = dict
    names_files: bool = True

    def open(self, where: str, path: str, options: Options) -> PodRows:
        """The pods of a file; ScenarioError for options that its importer does not have."""
        module, _, function = self.importer.partition(":")
        importer: Callable[..., Any] = getattr(import_module(module), function)
        return opened(where, importer, path, self.arguments(options))


KINDS = {
    "openb": TextKind("fastsim.workload.importers.openb:import_pods", _drop_listed),
    "gavel": TextKind("fastsim.workload.importers.gavel:import_jobs"),
    "sia": TextKind("fastsim.workload.importers.sia:import_jobs"),
    "synergy": TextKind("fastsim.workload.importers.synergy:import_jobs"),
    "philly": TextKind("fastsim.workload.importers.philly:import_jobs"),
    "kubernetes": TextKind("fastsim.workload.importers.kubernetes:import_pods", _read_as, names_files=False),
    "csv": TextKind("fastsim.workload.mapped_pods:import_table", table_options, names_files=False),
}
"""Kinds of files that have a format or a mapping of their own."""


def opened(where: str, importer: Callable[..., Any], path: str, options: Options) -> PodRows:
    """What an importer makes of a path and options; ScenarioError for options that it does not have."""
    parameters = list(inspect.signature(importer).parameters.values())
    if not any(one.kind is one.VAR_KEYWORD for one in parameters):
        refuse_options(where, options, (*(one.name for one in parameters[1:]), *GENERAL))
    pods: PodRows = called(where, partial(importer, path), options)
    return pods


def installed_importer(kind: str) -> Callable[..., Any] | None:
    """The importer that another package has for a kind of files; None if none has."""
    from importlib.metadata import entry_points

    for point in entry_points(group=ENTRY_POINT_GROUP, name=kind):
        try:
            importer: Callable[..., Any] = point.load()
        except FastsimError:
            raise
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
            raise ScenarioError(f"importer {kind!r} of entry point {point.value}", found, "a function") from error
        return importer
    return None


def import_trace(kind: str, path: str | os.PathLike[str], **options: Any) -> PodRows:
    """The jobs of a published trace; options as in `import_jobs` of its module."""
    if kind not in PUBLISHED:
        raise ScenarioError("trace", repr(kind), f"one of: {', '.join(PUBLISHED)}", suggestion(kind, PUBLISHED))
    importer = import_module(f"fastsim.workload.published_traces.{kind}").import_jobs
    known = dict(list(inspect.signature(importer).parameters.items())[1:])
    refuse_options(f"{kind} {path}", options, tuple(known))
    for option, value in options.items():
        if isinstance(known[option].default, bool) and not isinstance(value, bool):
            raise ScenarioError(f"{kind} {path}: {option}", repr(value), "true or false")
    with reading(f"{kind} {path}", "a trace that can be read"):
        pods: PodRows = importer(path, **options)
    pods.metadata["fastsim.converter"] = f"fastsim import {kind}"
    return pods


def _read_pods(head: str, options: dict[str, Any]) -> PodRows:
    kind, _, path = head.partition(":")
    where = f"workload {head!r}"
    if kind == "synth" and path:
        generated: PodRows = called(where, _generator(path), options)
        return generated
    if kind in PUBLISHED and path:
        return import_trace(kind, path, **options)
    if kind in KINDS and path:
        if KINDS[kind].names_files and not names_file(path):
            raise unknown_name("workload", path, SYNTHETIC)
        return KINDS[kind].open(where, path, options)
    importer = None if names_file(head) or not path else installed_importer(kind)
    if importer is not None:
        return opened(where, importer, path, options)
    return _read_file(head, options)


def _read_file(path: str, options: dict[str, Any]) -> PodRows:
    """The pods of a file whose text has no word for its kind."""
    if not names_file(path):
        raise unknown_name("workload", path, SYNTHETIC)
    refuse_objects("workload", path, ("kubernetes",) if path.endswith((".yaml", ".yml")) else JSON)
    own = path.endswith(".parquet")
    if not own and path.endswith((".trace", ".trace.gz")):
        return KINDS["gavel"].open("workload", path, options)
    if not own and not path.removesuffix(".gz").endswith(JSON_LINES) and not _is_own(path):
        return KINDS["openb"].open(f"workload {path!r}", path, options)
    refuse_options("workload", options, GENERAL)
    if own:
        return PodRows.scan(path)
    from fastsim.workload.mapped_pods import import_table

    return import_table(path)


def _is_own(path: str) -> bool:
    """Whether a CSV file has our own columns; InputError for one with neither those nor any of an openb list."""
    from fastsim.foundation.csv_table import first_row
    from fastsim.workload import schema as s
    from fastsim.workload.importers.openb import POD_COLUMNS

    header = [] if path.endswith(".parquet") else first_row(path)
    if header and s.SUBMIT_S not in header and not set(header) & POD_COLUMNS.keys():
        found, expected = f"columns {', '.join(header)}", f"those of an openb list, or {s.SUBMIT_S} and {s.NUM_GPU}"
        do = f"name them: csv:{path}?map={s.SUBMIT_S}=COLUMN,{s.NUM_GPU}=COLUMN"
        raise InputError(f"{path}:1", found, expected, do)
    return s.SUBMIT_S in header


def _generator(kind: str) -> Callable[..., PodRows]:
    from fastsim.workload.generators.recipes import GENERATORS

    if kind not in GENERATORS:
        where, expected = f"workload 'synth:{kind}'", f"one of {', '.join(GENERATORS)}"
        raise ScenarioError(where, "an unknown generator", expected, suggestion(kind, GENERATORS))
    generator: Callable[..., PodRows] = GENERATORS[kind]
    return generator


def in_memory(pods: PodRows) -> PodRows:
    """The same pods, read once and held, if they are not too many; generated jobs that never end stay as they are."""
    few = pods.rows is not None and pods.rows <= HELD_ROWS
    if not few or isinstance(pods.source, Held) or pods.endless() is not None:
        return pods
    table = pods.table()
    held = PodRows(Held(table), pods.columns, name=pods.name, rows=table.num_rows, metadata=pods.metadata)
    held.snapshot, held.population = pods.snapshot, pods.population
    return held

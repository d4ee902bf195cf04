"""The meaning of the texts for clusters, workloads and typical pods.

Every text is ``HEAD`` or ``HEAD?name=value&name=value``. A head that names an existing file is a file.

================  ==========================================================================================
cluster           ``openb``, ``openb-all`` · ``openb:1000?seed=3`` (scaled) · ``uniform?nodes=8&gpu=T4&gpus=4``
                  · ``uniform?nodes=8&gpu=A100&mig=7*1g.10gb`` (partitioned) · ``mix?g2=10&t4=4&seed=1``
                  · ``gavel:36:36:36?per_server=4:4:4`` (GPUs of v100, p100 and k80)
                  · ``sia:6:2:3`` (machines with T4, A100 and RTX 2080 Ti, named aws, dgx-ext and rtx)
                  · ``synergy:16?cpus=24`` (servers of 8 GPUs) · ``synergy:FILE.ini``
                  · ``kubernetes:PATH`` (objects as YAML or JSON, a file or folder, or several: ``A,B``, with the pods
                  that run there; ``empty=true``: without them)
                  · a Parquet or CSV file · ``csv:FILE?map=num_gpu=gpus`` (under other names)
                  · ``openb:nodes.csv`` (an openb node list) · ``pai:FILE``, ``alibaba:FILE``
                  (nodes of published traces);
                  every one takes ``watts=FILE``, a table of GPU and CPU models, and ``shuffle=SEED``,
                  another order of the nodes
workload          ``synth:openb?pods=1000&seed=1`` (``load=1``: as much demand as GPUs of the run)
                  · ``synth:gavel?jobs=1000&rate_per_hour=6&seed=1``
                  · ``synth:synergy?jobs=1000&rate_per_hour=9&log=10000``
                  · ``synth:detectors?jobs=30&over=50`` (pods that share GPUs)
                  · a Parquet file · ``csv:FILE?map=submit_s=start,num_gpu=gpus`` (a table under other names, as in
                  `cluster.column_mapping`, with ``where=``, ``origin=``) · an openb pod list (CSV)
                  · a Gavel trace (``.trace``, ``gavel:FILE``)
                  · ``kubernetes:PATH?nodes=PATH`` (pods, and their nodes if those are in another file;
                  ``as=trace``: at their recorded times, finished ones included)
                  · a Synergy trace (``synergy:FILE``) · a Philly log (``philly:FILE``)
                  · a job list of Sia or Pollux (``sia:FILE``) · a published trace (``helios:FILE``, ``acme:FILE``,
                  ``pai:FILE``, ``swf:FILE``, ``slurm:FILE``, ``alibaba:FILE``, ``tiresias:FILE``, ``opendc:FOLDER``;
                  ``where=gpu_num>0`` keeps rows, further options as in the module of its importer);
                  every one takes ``tune=1.3`` (GPU demand relative to the cluster) and ``tune_seed=0``, and
                  ``oversized=drop`` or ``shrink`` for jobs on more GPUs than the cluster has of one model
typical pods      a workload text, or ``same`` for the run's own, with ``threshold=95``, ``step=1``,
                  ``cpu_pods=true`` and ``gpu_weight=0``; or a Parquet file of typical pods
================  ==========================================================================================
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fastsim.errors import InputError, ScenarioError, kind_of, reading, short, suggestion
from fastsim.foundation.limits.quantities import seconds_of
from fastsim.foundation.object_cache import OBJECTS
from fastsim.foundation.option_texts import named, names_file, names_folder, parted

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.hardware.model_catalog import Catalog
    from fastsim.workload import Workload
    from fastsim.workload.typical_pods import TypicalPods

TRACES = ("helios", "acme", "pai", "swf", "slurm", "alibaba", "tiresias", "opendc")
"""Published traces whose importers go by name, `helios:FILE`."""
HELD_ROWS = 1_000_000
"""Workloads of at most so many rows are read into memory; longer ones are streamed by every run."""

PRESETS = {
    "openb": "1,213 nodes with 6,212 GPUs of seven models, as published with the openb traces",
    "openb-all": "openb with its 310 nodes without GPUs",
    "openb:NODES": "openb's mix of nodes in another size, interleaved by seed=0",
    "uniform": "equal nodes: nodes=, gpu=, gpus=8, cpu_milli=96000, memory_mib=393216, mig=",
    "mix": "nodes by type, such as g2=10&t4=4, interleaved if seed= is given",
    "gavel:V100:P100:K80": "GPUs of v100, p100 and k80, per_server=1:1:1 of them on a node",
    "sia:AWS:DGX:RTX": "machines of the Sia experiments: 4 T4, 8 A100 or 8 RTX 2080 Ti each",
    "synergy:SERVERS": "servers of 8 GPUs, 500 GB, 500 MB/s of storage and cpus=24, or those of an INI file",
}
"""Cluster texts that need no file, and what they are."""

SYNTHETIC = {
    "synth:openb": "pods drawn like those of the openb traces: pods=, seed= and more",
    "synth:gavel": "training jobs as Gavel's simulator draws them: jobs=, rate_per_hour=, seed= and more",
    "synth:synergy": "training jobs as Synergy's simulator makes them: jobs=, rate_per_hour=, log= and more",
    "synth:gavel-trace": "short jobs as Gavel's trace generator draws them: jobs=, rate_per_hour=, seed= and more",
    "synth:detectors": "equal pods that share GPUs and declare over= per cent too much: jobs=, over=, unit= and more",
    "synth:sia": "adaptive jobs like those of the Sia experiments: jobs=, style=, rate_per_hour=, seed= and more",
}
"""Workload texts that need no file, and what they are."""

TYPICAL_OPTIONS = ("threshold", "step", "cpu_pods", "gpu_weight")
TUNE_OPTIONS = ("tune", "tune_seed")
JSON = ("kubernetes", "philly", "slurm")
"""Kinds of workloads that are JSON files."""
TABLE, MAP = "csv", "map"
"""Head of a table under other names, and its option for these."""
OVERSIZED = "oversized"
"""Option of every workload, see `oversized_pods.fitting`."""
SAME = ("", "same")
OF_A_CLUSTER = "synth:openb"
"""Generator whose option `load` is relative to a cluster: that of the run, unless `cluster=` names another."""
CLUSTER_OPTIONS = ("watts", "shuffle")


class OfferedPods(NamedTuple):
    """The pods a run is offered, and the pods they were tuned from (typical pods come from those)."""

    workload: Workload
    untuned: Workload


def cluster_from(source: Any) -> Cluster:
    """The cluster a text stands for; a cluster is returned as it is."""
    from fastsim.cluster.cluster import Cluster

    if isinstance(source, Cluster):
        return source
    with reading(f"cluster {short(source)}", "a cluster that can be read"):
        return OBJECTS.cached(("cluster", str(source)), lambda: _cluster_of(source))


def _cluster_of(source: Any) -> Cluster:
    head, options = _parts("cluster", source)
    catalog, seed = _catalog(options.pop("watts", None)), options.pop("shuffle", None)
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or seed < 0):
        raise ScenarioError(f"cluster {source!r}", f"shuffle={seed}", "a whole number of 0 or more")
    if head.startswith("kubernetes:") and catalog is not None:
        # Parts of GPUs, and products under other names, draw what their models do in the table.
        options, catalog = {**options, "catalog": catalog}, None
    cluster = _built_cluster(head, options, str(source))
    cluster = cluster if seed is None else cluster.shuffled(seed)
    return cluster if catalog is None else cluster.with_catalog(catalog)


def is_relative(source: Any) -> bool:
    """Whether a workload is a text whose load is relative to the cluster beside it."""
    if not isinstance(source, str) or not source.strip().startswith(OF_A_CLUSTER):
        return False
    try:
        return _is_relative(*_parts("workload", source))
    except ScenarioError:  # the mistake is found where the text is read
        return False


def _is_relative(head: str, options: Mapping[str, Any]) -> bool:
    return head == OF_A_CLUSTER and "load" in options and "cluster" not in options


def workload_from(source: Any, cluster: Cluster | None = None) -> OfferedPods:
    """The pods of a text, tuned to the cluster if the text has that option."""
    from fastsim.workload import Workload

    if isinstance(source, Workload):
        whole = _on(source, cluster)
        return OfferedPods(whole, whole)
    head, options = _parts("workload", source)
    tuning = {name: options.pop(name) for name in TUNE_OPTIONS if name in options}
    oversized = options.pop(OVERSIZED, None)
    loaded = cluster is not None and _is_relative(head, options)
    beside = {"cluster": cluster} if loaded else {}
    size = cluster.total_gpu_milli if cluster is not None and loaded else None
    key = ("pods", _joined(head, options), size)
    untuned = OBJECTS.cached(key, lambda: _opened_pods(head, {**options, **beside}))
    if oversized is not None and cluster is not None:
        from fastsim.workload.oversized_pods import fitting

        untuned = fitting(untuned, cluster, str(oversized))
    ratio, seed = tuning.get("tune", 0), tuning.get("tune_seed", 0)
    numbers = isinstance(ratio, int | float) and isinstance(seed, int) and not {type(ratio), type(seed)} & {bool}
    if not numbers or not 0 <= ratio < math.inf or seed < 0:
        found, expected = f"tune={ratio}, tune_seed={seed}", "a ratio (0 = as they are) and a whole number, 0 or more"
        raise ScenarioError(f"workload {source!r}", found, expected)
    if not ratio or cluster is None:
        whole = _on(untuned, cluster)
        return OfferedPods(whole, whole)
    capacity = cluster.total_gpu_milli
    tuned_key = ("tuned", _joined(head, options), ratio, seed, capacity, oversized)
    tuned = OBJECTS.cached(tuned_key, lambda: untuned.shuffled(seed).tune(ratio, capacity, seed))
    return OfferedPods(_on(tuned, cluster), untuned)


def _on(offered: Workload, cluster: Cluster | None) -> Workload:
    """The pods with those that run on the cluster already."""
    if cluster is None or cluster.snapshot is None:
        return offered
    from fastsim.workload.importers.running_pods import with_running

    return with_running(offered, cluster)


class RowsLeftOut(UserWarning):
    """A workload lacks rows of its source that its importer cannot use, such as jobs that have not ended."""


def _opened_pods(head: str, options: Mapping[str, Any]) -> Workload:
    with reading(f"workload {head!r}", "pods that can be read"):
        pods = _read_pods(head, dict(options))
        left_out = int(pods.metadata.get("fastsim.left_out", 0))
        if left_out and "where" not in options:
            rows = "1 row" if left_out == 1 else f"{left_out:,} rows"
            text = f"{head}: {rows} left out, for which this does not hold: {pods.metadata['fastsim.where']}"
            warnings.warn(text, RowsLeftOut, stacklevel=2)
        return in_memory(pods) if OBJECTS.caching else pods


def typical_from(source: Any, untuned: Workload, cluster: Cluster | None = None) -> TypicalPods:
    """The typical pods a text stands for; nothing means those of the run's own workload."""
    from fastsim.workload import Workload
    from fastsim.workload.typical_pods import TypicalPods

    if isinstance(source, TypicalPods):
        return source
    if source is None or isinstance(source, Workload):
        return _typical_of(source or untuned)
    head, options = _parts("typical", source)
    if head.endswith(".parquet") and _is_typical_file(head):
        _refuse_options("typical", options, ())
        return TypicalPods.from_parquet(head)
    chosen = {name: options.pop(name) for name in TYPICAL_OPTIONS if name in options}
    if head in SAME:
        _refuse_options("typical", options, TYPICAL_OPTIONS)
        return _typical_of(untuned, **chosen)
    return _typical_of(workload_from(_joined(head, options), cluster).workload, **chosen)


def _typical_of(workload: Workload, **chosen: Any) -> TypicalPods:
    """The typical pods of a workload, counted once for pods in memory."""
    from fastsim.workload.typical_pods import TypicalPods

    key = ("typical", *sorted(chosen.items()))
    return workload.found(key, lambda: TypicalPods.of(workload, **chosen))


def _built_cluster(head: str, options: dict[str, Any], text: str) -> Cluster:
    from fastsim.cluster.cluster import Cluster

    if names_file(head):
        _refuse_options("cluster", options, CLUSTER_OPTIONS)
        _refuse_objects("cluster", head, ("kubernetes",))
        if head.endswith(".ini"):
            return Cluster.from_synergy(head)
        return Cluster.from_parquet(head) if head.endswith(".parquet") else Cluster.from_csv(head)
    if head in ("openb", "openb-all"):
        _refuse_options("cluster", options, CLUSTER_OPTIONS)
        return Cluster.preset(head)
    if head in ("uniform", "mix"):
        return _cluster_called(text, getattr(Cluster, head), options)
    kind, _, rest = head.partition(":")
    if kind in ("openb", "openb-all") and rest.isdecimal():
        return _cluster_called(text, Cluster.scaled, {**options, "preset": kind, "nodes": int(rest)})
    if kind == "openb" and names_file(rest):
        _refuse_options("cluster", options, CLUSTER_OPTIONS)
        return Cluster.from_openb(rest)
    if kind == "gavel" and rest:
        return _cluster_called(text, Cluster.from_gavel, {**options, "spec": rest})
    if kind == "sia" and rest:
        from fastsim.cluster.published_specs import sia_cluster

        return _cluster_called(text, sia_cluster, {**options, "spec": rest})
    if kind == "synergy" and rest:
        return _cluster_called(text, Cluster.from_synergy, {**options, "spec": rest})
    if kind == "kubernetes" and rest:
        return _cluster_called(text, Cluster.from_kubernetes, {**options, "path": rest})
    if kind == TABLE and rest:
        return _cluster_called(text, Cluster.from_csv, _mapped(rest, options))
    if kind in ("pai", "alibaba") and rest:
        from fastsim.workload.published_traces import import_nodes

        _refuse_options("cluster", options, CLUSTER_OPTIONS)
        return import_nodes(kind, rest)
    raise _unknown("cluster", head, PRESETS)


def _cluster_called(text: str, maker: Callable[..., Cluster], options: Mapping[str, Any]) -> Cluster:
    cluster: Cluster = _called(f"cluster {text!r}", maker, options)
    return cluster


def _read_pods(head: str, options: dict[str, Any]) -> Workload:
    from fastsim.workload import Workload

    kind, _, rest = head.partition(":")
    if kind == "synth" and rest:
        generated: Workload = _called(f"workload {head!r}", _generator(rest), options)
        return generated
    if kind == "kubernetes" and rest:
        if "as" in options:
            options["read_as"] = options.pop("as")
        objects: Workload = _called(f"workload {head!r}", _kubernetes_pods, {**options, "path": rest})
        return objects
    if kind == TABLE and rest:
        mapped: Workload = _called(f"workload {head!r}", Workload.from_csv, _mapped(rest, options))
        return mapped
    if kind in TRACES and rest:
        from fastsim.workload.published_traces import import_trace

        return import_trace(kind, rest, **options)
    path = rest if kind in ("openb", "gavel", "synergy", "philly", "sia") and rest else head
    if not names_file(path):
        raise _unknown("workload", path, SYNTHETIC)
    if path == head:
        _refuse_objects("workload", head, ("kubernetes",) if head.endswith((".yaml", ".yml")) else JSON)
    if path.endswith(".parquet") and path == head:
        _refuse_options("workload", options, TUNE_OPTIONS)
        return Workload.scan(path)
    if kind == "gavel" or path.endswith((".trace", ".trace.gz")):
        _refuse_options("workload", options, TUNE_OPTIONS)
        return Workload.from_gavel(path)
    if kind == "sia" and path == rest:
        _refuse_options("workload", options, TUNE_OPTIONS)
        return Workload.from_sia(path)
    if kind == "synergy":
        _refuse_options("workload", options, TUNE_OPTIONS)
        return Workload.from_synergy(path)
    if kind == "philly":
        logged: Workload = _called(f"workload {head!r}", Workload.from_philly, {**options, "path": path})
        return logged
    if "drop" in options:
        options["drop"] = str(options["drop"]).split(",")
    from fastsim.workload.importers.openb import import_pods

    imported: Workload = _called(f"workload {head!r}", import_pods, {**options, "path": path})
    return imported


def _mapped(path: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `from_csv` for a table under other names."""
    from fastsim.cluster.column_mapping import columns_of

    maps = [str(value) for name, value in options.items() if name == MAP]
    return {"data": path, "columns": columns_of(maps)} | {k: value for k, value in options.items() if k != MAP}


def _kubernetes_pods(path: str, nodes: str | None = None, memory_unit: str = "GiB", read_as: str = "now") -> Workload:
    from fastsim.workload import Workload

    return Workload.from_kubernetes(path, *([nodes] if nodes else []), memory_unit=memory_unit, read_as=read_as)


def _generator(kind: str) -> Callable[..., Workload]:
    from fastsim.workload.generators.openb import GENERATORS

    if kind not in GENERATORS:
        raise ScenarioError(f"workload 'synth:{kind}'", "an unknown generator", f"one of {', '.join(GENERATORS)}")
    generator: Callable[..., Workload] = GENERATORS[kind]
    return generator


def _called(where: str, maker: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """The result of a maker; options that it does not have, or needs, are one clear error."""
    signature = inspect.signature(maker)
    if not any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
        _refuse_options(where, options, tuple(signature.parameters))
    try:
        signature.bind(**options)
    except TypeError as error:
        raise ScenarioError(where, str(error), f"options of ({', '.join(signature.parameters)})") from None
    try:
        return maker(**options)
    except TypeError as error:
        raise ScenarioError(where, str(error), "values of the right kind") from None


def _parts(field: str, text: Any) -> tuple[str, dict[str, Any]]:
    if not isinstance(text, str | Path):
        kind = "Cluster" if field == "cluster" else "Workload"
        raise ScenarioError(field, kind_of(text), f"a text, a path or a {kind}", _written(text, kind))
    head, words = parted(text)
    return head, settings_of(f"{field} {text!r}", words)


def _written(value: Any, kind: str) -> str:
    """How to make an object of fastsim from a table of the user's."""
    if isinstance(value, type):
        return "write the object and not its class: fs.Workload.synth(...), fs.Cluster.uniform(...)"
    library = type(value).__module__.partition(".")[0]
    if library == "pandas":
        return f"write fs.{kind}.from_pandas(frame)"
    if library == "polars":
        return f"write fs.{kind}.from_polars(frame)"
    if hasattr(value, "__arrow_c_stream__"):
        return f"write fs.{kind}.from_arrow(table)"
    if isinstance(value, Mapping | list | tuple):
        return f"write fs.{kind}.from_polars(polars.DataFrame(rows))"
    return ""


def settings_of(where: str, words: Iterable[str]) -> dict[str, Any]:
    """Options that stand as `name=value`, with numbers and true or false for what looks like them."""
    return {name: _value(name, value) for name, value in named(filter(None, words), where).items()}


def _value(name: str, text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    seconds = seconds_of(text) if name.endswith("_s") else None
    return text if seconds is None else seconds


def _joined(head: str, options: Mapping[str, Any]) -> str:
    words = (f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in options.items())
    return f"{head}?{'&'.join(words)}" if options else head


def _catalog(watts: Any) -> Catalog | None:
    if watts is None:
        return None
    from fastsim.hardware.model_catalog import Catalog

    if not names_file(str(watts)):
        raise InputError(f"watts {watts!r}", "no such file", "a CSV table of GPU and CPU models")
    return Catalog.from_csv(str(watts))


def _is_typical_file(path: str) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return bool(pq.read_schema(path).metadata.get(b"fastsim.schema") == b"typical_pods")
    except (OSError, pa.ArrowException, AttributeError):
        return False


def _refuse_options(where: str, options: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in options:
        if name not in known:
            expected = f"options among {', '.join(known)}" if known else "no options"
            raise ScenarioError(where, f"unknown option {name!r}", expected, suggestion(name, known))


def _unknown(field: str, head: str, known: Mapping[str, str]) -> InputError:
    found = "neither a file nor a known name"
    if names_folder(head):
        found = "a folder"
    return InputError(f"{field} {head!r}", found, f"a file or one of {', '.join(known)}", suggestion(head, known))


def _refuse_objects(field: str, path: str, kinds: Sequence[str]) -> None:
    """Refuse YAML and JSON, which are no tables, with the texts that name their kind."""
    if path.endswith((".yaml", ".yml", ".json", ".json.gz")):
        raise InputError(
            f"{field} {path!r}", "no table", f"its kind: {' or '.join(f'{kind}:{path}' for kind in kinds)}"
        )


def in_memory(workload: Workload) -> Workload:
    """The same pods, read once and held, if they are not too many; generated jobs that never end stay as they are."""
    from fastsim.workload.workload import Held, Workload

    few = workload.rows is not None and workload.rows <= HELD_ROWS
    if not few or isinstance(workload.source, Held) or workload.endless() is not None:
        return workload
    table = workload.table()
    held = Workload(Held(table), workload.columns, name=workload.name, rows=table.num_rows, metadata=workload.metadata)
    held.snapshot, held.population = workload.snapshot, workload.population
    return held

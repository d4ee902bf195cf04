"""The meaning of the texts for clusters.

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
                  every one takes ``watts=FILE``, a table of GPU and CPU models, and ``shuffle=SEED``, another
                  order of the nodes: that of FGD's simulator, after the pods if ``tune_seed`` is the same
================  ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fastsim.errors import InputError, ScenarioError, reading, short
from fastsim.foundation.limits.quantities import GO_SEEDS, is_go_seed
from fastsim.foundation.object_cache import OBJECTS
from fastsim.foundation.option_texts import (
    called,
    names_file,
    refuse_objects,
    refuse_options,
    source_parts,
    unknown_name,
)

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.hardware.model_catalog import Catalog

PRESETS = {
    "openb": "1,213 nodes with 6,212 GPUs of seven models, as published with the openb traces",
    "openb-all": "openb with its 310 nodes without GPUs",
    "openb:NODES": "openb's mix of nodes in another size, interleaved by seed=0",
    "uniform": "equal nodes: nodes=, gpu=, gpus=8, cpu_milli=96000, memory_mib=393216, mig=",
    "mix": "nodes by type, such as g2=10&t4=4 or a100=4&h100=2, interleaved if seed= is given",
    "gavel:V100:P100:K80": "GPUs of v100, p100 and k80, per_server=1:1:1 of them on a node",
    "sia:AWS:DGX:RTX": "machines of the Sia experiments: 4 T4, 8 A100 or 8 RTX 2080 Ti each",
    "synergy:SERVERS": "servers of 8 GPUs, 500 GB, 500 MB/s of storage and cpus=24, or those of an INI file",
}
"""Cluster texts that need no file, and what they are."""

CLUSTER_OPTIONS = ("watts", "shuffle")
"""Options of every cluster."""
ARGUMENTS = {"gavel": "spec", "sia": "spec", "synergy": "spec", "kubernetes": "path"}
"""Kinds of clusters, and the argument of their makers that stands behind the colon."""
TABLE, MAP = "csv", "map"
"""Head of a table under other names, and its option for these."""


def cluster_from(source: Any) -> Cluster:
    """The cluster a text stands for; a cluster is returned as it is."""
    from fastsim.cluster.cluster import Cluster

    if isinstance(source, Cluster):
        return source
    with reading(f"cluster {short(source)}", "a cluster that can be read"):
        return OBJECTS.cached(("cluster", str(source)), lambda: _cluster_of(source))


def _cluster_of(source: Any) -> Cluster:
    head, options = source_parts("cluster", source)
    catalog, seed = _catalog(options.pop("watts", None)), options.pop("shuffle", None)
    if seed is not None and not is_go_seed(seed):
        raise ScenarioError(f"cluster {source!r}", f"shuffle={seed}", GO_SEEDS)
    # Makers take the table for models that only it knows: parts of GPUs, and products under other names.
    cluster = _built_cluster(head, options, str(source), {} if catalog is None else {"catalog": catalog})
    cluster = cluster if seed is None else cluster.shuffled(seed)
    return cluster if catalog is None or head.startswith("kubernetes:") else cluster.with_catalog(catalog)


def _built_cluster(head: str, options: dict[str, Any], text: str, beside: Mapping[str, Any]) -> Cluster:
    from fastsim.cluster.cluster import Cluster

    kind, _, rest = head.partition(":")
    if names_file(head):
        return _of_a_file(head, options, beside)
    if head in ("openb", "openb-all"):
        refuse_options("cluster", options, CLUSTER_OPTIONS)
        return Cluster.preset(head)
    if kind in ("openb", "openb-all") and rest.isdecimal():
        return _cluster_called(text, Cluster.scaled, {**options, "preset": kind, "nodes": int(rest)})
    if kind == "openb" and names_file(rest):
        refuse_options("cluster", options, CLUSTER_OPTIONS)
        return Cluster.from_openb(rest, **beside)
    if kind in ("pai", "alibaba") and rest:
        from fastsim.cluster.published_nodes import import_nodes

        refuse_options("cluster", options, CLUSTER_OPTIONS)
        return import_nodes(kind, rest)
    if head in ("uniform", "mix"):
        return _cluster_called(text, getattr(Cluster, head), {**options, **beside})
    if kind == TABLE and rest:
        return _cluster_called(text, Cluster.from_csv, {**table_options(options), **beside, "data": rest})
    if kind in ARGUMENTS and rest:
        return _cluster_called(text, _maker(kind), {**options, **beside, ARGUMENTS[kind]: rest})
    raise unknown_name("cluster", head, PRESETS)


def _of_a_file(path: str, options: Mapping[str, Any], beside: Mapping[str, Any]) -> Cluster:
    from fastsim.cluster.cluster import Cluster

    refuse_options("cluster", options, CLUSTER_OPTIONS)
    refuse_objects("cluster", path, ("kubernetes",))
    if path.endswith(".ini"):
        return Cluster.from_synergy(path, **beside)
    return (Cluster.from_parquet if path.endswith(".parquet") else Cluster.from_csv)(path, **beside)


def _maker(kind: str) -> Callable[..., Cluster]:
    from fastsim.cluster.cluster import Cluster
    from fastsim.cluster.published_specs import sia_cluster

    maker: Callable[..., Cluster] = sia_cluster if kind == "sia" else getattr(Cluster, f"from_{kind}")
    return maker


def _cluster_called(text: str, maker: Callable[..., Cluster], options: Mapping[str, Any]) -> Cluster:
    cluster: Cluster = called(f"cluster {text!r}", maker, options)
    return cluster


def table_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of `from_csv` for a table under other names."""
    from fastsim.cluster.column_mapping import columns_of

    maps = [str(value) for name, value in options.items() if name == MAP]
    return {"columns": columns_of(maps)} | {name: value for name, value in options.items() if name != MAP}


def _catalog(watts: Any) -> Catalog | None:
    if watts is None:
        return None
    from fastsim.hardware.model_catalog import Catalog

    if not names_file(str(watts)):
        raise InputError(f"watts {watts!r}", "no such file", "a CSV table of GPU and CPU models")
    return Catalog.from_csv(str(watts))

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
from typing import TYPE_CHECKING, Any, NamedTuple

from fastsim.errors import InputError, ScenarioError
from fastsim.foundation.limits.quantities import GO_SEEDS, is_go_seed
from fastsim.foundation.option_texts import (
    names_file,
    refuse_objects,
    refuse_options,
    source_parts,
    unknown_name,
)

if TYPE_CHECKING:
    from fastsim.cluster.node_table import Nodes
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


class ClusterText(NamedTuple):
    """What a text says: a maker of clusters and its options, another catalogue, the seed of another order of the nodes.

    The maker is a method of `Cluster` by its name, or a function that reads nodes.
    """

    maker: str | Callable[..., Nodes]
    options: dict[str, Any]
    catalog: Catalog | None = None
    seed: int | None = None


def cluster_text(source: Any) -> ClusterText:
    """What the text of a cluster says."""
    head, options = source_parts("cluster", source)
    catalog, seed = _catalog(options.pop("watts", None)), options.pop("shuffle", None)
    if seed is not None and not is_go_seed(seed):
        raise ScenarioError(f"cluster {source!r}", f"shuffle={seed}", GO_SEEDS)
    # Makers take the table for models that only it knows: parts of GPUs, and products under other names.
    found = _made_by(head, options, {} if catalog is None else {"catalog": catalog})
    return found._replace(catalog=None if head.startswith("kubernetes:") else catalog, seed=seed)


def _made_by(head: str, options: dict[str, Any], beside: Mapping[str, Any]) -> ClusterText:
    kind, _, rest = head.partition(":")
    if names_file(head):
        return _of_a_file(head, options, beside)
    if head in ("openb", "openb-all"):
        refuse_options("cluster", options, CLUSTER_OPTIONS)
        return ClusterText("preset", {"name": head})
    if kind in ("openb", "openb-all") and rest.isdecimal():
        return ClusterText("scaled", {**options, "preset": kind, "nodes": int(rest)})
    if kind == "openb" and names_file(rest):
        refuse_options("cluster", options, CLUSTER_OPTIONS)
        return ClusterText("from_openb", {"path": rest, **beside})
    if kind in ("pai", "alibaba") and rest:
        from fastsim.cluster.published_nodes import import_nodes

        refuse_options("cluster", options, CLUSTER_OPTIONS)
        return ClusterText(import_nodes, {"kind": kind, "path": rest})
    if head in ("uniform", "mix"):
        return ClusterText(head, {**options, **beside})
    if kind == TABLE and rest:
        return ClusterText("from_csv", {**table_options(options), **beside, "data": rest})
    if kind in ARGUMENTS and rest:
        return ClusterText(_maker(kind), {**options, **beside, ARGUMENTS[kind]: rest})
    raise unknown_name("cluster", head, PRESETS)


def _of_a_file(path: str, options: Mapping[str, Any], beside: Mapping[str, Any]) -> ClusterText:
    refuse_options("cluster", options, CLUSTER_OPTIONS)
    refuse_objects("cluster", path, ("kubernetes",))
    if path.endswith(".ini"):
        return ClusterText("from_synergy", {"spec": path, **beside})
    if path.endswith(".parquet"):
        return ClusterText("from_parquet", {"path": path, **beside})
    return ClusterText("from_csv", {"data": path, **beside})


def _maker(kind: str) -> str | Callable[..., Nodes]:
    from fastsim.cluster.published_specs import sia_nodes

    return sia_nodes if kind == "sia" else f"from_{kind}"


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

"""The nodes and pods of a run, and its typical pods, from what a scenario says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from fastsim.cluster.cluster import Cluster
from fastsim.foundation.object_cache import OBJECTS
from fastsim.foundation.option_texts import joined, refuse_options, source_parts
from fastsim.workload import Workload
from fastsim.workload.texts import pods_from

if TYPE_CHECKING:
    from fastsim.workload.typical_pods import TypicalPods

TYPICAL_OPTIONS = ("threshold", "step", "cpu_pods", "gpu_weight")
SAME = ("", "same")


class OfferedPods(NamedTuple):
    """The pods a run is offered, and the pods they were tuned from (typical pods come from those)."""

    workload: Workload
    untuned: Workload


class RunInputs(NamedTuple):
    """The nodes of a run in its order, the pods it is offered, and the pods they were tuned from."""

    cluster: Cluster
    workload: Workload
    untuned: Workload


def inputs_from(cluster: Any, workload: Any) -> RunInputs:
    """The nodes and pods of two texts; shuffled nodes are drawn after pods that the same seed shuffled or tuned."""
    nodes = Cluster.from_text(cluster)
    offered, untuned = workload_from(workload, nodes)
    drawn = _drawn_after(nodes, cluster, offered)
    return RunInputs(drawn if offered.snapshot is None else drawn.with_claims(offered.snapshot), offered, untuned)


def nodes_from(cluster: Any, workload: Any) -> Cluster:
    """The nodes of a run; its pods are read only if the order of the nodes depends on them."""
    shuffled = isinstance(cluster, str) and "shuffle" in source_parts("cluster", cluster)[1]
    return inputs_from(cluster, workload).cluster if shuffled else Cluster.from_text(cluster)


def _drawn_after(nodes: Cluster, source: Any, pods: Workload) -> Cluster:
    from fastsim.foundation.draws.go_random import drawn_by

    drawn = drawn_by(pods)
    if not isinstance(source, str) or drawn is None or drawn[0] != source_parts("cluster", source)[1].get("shuffle"):
        return nodes
    return OBJECTS.cached(("cluster", source, drawn), lambda: nodes.shuffled(drawn[0], after=pods))


def workload_from(source: Any, cluster: Cluster | None = None) -> OfferedPods:
    """The workload of a text, tuned to the cluster if the text has that option."""
    found = pods_from(source, cluster)
    offered = Workload.of(found.pods)
    return OfferedPods(offered, offered if found.untuned is found.pods else Workload.of(found.untuned))


def typical_from(source: Any, untuned: Workload, cluster: Cluster | None = None) -> TypicalPods:
    """The typical pods a text stands for; nothing means those of the run's own workload."""
    from fastsim.workload.typical_pods import TypicalPods

    if isinstance(source, TypicalPods):
        return source
    if source is None or isinstance(source, Workload):
        return _typical_of(untuned if source is None else source)
    head, options = source_parts("typical", source)
    if head.endswith(".parquet") and _is_typical_file(head):
        refuse_options("typical", options, ())
        return TypicalPods.from_parquet(head)
    chosen = {name: options.pop(name) for name in TYPICAL_OPTIONS if name in options}
    if head in SAME:
        refuse_options("typical", options, TYPICAL_OPTIONS)
        return _typical_of(untuned, **chosen)
    return _typical_of(workload_from(joined(head, options), cluster).workload, **chosen)


def _typical_of(workload: Workload, **chosen: Any) -> TypicalPods:
    """The typical pods of a workload, counted once for pods in memory."""
    from fastsim.workload.typical_pods import TypicalPods

    key = ("typical", *sorted(chosen.items()))
    return workload.found(key, lambda: TypicalPods.of(workload, **chosen))


def _is_typical_file(path: str) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return bool(pq.read_schema(path).metadata.get(b"fastsim.schema") == b"typical_pods")
    except (OSError, pa.ArrowException, AttributeError):
        return False

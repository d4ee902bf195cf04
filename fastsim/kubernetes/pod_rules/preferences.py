"""Preferences of Kubernetes' pods that wait, which make nodes better or worse and forbid none, as a column of a table.

They are what kube-scheduler scores: preferred node affinity, taints PreferNoSchedule that a pod does not tolerate,
spread with ScheduleAnyway, preferred affinity and anti-affinity between pods in either direction, required affinity of
other pods to the pod, and images that nodes have. Pods on nodes have none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from fastsim.errors import InputError
from fastsim.hardware.node_constraints import Constraint, Preference
from fastsim.kubernetes.controllers import PodManifest, pod_specs
from fastsim.kubernetes.nodes import image_label
from fastsim.kubernetes.objects import Manifest, mapping, sequence
from fastsim.kubernetes.pod_rules.kept_parts import KeptParts
from fastsim.kubernetes.pod_rules.node_affinity import (
    CHOOSING,
    SOFT,
    Places,
    choosing_parts,
    preference_weight,
    term_expressions,
    untolerated,
)
from fastsim.kubernetes.pod_rules.topology_spread import LOOSE, rules_with


def preference_columns(
    pod: PodManifest, places: Places, about_others: Sequence[Preference], kept: KeptParts
) -> dict[str, Any]:
    """The preferences of a pod, and the sets that it is in, which follow when all pods are known, as columns."""
    wanted: list[Preference] = []
    if not pod.node:
        images = image_labels(pod.spec, pod.where) if places.images else []
        made = partial(_of_nodes, pod.spec, pod.where, places, images)
        whole = [] if images else [pod.spec.get(name) for name in CHOOSING]
        wanted += kept.of("preferences", lambda: [*choosing_parts(pod.spec, pod.where), images], made, whole=whole)
        wanted += (
            Preference(
                rule="spread",
                weight=1,
                pods=rule["pods"],
                topology=rule["topology"],
                max_skew=rule["max_skew"],
                nodes=_expressions(rule["counted"]),
            )
            for rule in rules_with(pod, LOOSE, places)
        )
        wanted += about_others
    items = kept.same(("preferences", tuple(wanted)), partial(preference_items, wanted))
    return {"preferences": items or None, "preference_sets": None}


def wanted_images(objects: Iterable[Manifest]) -> frozenset[str]:
    """Labels that stand for the images of pods without nodes."""
    wanted: set[str] = set()
    for item in objects:
        with suppress(InputError):  # raised when the pod is read
            for spec in pod_specs(item):
                wanted |= set() if spec.get("nodeName") else set(image_labels(spec, item.where))
    return frozenset(wanted)


def image_labels(spec: Mapping[str, Any], where: str) -> list[str]:
    """For each container, and each volume that is an image, the label that stands for its image on nodes."""
    containers = [one for name in ("initContainers", "containers") for one in sequence(spec, name, where)]
    names = [str(one.get("image") or "") for one in containers]
    volumes = [mapping(one, "image", where) for one in sequence(spec, "volumes", where) if one.get("image")]
    return [image_label(name) for name in (*names, *(str(one.get("reference") or "") for one in volumes))]


def _of_nodes(
    spec: Mapping[str, Any], where: str, places: Places, images: Sequence[str], _: Counter[str]
) -> list[Preference]:
    """Preferences that follow from labels of nodes alone."""
    taints = untolerated(spec, where, places.avoided)
    counted = Counter(images) if places.images & set(images) else {}
    return [
        *_preferred_labels(spec, where),
        *(Preference("taint", nodes=(Constraint(taint.label, "Exists"),)) for taint in taints),
        *(Preference("image", count, topology=label) for label, count in counted.items()),
    ]


def _preferred_labels(spec: Mapping[str, Any], where: str) -> Iterator[Preference]:
    """Preferred node affinity; a term without expressions prefers no node."""
    affinity = mapping(mapping(spec, "affinity", where), "nodeAffinity", where)
    for term in sequence(affinity, SOFT, where):
        weight = preference_weight(term, where)
        expressions = term_expressions(mapping(term, "preference", where), where)
        if expressions:
            yield Preference("labels", weight, nodes=tuple(expressions))


def _expressions(items: Sequence[Mapping[str, Any]]) -> tuple[Constraint, ...]:
    return tuple(Constraint(item["key"], item["op"], tuple(item["values"])) for item in items)


def preference_items(wanted: Sequence[Preference]) -> list[dict[str, Any]]:
    """Preferences as a pod table has them."""
    return [
        one._asdict() | {"nodes": [item._asdict() | {"values": list(item.values)} for item in one.nodes]}
        for one in wanted
    ]  # fmt: skip

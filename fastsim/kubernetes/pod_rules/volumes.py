"""Volumes of Kubernetes' pods: a claim that is bound to a volume of some nodes limits its pods to those nodes.

If any claims are among the objects, a pod whose claim is not one of them fits nowhere. A claim that only one pod may
use is that of the pod on a node, or else of the first pod in line; others fit nowhere. The label of such an expression
is on no node, and says why.

A claim that is not bound waits for its pod if its StorageClass says so: the pod then goes to the topologies that the
class allows, or where nothing is provisioned, to the nodes of a volume that is free. Of other classes a pod waits for
the claim.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fastsim.hardware.node_constraints import ONE_OF, Constraint, conjunction_text
from fastsim.kubernetes.controllers import PodManifest
from fastsim.kubernetes.objects import Manifest, mapping, sequence
from fastsim.kubernetes.pod_rules.node_affinity import node_terms
from fastsim.kubernetes.pod_rules.pod_affinity import texts
from fastsim.kubernetes.quantity import quantity

UNKNOWN = "pods: volumes whose claim or volume is not among the objects"
UNBOUND = "pods: volumes whose claim is not bound yet"
ONE_POD = "ReadWriteOncePod"
"""Access mode of a claim that one pod may use."""
ABSENT, IN_USE = "persistentvolumeclaim:", f"{ONE_POD}:"
IMMEDIATE, NO_VOLUME = "persistentvolumeclaim unbound:", "persistentvolume:"
"""Beginnings of labels of no node: a claim is not there, is used by another pod, is to be bound, or has no volume."""
DELAYED, STATIC = "WaitForFirstConsumer", "kubernetes.io/no-provisioner"
"""Binding mode of claims that wait for their first pod; provisioner of classes whose volumes are made by hand."""
UNBOUND_TEXT = "pod has unbound immediate PersistentVolumeClaims"
"""kube-scheduler's text about a pod with a claim that is bound before it is placed, but is not bound yet."""


class Volumes:
    """Claims and volumes among some objects; ``users`` are their pods, the next in line first."""

    def __init__(
        self, claims: Sequence[Manifest] = (), volumes: Sequence[Manifest] = (), users: Iterable[PodManifest] = (),
        classes: Sequence[Manifest] = (),
    ) -> None:  # fmt: skip
        self._claims = {(str(item.part("metadata").get("namespace") or "default"), item.name): item for item in claims}
        self._volumes = {item.name: item for item in volumes}
        self._classes = {item.name: item for item in classes}
        modes = {key: texts(item.part("spec"), "accessModes", item.where) for key, item in self._claims.items()}
        self._used_by: dict[tuple[str, str], str] = {}
        single = {key for key, listed in modes.items() if ONE_POD in listed}
        for pod in users if single else ():
            for name in _claims_of(pod):
                if (pod.namespace, name) in single:
                    self._used_by.setdefault((pod.namespace, name), pod.name)

    def constraints(self, pod: PodManifest, notices: Counter[str]) -> list[Constraint]:
        """Node expressions of the pod's volumes; a pod with an unknown volume is counted in `notices`."""
        expressions: list[Constraint] = []
        unknown = set()
        for name in _claims_of(pod):
            key = pod.namespace, name
            claim = self._claims.get(key)
            if self._used_by.get(key, pod.name) != pod.name:
                expressions.append(Constraint(IN_USE + name, "Exists"))
            if claim is None and self._claims and name in _named(pod):
                expressions.append(Constraint(ABSENT + name, "Exists"))
                continue
            bound = claim and claim.part("spec").get("volumeName")
            volume = self._volumes.get(str(bound))
            if volume is not None:
                required = volume.part("spec", "nodeAffinity", "required")
                terms = sequence(required, "nodeSelectorTerms", volume.where)
                expressions += node_terms(terms, volume.where)
            elif claim is None or bound:
                unknown.add(UNKNOWN)
            else:
                to_bind = self._to_bind(claim)
                unknown |= {UNBOUND} if to_bind is None else set()
                expressions += to_bind or ()
        notices.update(unknown)
        return list(dict.fromkeys(expressions))

    def _to_bind(self, claim: Manifest) -> list[Constraint] | None:
        """Node expressions of a claim that is not bound; None if its class is not among the objects."""
        wanted = self._classes.get(str(claim.part("spec").get("storageClassName") or ""))
        if wanted is None:
            return None
        if wanted.body.get("volumeBindingMode") != DELAYED:
            return [Constraint(IMMEDIATE + claim.name, "Exists")]
        if wanted.body.get("provisioner") == STATIC:
            free = [volume for volume in self._volumes.values() if _serves(volume, claim, wanted.name)]
            required = [volume.part("spec", "nodeAffinity", "required") for volume in free]
            listed = [sequence(part, "nodeSelectorTerms", claim.where) for part in required]
            if not free:
                return [Constraint(NO_VOLUME + claim.name, "Exists")]
            terms = [term for one in listed for term in one]
            return _under(claim, node_terms(terms, claim.where)) if all(listed) else []
        topologies = sequence(wanted.body, "allowedTopologies", wanted.where)
        return _under(claim, node_terms([_as_node_term(one, wanted.where) for one in topologies], wanted.where))


def _under(claim: Manifest, found: Sequence[Constraint]) -> list[Constraint]:
    """The expressions as one whose label says that they are about the volume of a claim."""
    if not found:
        return []
    values = found[0].values if found[0].op == ONE_OF else (conjunction_text(found),)
    return [Constraint(NO_VOLUME + claim.name, ONE_OF, values)]


def _serves(volume: Manifest, claim: Manifest, wanted: str) -> bool:
    """Whether a volume of a class is free, large enough and of the claim's modes."""
    spec, asked = volume.part("spec"), claim.part("spec")
    modes = set(texts(asked, "accessModes", claim.where)) <= set(texts(spec, "accessModes", volume.where))
    size = quantity(volume.part("spec", "capacity").get("storage") or 0, volume.where)
    needed = quantity(claim.part("spec", "resources", "requests").get("storage") or 0, claim.where)
    taken = bool(spec.get("claimRef")) or volume.part("status").get("phase") in ("Bound", "Released", "Failed")
    return str(spec.get("storageClassName") or "") == wanted and modes and size >= needed and not taken


def _as_node_term(topology: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A term of ``allowedTopologies`` as one of node affinity."""
    items = sequence(topology, "matchLabelExpressions", where)
    return {"matchExpressions": [{"key": i.get("key"), "operator": "In", "values": i.get("values")} for i in items]}


def claim_text(key: str) -> str | None:
    """kube-scheduler's text for a label of ``ABSENT`` or ``IN_USE``; None for another label."""
    if key.startswith(ABSENT):
        return f'persistentvolumeclaim "{key.removeprefix(ABSENT)}" not found'
    if key.startswith(IMMEDIATE):
        return UNBOUND_TEXT
    if key.startswith(NO_VOLUME):
        return "node(s) didn't find available persistent volumes to bind"
    if key.startswith(IN_USE):
        return f"node has pod using PersistentVolumeClaim with the same name and {ONE_POD} access mode"
    return None


def _named(pod: PodManifest) -> list[str]:
    """Claims that the pod names itself; others are created for it."""
    volumes = sequence(pod.spec, "volumes", pod.where)
    return [str(mapping(volume, "persistentVolumeClaim", pod.where).get("claimName")) for volume in volumes]


def _claims_of(pod: PodManifest) -> Iterator[str]:
    """Names of the pod's claims, in its own namespace."""
    for volume in sequence(pod.spec, "volumes", pod.where):
        claim: Mapping[str, Any] = mapping(volume, "persistentVolumeClaim", pod.where)
        if claim.get("claimName"):
            yield str(claim["claimName"])
        elif volume.get("ephemeral"):
            yield f"{pod.name}-{volume.get('name')}"

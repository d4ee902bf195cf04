"""Volumes of Kubernetes' pods: a claim that is bound to a volume of some nodes limits its pods to those nodes.

A volume limits them by its node affinity, and by its own labels of zone and region: where nodes have such labels, a pod
goes to those with the same ones.

If any claims are among the objects, a pod whose claim is not one of them fits nowhere. A claim that only one pod may
use is that of the pod on a node, or else of the first pod in line; others fit nowhere. The label of such an expression
is on no node, and says why.

A claim that is not bound waits for its pod if its StorageClass says so: the pod then goes to the nodes of a volume that
is free, and to the topologies of the class where volumes are provisioned. Several such claims of a pod each need a
volume of their own; the smallest claim takes the smallest volume first. Of other classes a pod waits for the claim.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from fastsim.hardware.node_constraints import ONE_OF, Constraint, conjunction_text
from fastsim.kubernetes.controllers import PodManifest
from fastsim.kubernetes.nodes import label_key
from fastsim.kubernetes.objects import Manifest, mapping, sequence
from fastsim.kubernetes.pod_rules.node_affinity import Labels, allowed, node_terms, under
from fastsim.kubernetes.pod_rules.pod_affinity import selects, texts
from fastsim.kubernetes.quantity import quantity

STORED = ("PersistentVolumeClaim", "PersistentVolume", "StorageClass")
"""Kinds of claims, of volumes and of their classes."""
UNKNOWN = "pods: volumes whose claim or volume is not among the objects"
UNBOUND = "pods: volumes whose claim is not bound yet"
ONE_POD = "ReadWriteOncePod"
"""Access mode of a claim that one pod may use."""
ABSENT, IN_USE = "persistentvolumeclaim:", f"{ONE_POD}:"
IMMEDIATE, NO_VOLUME = "persistentvolumeclaim unbound:", "persistentvolume:"
"""Beginnings of labels of no node: a claim is not there, is used by another pod, is to be bound, or has no volume."""
FILES = "Filesystem"
"""Mode of volumes that do not say theirs."""
DELAYED, STATIC = "WaitForFirstConsumer", "kubernetes.io/no-provisioner"
"""Binding mode of claims that wait for their first pod; provisioner of classes whose volumes are made by hand."""
IN_USE_TEXT = (
    f"node(s) unavailable due to PersistentVolumeClaim with {ONE_POD} access mode already in-use by another pod"
)
"""kube-scheduler's text about a pod with a claim of one pod that another pod has."""
UNBOUND_TEXT = "pod has unbound immediate PersistentVolumeClaims"
"""kube-scheduler's text about a pod with a claim that is bound before it is placed, but is not bound yet."""


SELECTED = "volume.kubernetes.io/selected-node"
"""Annotation of a claim that is being provisioned for a node."""
ZONES = {
    "topology.kubernetes.io/zone": (), "topology.kubernetes.io/region": (),
    "failure-domain.beta.kubernetes.io/zone": ("topology.kubernetes.io/zone",),
    "failure-domain.beta.kubernetes.io/region": ("topology.kubernetes.io/region",),
}  # fmt: skip
"""Labels of volumes and nodes about zones and regions, and the labels of nodes that count where one is missing."""
OF_VOLUME, OF_ZONE = "persistentvolume nodes:", "persistentvolume zone:"
"""Beginnings of keys of expressions for nodes that reach a volume, and for those of its zone; its name follows."""
SEVERAL = "__"
"""The separator of the values of such a label of a volume."""


class Volumes:
    """Claims and volumes among some objects; ``users`` are their pods, the next in line first."""

    def __init__(
        self, claims: Sequence[Manifest] = (), volumes: Sequence[Manifest] = (), classes: Sequence[Manifest] = (),
        users: Iterable[PodManifest] = (), nodes: Sequence[Labels] = (),
    ) -> None:  # fmt: skip
        self._claims = {(_namespace(item), item.name): item for item in claims}
        self._volumes = {item.name: item for item in volumes}
        self._classes = {item.name: item for item in classes}
        self._nodes = nodes
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
        unknown, delayed = set(), list[Manifest]()
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
                near = node_terms(_terms(volume), volume.where)
                expressions += [*under(OF_VOLUME + volume.name, near), *_zones(volume)]
            elif claim is None or bound:
                unknown.add(UNKNOWN)
            elif (waits := self._is_delayed(claim)) is None:
                unknown.add(UNBOUND)
            elif waits:
                delayed.append(claim)
            else:
                expressions.append(Constraint(IMMEDIATE + name, "Exists"))
        notices.update(unknown)
        return list(dict.fromkeys([*expressions, *self._to_bind(delayed)]))

    def _is_delayed(self, claim: Manifest) -> bool | None:
        """Whether a claim that is not bound waits for its pod; None if its class is not among the objects."""
        named = claim.part("spec").get("storageClassName")
        wanted = self._classes.get(str(named or ""))
        if wanted is None:
            return False if named == "" else None
        return wanted.body.get("volumeBindingMode") == DELAYED

    def _to_bind(self, claims: Sequence[Manifest]) -> list[Constraint]:
        """Node expressions of a pod's claims that wait for it."""
        if len(claims) != 1:
            return self._to_bind_together(claims) if claims else []
        [claim] = claims
        choices = [_terms(volume) for volume in self._candidates(claim)] + self._provisioned(claim)
        if not choices:
            return [Constraint(NO_VOLUME + claim.name, "Exists")]
        terms = [term for one in choices for term in one]
        return under(NO_VOLUME + claim.name, node_terms(terms, claim.where)) if all(choices) else []

    def _to_bind_together(self, claims: Sequence[Manifest]) -> list[Constraint]:
        """The nodes on which each claim gets a volume of its own."""
        ordered = sorted(claims, key=_asked)
        near = [[(volume.name, self._reached(_terms(volume), volume.where))
                 for volume in sorted(self._candidates(claim), key=_size)] for claim in ordered]  # fmt: skip
        made = [{name for terms in self._provisioned(claim) for name in self._reached(terms, claim.where)}
                for claim in ordered]  # fmt: skip
        fine = []
        for node in self._nodes:
            taken: set[str] = set()
            for volumes, provisioned in zip(near, made, strict=True):
                free = (name for name, nodes in volumes if node["name"] in nodes and name not in taken)
                volume = next(free, None)
                if volume is None and node["name"] not in provisioned:
                    break
                taken.update([volume] if volume else ())
            else:
                fine.append(node["name"])
        if not fine:
            return [Constraint(NO_VOLUME + ordered[0].name, "Exists")]
        return under(NO_VOLUME + ordered[0].name, [Constraint("name", "In", tuple(fine))])

    def _candidates(self, claim: Manifest) -> list[Manifest]:
        """Volumes that a claim can be bound to; one that is kept for it is the only one."""
        if claim.part("metadata", "annotations").get(SELECTED):
            return []
        wanted = str(claim.part("spec").get("storageClassName") or "")
        found = [volume for volume in self._volumes.values() if _serves(volume, claim, wanted)]
        return [volume for volume in found if volume.part("spec", "claimRef")] or found

    def _provisioned(self, claim: Manifest) -> list[list[Mapping[str, Any]]]:
        """Terms of the nodes for which a volume is made, no terms for all nodes; an empty list if none is made."""
        wanted = self._classes[str(claim.part("spec").get("storageClassName") or "")]
        node = claim.part("metadata", "annotations").get(SELECTED)
        if node:
            return [[{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]]
        if wanted.body.get("provisioner") == STATIC:
            return []
        return [[_as_node_term(one, wanted.where) for one in sequence(wanted.body, "allowedTopologies", wanted.where)]]

    def _reached(self, terms: Sequence[Mapping[str, Any]], where: str) -> set[str]:
        """Names of the nodes on which one of some terms holds; all without terms."""
        return set(allowed(node_terms(terms, where), self._nodes))


def _terms(volume: Manifest) -> list[Mapping[str, Any]]:
    """Terms of the nodes that reach a volume; none if all do."""
    return sequence(volume.part("spec", "nodeAffinity", "required"), "nodeSelectorTerms", volume.where)


def _zones(volume: Manifest) -> list[Constraint]:
    """Expressions for nodes with the volume's labels of zone and region; a node without any such label is fine."""
    labels = volume.part("metadata", "labels")
    own = {key: tuple(str(labels[key]).split(SEVERAL)) for key in ZONES if labels.get(key) is not None}
    if not own:
        return []
    alternatives = [[Constraint(label_key(key), "DoesNotExist") for key in ZONES], []]
    for key, values in own.items():
        alternatives = _with_zone(alternatives[:1], alternatives[1:], key, values)
    return [Constraint(OF_ZONE + volume.name, ONE_OF, tuple(map(conjunction_text, alternatives)))]


def _with_zone(
    plain: list[list[Constraint]], labelled: list[list[Constraint]], key: str, values: tuple[str, ...]
) -> list[list[Constraint]]:
    """The alternatives for nodes with labels, each with one about this label or the one that counts without it."""
    ways = [[Constraint(label_key(key), "In", values)]]
    ways += [
        [Constraint(label_key(key), "DoesNotExist"), Constraint(label_key(other), "In", values)] for other in ZONES[key]
    ]
    return [*plain, *([*one, *way] for one in labelled for way in ways)]


def _serves(volume: Manifest, claim: Manifest, wanted: str) -> bool:
    """Whether a volume of a class is free or kept for the claim, large enough, and as the claim wants it."""
    spec, asked = volume.part("spec"), claim.part("spec")
    if str(spec.get("storageClassName") or "") != wanted or _size(volume)[0] < _asked(claim):
        return False
    if (spec.get("volumeMode") or FILES) != (asked.get("volumeMode") or FILES):
        return False
    if spec.get("claimRef"):
        return _is_kept_for(volume.part("spec", "claimRef"), claim)
    if volume.part("status").get("phase") not in (None, "", "Available"):
        return False
    modes = set(texts(asked, "accessModes", claim.where)) <= set(texts(spec, "accessModes", volume.where))
    return modes and selects(claim.part("spec", "selector"), volume.part("metadata", "labels"), claim.where)


def _is_kept_for(reference: Mapping[str, Any], claim: Manifest) -> bool:
    """Whether a volume names this claim."""
    named = (reference.get("namespace"), reference.get("name")) == (_namespace(claim), claim.name)
    return named and reference.get("uid") in (None, "", claim.part("metadata").get("uid"))


def _size(volume: Manifest) -> tuple[Fraction, str]:
    """The size of a volume in bytes, and its name, as a sort key."""
    return quantity(volume.part("spec", "capacity").get("storage") or 0, volume.where), volume.name


def _asked(claim: Manifest) -> Fraction:
    """The size that a claim asks for, in bytes."""
    return quantity(claim.part("spec", "resources", "requests").get("storage") or 0, claim.where)


def _namespace(item: Manifest) -> str:
    return str(item.part("metadata").get("namespace") or "default")


def _as_node_term(topology: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A term of ``allowedTopologies`` as one of node affinity."""
    items = sequence(topology, "matchLabelExpressions", where)
    return {"matchExpressions": [{"key": i.get("key"), "operator": "In", "values": i.get("values")} for i in items]}


def claim_text(key: str) -> str | None:
    """kube-scheduler's text for a key of an expression about volumes; None for another key."""
    if key.startswith(ABSENT):
        return f'persistentvolumeclaim "{key.removeprefix(ABSENT)}" not found'
    if key.startswith(IMMEDIATE):
        return UNBOUND_TEXT
    if key.startswith(NO_VOLUME):
        return "node(s) didn't find available persistent volumes to bind"
    if key.startswith(OF_VOLUME):
        return "node(s) didn't match PersistentVolume's node affinity"
    if key.startswith(OF_ZONE):
        return "node(s) had no available volume zone"
    return IN_USE_TEXT if key.startswith(IN_USE) else None


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

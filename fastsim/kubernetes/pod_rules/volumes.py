"""Volumes of Kubernetes' pods: a claim that is bound to a volume of some nodes limits its pods to those nodes.

If any claims are among the objects, a pod whose claim is not one of them fits nowhere. A claim that only one pod may
use is that of the pod on a node, or else of the first pod in line; others fit nowhere. The label of such an expression
is on no node, and says why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fastsim.hardware.node_constraints import Constraint
from fastsim.kubernetes.controllers import PodManifest
from fastsim.kubernetes.objects import Manifest, mapping, sequence
from fastsim.kubernetes.pod_rules.node_affinity import node_terms

UNKNOWN = "pods: volumes whose claim or volume is not among the objects"
UNBOUND = "pods: volumes whose claim is not bound yet"
ONE_POD = "ReadWriteOncePod"
"""Access mode of a claim that one pod may use."""
ABSENT, IN_USE = "persistentvolumeclaim:", f"{ONE_POD}:"
"""Beginnings of labels that no node has, because a claim is not there, or is used by another pod."""


class Volumes:
    """Claims and volumes among some objects; ``users`` are their pods, the next in line first."""

    def __init__(
        self, claims: Sequence[Manifest] = (), volumes: Sequence[Manifest] = (), users: Iterable[PodManifest] = ()
    ) -> None:
        self._claims = {(str(item.part("metadata").get("namespace") or "default"), item.name): item for item in claims}
        self._volumes = {item.name: item for item in volumes}
        modes = {key: item.part("spec").get("accessModes") or () for key, item in self._claims.items()}
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
            else:
                unknown.add(UNBOUND if claim is not None and not bound else UNKNOWN)
        notices.update(unknown)
        return list(dict.fromkeys(expressions))


def claim_text(key: str) -> str | None:
    """kube-scheduler's text for a label of ``ABSENT`` or ``IN_USE``; None for another label."""
    if key.startswith(ABSENT):
        return f'persistentvolumeclaim "{key.removeprefix(ABSENT)}" not found'
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

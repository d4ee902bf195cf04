"""Volumes of Kubernetes' pods: a claim that is bound to a volume of some nodes limits its pods to those nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fastsim.hardware.node_constraints import Constraint
from fastsim.kubernetes.controllers import PodManifest
from fastsim.kubernetes.objects import Manifest, mapping, sequence
from fastsim.kubernetes.pod_rules.node_affinity import Places, node_terms

UNKNOWN = "pods: volumes whose claim or volume is not among the objects"
UNBOUND = "pods: volumes whose claim is not bound yet"


class Volumes:
    """Claims and volumes among some objects."""

    def __init__(self, claims: Sequence[Manifest] = (), volumes: Sequence[Manifest] = ()) -> None:
        self._claims = {(str(item.part("metadata").get("namespace") or "default"), item.name): item for item in claims}
        self._volumes = {item.name: item for item in volumes}

    def constraints(self, pod: PodManifest, places: Places, notices: Counter[str]) -> list[Constraint]:
        """Node expressions of the pod's volumes; a pod with an unknown volume is counted in `notices`."""
        expressions: list[Constraint] = []
        unknown = set()
        for name in _claims_of(pod):
            claim = self._claims.get((pod.namespace, name))
            bound = claim and claim.part("spec").get("volumeName")
            volume = self._volumes.get(str(bound))
            if volume is not None:
                required = volume.part("spec", "nodeAffinity", "required")
                terms = sequence(required, "nodeSelectorTerms", volume.where)
                expressions += node_terms(terms, volume.where, places, notices)
            else:
                unknown.add(UNBOUND if claim is not None and not bound else UNKNOWN)
        notices.update(unknown)
        return list(dict.fromkeys(expressions))


def _claims_of(pod: PodManifest) -> Iterator[str]:
    """Names of the pod's claims, in its own namespace."""
    for volume in sequence(pod.spec, "volumes", pod.where):
        claim: Mapping[str, Any] = mapping(volume, "persistentVolumeClaim", pod.where)
        if claim.get("claimName"):
            yield str(claim["claimName"])
        elif volume.get("ephemeral"):
            yield f"{pod.name}-{volume.get('name')}"

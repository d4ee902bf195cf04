"""Fields that admission fills in when a pod is created: defaults of its namespace, and what its RuntimeClass adds.

Pods among the objects were admitted, so both are in them already; a Pod without ``uid`` and node was not, and gets what
its RuntimeClass adds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fastsim.kubernetes.objects import Manifest, mapping, sequence
from fastsim.kubernetes.pod_rules.namespace_limits import Range, default_amounts, with_defaults

CLASS = "runtimeClassName"
UNKNOWN_CLASS = f"pods: {CLASS} of a class that is not among the objects"


class PodAdmission(NamedTuple):
    """Defaults of containers by namespace, and objects of kind RuntimeClass by name."""

    ranges: Mapping[str, Sequence[Range]]
    classes: Mapping[str, Manifest]

    @classmethod
    def of(cls, objects: Sequence[Manifest]) -> PodAdmission:
        """Facts that admission takes from these objects."""
        return cls(default_amounts(objects), {item.name: item for item in objects if item.kind == "RuntimeClass"})

    def admitted(self, spec: Mapping[str, Any], namespace: str, where: str) -> Mapping[str, Any]:
        """The ``spec`` of a template as that of a pod of the namespace."""
        return self.with_class(with_defaults(spec, self.ranges.get(namespace, ()), where), where)

    def with_class(self, spec: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """The ``spec`` with the overhead, the node labels and the tolerations of its RuntimeClass."""
        chosen = self.classes.get(str(spec.get(CLASS)))
        if chosen is None:
            return spec
        more, scheduling = chosen.part("overhead", "podFixed"), chosen.part("scheduling")
        labels, tolerations = (
            mapping(scheduling, "nodeSelector", chosen.where), sequence(scheduling, "tolerations", chosen.where)
        )  # fmt: skip
        added = {
            "overhead": more or mapping(spec, "overhead", where),
            "nodeSelector": {**mapping(spec, "nodeSelector", where), **labels},
            "tolerations": [*sequence(spec, "tolerations", where), *tolerations],
        }
        return {**spec, **{name: value for name, value in added.items() if value}}

    def lacks(self, spec: Mapping[str, Any]) -> bool:
        """Whether the RuntimeClass of a pod is not among the objects."""
        return bool(spec.get(CLASS)) and str(spec[CLASS]) not in self.classes

"""The nodes that meet conditions of pods, where nodes and conditions are many: each expression is looked at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fastsim.hardware.node_constraints import Conditions, Constraint, holds

NAME = "name"
"""Key of a node's own name among its labels."""

Marks = npt.NDArray[np.bool_]
"""Whether each node is one of those that are meant."""


class EligibleNodes:
    """Nodes by their labels, each node's `name` among them."""

    def __init__(self, labels: Sequence[Mapping[str, str]]) -> None:
        self._labels, self._met = labels, dict[Constraint, Marks]()
        self._places: dict[str, list[int]] = {}
        for place, own in enumerate(labels):
            self._places.setdefault(own[NAME], []).append(place)

    def marks(self, conditions: Conditions) -> Marks:
        """Whether each node may host the pods, room aside."""
        names = [one.values for one in conditions.constraints if one.key == NAME and one.op == "In"]
        names += [] if conditions.pinned_node is None else [(conditions.pinned_node,)]
        if names:  # thousands of pods name their node, so only that node is looked at
            return self._among(min(names, key=len), conditions)
        marks = np.ones(len(self._labels), bool)
        for constraint in conditions.constraints:
            if constraint not in self._met:
                self._met[constraint] = np.array([holds(constraint, own) for own in self._labels], bool)
            marks &= self._met[constraint]
        return marks

    def _among(self, names: Sequence[str], conditions: Conditions) -> Marks:
        """The eligible ones of nodes with these names."""
        marks = np.zeros(len(self._labels), bool)
        for place in (place for name in names for place in self._places.get(name, ())):
            own = self._labels[place]
            pinned = conditions.pinned_node in (None, own[NAME])
            marks[place] = pinned and all(holds(one, own) for one in conditions.constraints)
        return marks

"""Columns of the compiled preferences, from the labels of nodes and the preferences of a class of pods."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fastsim.hardware.eligible_nodes import NAME, EligibleNodes
from fastsim.hardware.node_constraints import Conditions, Preference, SpreadRule, domains, whole_number

if TYPE_CHECKING:
    from fastsim_ext.online.preferences import PreferenceTable

MIB = 1 << 20
LEAST_BYTES, MOST_BYTES = 23 * MIB, 1000 * MIB
"""Images of less are not worth a point; those of more, for each container, are worth no more."""
BEST = 100
"""Largest score."""
NEAR = ("near", "required")
"""Kinds of preferences that count the pods of a set."""

Row = npt.NDArray[np.int32]
"""A number for each node."""
Wanted = tuple[int, int, int, int]
"""A preference about a set of pods: its number, a weight or a skew, the place of a row of domains, their number."""


class PreferenceColumns:
    """Passes preferences to the compiled table; equal rows are passed once."""

    def __init__(self, labels: Sequence[Mapping[str, str]]) -> None:
        self._labels, self._nodes = labels, EligibleNodes(labels)
        self._places: dict[Hashable, tuple[int, int]] = {}
        self._sets: dict[str, int] = {}

    def add(self, table: PreferenceTable, cls: int, conditions: Conditions) -> None:
        """The preferences of a class."""
        wanted, sets = conditions.preferences, [self._number(name) for name in conditions.preference_sets]
        if not wanted and not sets:
            return
        spread = tuple(one for one in wanted if one.rule == "spread")
        keys = tuple(one.topology for one in spread)
        table.add(
            cls, sets, self._fixed(table, wanted), [self._spread(table, one, keys) for one in spread],
            [self._near(table, one) for one in wanted if one.rule in NEAR],
        )  # fmt: skip

    def _number(self, name: str) -> int:
        return self._sets.setdefault(name, len(self._sets))

    def _fixed(self, table: PreferenceTable, wanted: Sequence[Preference]) -> tuple[int, int, int]:
        """Places of the rows that follow from labels: points for node affinity, taints, scores for images."""
        parts: tuple[tuple[str, Callable[[Sequence[Preference]], Row]], ...] = (
            ("labels", self._sum), ("taint", self._sum), ("image", self._images),
        )  # fmt: skip
        affinity, taints, images = (
            self._fixed_row(table, tuple(one for one in wanted if one.rule == rule), row) for rule, row in parts
        )
        return affinity, taints, images

    def _fixed_row(
        self, table: PreferenceTable, own: tuple[Preference, ...], row: Callable[[Sequence[Preference]], Row]
    ) -> int:
        return self._place(table, own, lambda: (row(own), 0))[0] if own else -1

    def _place(self, table: PreferenceTable, key: Hashable, make: Callable[[], tuple[Row, int]]) -> tuple[int, int]:
        """The place of the row that ``make`` makes, and the number of its domains."""
        if key not in self._places:
            row, count = make()
            self._places[key] = table.add_row(np.ascontiguousarray(row, np.int32)), count
        return self._places[key]

    def _sum(self, wanted: Sequence[Preference]) -> Row:
        """Sum of the weights of those whose expressions hold."""
        row = np.zeros(len(self._labels), np.int32)
        for one in wanted:
            row += np.int32(one.weight) * self._nodes.marks(Conditions(constraints=one.nodes))
        return row

    def _images(self, wanted: Sequence[Preference]) -> Row:
        """Scores of the images that a node has, weighed by the part of the nodes that have them."""
        sums, count = np.zeros(len(self._labels), np.int64), sum(one.weight for one in wanted)
        for one in wanted:
            sizes = [labels.get(one.topology) for labels in self._labels]
            there = np.array([size is not None for size in sizes], bool)
            size = next((whole_number(size) or 0 for size in sizes if size is not None), 0)
            sums += np.where(there, one.weight * int(size * (int(there.sum()) / max(len(sizes), 1))), 0)
        most = MOST_BYTES * count
        row: Row = (BEST * (np.clip(sums, LEAST_BYTES, most) - LEAST_BYTES) // (most - LEAST_BYTES)).astype(np.int32)
        return row

    def _spread(self, table: PreferenceTable, one: Preference, keys: tuple[str, ...]) -> Wanted:
        """A preference for few pods in a domain; nodes without the label of any are passed over."""

        def row() -> tuple[Row, int]:
            rule = SpreadRule(one.pods, one.topology, one.max_skew, counted=one.nodes)
            counted = domains(rule, keys, self._labels)
            every = domains(rule._replace(counted=()), keys, self._labels)
            numbers, count = _numbered(every)
            if one.topology == NAME:
                return np.minimum(numbers, 0), 0
            there = np.array([name is not None for name in counted], bool)
            return np.where(there | (numbers < 0), numbers, -2 - numbers), count

        place, count = self._place(table, (one.topology, one.nodes, keys), row)
        return self._number(one.pods), one.max_skew, place, count

    def _near(self, table: PreferenceTable, one: Preference) -> Wanted:
        """A preference for pods of a set in the node's domain, or against them."""

        def row() -> tuple[Row, int]:
            numbers, count = _numbered([labels.get(one.topology) for labels in self._labels])
            return numbers, 0 if one.topology == NAME else count

        place, count = self._place(table, one.topology, row)
        return self._number(one.pods), one.weight, place, count


def _numbered(names: Sequence[str | None]) -> tuple[Row, int]:
    """Small numbers for names, -1 for None; and their count, 1 or more, because 0 is said of nodes by themselves."""
    known: dict[str, int] = {}
    row = [-1 if name is None else known.setdefault(name, len(known)) for name in names]
    return np.array(row, np.int32), max(len(known), 1)

"""Tables of uses: a line for each column or option of a run, and a cell for each engine.

Warnings, guides and the tests of every cell are made from the tables. A cell is one of

===========================  ==================================================================================
``used``                     another value may give another result
``refused``                  a value is an error
``ignored``                  the engine does not look at it, and a run with a value warns
``-``                        no engine acts on it, and no run warns
``condition: cell else cell``  the first cell where the condition holds, else the second
===========================  ==================================================================================
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ENGINES = ("pods", "shares", "orders", "adaptive", "monitored", "pool")
"""Engines of the tables: pods placed one by one (environments for agents, too), jobs in rounds of shares, jobs in an
order, adaptive jobs, monitored schedulers, :func:`fastsim.simulate_pool`, which takes no options of a scenario."""
USED, REFUSED, IGNORED, DESCRIBES = "used", "refused", "ignored", "-"
"""The plain cells."""

Conditions = Mapping[str, tuple[Callable[[Any], bool], str]]
"""By name: whether a condition holds for the facts of a run, and what a run needs for it."""


class Use(NamedTuple):
    """A use, and the ``condition`` without which it is ``otherwise``."""

    use: str
    condition: str = ""
    otherwise: str = ""

    @classmethod
    def parsed(cls, text: str) -> Use:
        """The cell of a text of a table."""
        condition, colon, rest = text.partition(": ")
        if not colon:
            return cls(text)
        use, _, otherwise = rest.partition(" else ")
        return cls(use, condition, otherwise)

    def shown(self, conditions: Conditions) -> str:
        """The cell as guides show it."""
        if not self.condition:
            return self.use
        return f"{self.use} with {conditions[self.condition][1]}, else {self.otherwise}"

    def in_run(self, facts: Any, conditions: Conditions) -> str:
        """The use in a run with these facts."""
        return self.use if not self.condition or conditions[self.condition][0](facts) else self.otherwise


@cache
def cells(table: str) -> dict[str, dict[str, Use]]:
    """The cells of ``tables/TABLE.csv`` by the name of the column or option, then by engine."""
    with (Path(__file__).parent.parent / "tables" / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return {row[0]: dict(zip(header[1:], map(Use.parsed, row[1:]), strict=True)) for row in rows}

"""What every figure means: one definition for each column of the result tables and each chart, as a table.

The table is `engine/audit/metrics.csv`. A definition holds for the engines that it names: `pods`, three engines of
rounds (`shares`, `ordered`, `adaptive`) and `monitored`; `rounds` and `all` stand for several. A column may be a
pattern, such as `utilization_{model}_pct`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fastsim.errors import ScenarioError, suggestion

TABLES = Path(__file__).parent

ROUND_ENGINES = ("shares", "ordered", "adaptive")
"""Engines that play jobs in rounds."""
ENGINES = ("pods", *ROUND_ENGINES, "monitored")
"""All engines."""
FIGURE_TABLES = ("summary", "jobs", "placements", "timeline", "stages", "charts")
"""Tables of a result, and the charts that are drawn of them."""
BETTER = ("more", "less", "")
"""Whether a policy is better with more or less of it; "" where neither is."""
_GROUPS = {"all": ENGINES, "rounds": ROUND_ENGINES}


@dataclass(frozen=True)
class Definition:
    """One column of a table, or one chart; ``""`` where there is nothing to say.

    ``engines`` those that it holds for · ``over`` which time or which jobs · ``gpus`` what of GPUs counts that are
    shared, leased, idle or failed · ``better`` as in ``BETTER``.
    """

    table: str
    column: str
    engines: tuple[str, ...]
    unit: str
    meaning: str
    formula: str
    over: str
    gpus: str
    better: str

    def defines(self, table: str, column: str) -> bool:
        """Whether this column of the table is meant, whatever the engine."""
        return table == self.table and _pattern(self.column).fullmatch(column) is not None


@cache
def definitions() -> tuple[Definition, ...]:
    """All definitions, in the order of tables and columns."""
    with (TABLES / "metrics.csv").open(encoding="utf-8", newline="") as text:
        rows: list[dict[str, Any]] = list(csv.DictReader(text))
    return tuple(Definition(**(row | {"engines": _engines(row["engines"])})) for row in rows)


def definition(engine: str, table: str, column: str) -> Definition | None:
    """The definition of a column of an engine's table; None if there is none."""
    found = (one for one in definitions() if engine in one.engines and one.defines(table, column))
    return next(found, None)


def better(table: str, column: str) -> str:
    """Whether ``more`` or ``less`` of a column is better, as in ``BETTER``; "" also for undefined columns."""
    found = (one.better for one in definitions() if one.better and one.defines(table, column))
    return next(found, "")


def unit(table: str, column: str) -> str:
    """The unit of a column; "" for one without unit or without a definition."""
    found = (one.unit for one in definitions() if one.unit and one.defines(table, column))
    return next(found, "")


def chosen(names: Sequence[str] = (), table: str = "") -> list[Definition]:
    """Definitions of columns with these names, in this table; all of them without names, of every table without one.

    A name is a column, such as ``utilization_v100_pct``, or a pattern as it is written.
    """
    listed = [one for one in definitions() if table in ("", one.table)]
    found: dict[Definition, None] = dict.fromkeys(() if names else listed)
    for name in names:
        meant = [one for one in listed if name == one.column or one.defines(one.table, name)]
        if not meant:
            known = [one.column for one in listed]
            expected = f"a column of {table or 'a table'}"
            raise ScenarioError(f"metric {name!r}", "an unknown name", expected, suggestion(name, known))
        found |= dict.fromkeys(meant)
    return list(found)


def definition_text(one: Definition) -> str:
    """A definition to be read: a line for what it is, and one for each thing that there is to say."""
    unit = f" [{one.unit}]" if one.unit else ""
    engines = "" if one.engines == ENGINES else f" ({', '.join(one.engines)})"
    details = {
        "formula": one.formula, "over": one.over, "GPUs": one.gpus,
        "better": f"{one.better} of it" if one.better else "",
    }  # fmt: skip
    lines = [f"  {name}: {text}" for name, text in details.items() if text]
    return "\n".join([f"{one.table}.{one.column}{unit}: {one.meaning}{engines}", *lines])


def _engines(text: str) -> tuple[str, ...]:
    """The engines that a cell names."""
    named = [engine for word in text.split() for engine in _GROUPS.get(word, (word,))]
    return tuple(engine for engine in ENGINES if engine in named)


@cache
def _pattern(column: str) -> re.Pattern[str]:
    """What matches a column; a part in braces is any text."""
    return re.compile(re.sub(r"\\\{\w+\\\}", ".+", re.escape(column)))

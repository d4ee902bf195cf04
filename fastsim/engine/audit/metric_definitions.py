"""Definitions of all figures: one for each column of the result tables and each chart, as a table.

The table is `engine/audit/metrics.csv`. A definition holds for the engines that it names: `pods`, three engines of
rounds (`shares`, `ordered`, `adaptive`) and `monitored`; `rounds` and `all` stand for several. A column may be a
pattern, such as `utilization_{model}_pct`.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fastsim.errors import ScenarioError, suggestion

TABLES = Path(__file__).parent

ROUND_ENGINES = ("shares", "orders", "adaptive")
"""Engines of jobs in rounds."""
ENGINES = ("pods", *ROUND_ENGINES, "monitored")
"""All engines."""
FIGURE_TABLES = ("summary", "jobs", "placements", "timeline", "stages", "charts")
"""Tables of a result, and the charts that are drawn of them."""
BETTER = ("more", "less", "")
"""The direction in which a policy is better; "" for none."""
_GROUPS = {"all": ENGINES, "rounds": ROUND_ENGINES}


@dataclass(frozen=True)
class Definition:
    """One column of a table, or one chart; fields that do not apply are ``""``.

    ``engines`` those that it holds for · ``over`` the time or the jobs that it covers · ``gpus`` how shared, leased,
    idle and failed GPUs count · ``better`` as in ``BETTER`` · ``most`` the largest value that it can have.
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
    most: str

    def defines(self, table: str, column: str) -> bool:
        """Whether this is the definition of a column of a table, for any engine."""
        return table == self.table and _pattern(self.column).fullmatch(column) is not None


@cache
def definitions() -> tuple[Definition, ...]:
    """All definitions, in the order of tables and columns."""
    with (TABLES / "metrics.csv").open(encoding="utf-8", newline="") as text:
        rows: list[dict[str, Any]] = list(csv.DictReader(text))
    return tuple(Definition(**(row | {"engines": _engines(row["engines"])})) for row in rows)


def definition(engine: str, table: str, column: str) -> Definition | None:
    """The definition of a column of an engine's table; None if there is none."""
    matching = (one for one in definitions() if engine in one.engines and one.defines(table, column))
    return next(matching, None)


def better(table: str, column: str) -> str:
    """Whether ``more`` or ``less`` of a column is better, as in ``BETTER``; "" also for undefined columns."""
    directions = (one.better for one in definitions() if one.better and one.defines(table, column))
    return next(directions, "")


def unit(table: str, column: str) -> str:
    """The unit of a column; "" for one without unit or without a definition."""
    units = (one.unit for one in definitions() if one.unit and one.defines(table, column))
    return next(units, "")


def possible(table: str, column: str) -> tuple[float, float]:
    """The least and the largest value that a column can have; no bounds for one without a definition."""
    found = next((one for one in definitions() if one.defines(table, column)), None)
    if found is None:
        return -math.inf, math.inf
    return 0.0, float(found.most or math.inf)


def chosen(names: Sequence[str] = (), table: str = "") -> list[Definition]:
    """Definitions of columns with these names, in this table; all of them without names, of every table without one.

    A name is a column, such as ``utilization_v100_pct``, or a pattern as it is written.
    """
    listed = [one for one in definitions() if table in ("", one.table)]
    selected: dict[Definition, None] = dict.fromkeys(() if names else listed)
    for name in names:
        matching = [one for one in listed if name == one.column or one.defines(one.table, name)]
        if not matching:
            known = [one.column for one in listed]
            expected = f"a column of {table or 'a table'}"
            raise ScenarioError(f"metric {name!r}", "an unknown name", expected, suggestion(name, known))
        selected |= dict.fromkeys(matching)
    return list(selected)


def definition_text(one: Definition) -> str:
    """A definition as text: a line for its meaning, and one for each further field."""
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
    """A pattern of column names; a part in braces matches any text."""
    return re.compile(re.sub(r"\\\{\w+\\\}", ".+", re.escape(column)))

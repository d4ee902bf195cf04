"""What reproducing a paper leaves: a cell for every figure, ours beside the published one, and a verdict.

=================  ================================================================================================
``same``           the same at every printed digit
``within``         within the bar that the figure's own spread justifies
``outside``        further away
``indicative``     the published figure is of other pods or of other seeds: a glance, no test
``no reference``   nothing was published of this cell
=================  ================================================================================================
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import polars as pl

from fastsim.foundation.parquet import replacing_folder

TABLES = Path(__file__).parents[1] / "published"
VERDICTS = ("same", "within", "outside", "indicative", "no reference")
FLOAT_NOISE = 1e-9
"""Half a printed digit is a float, too."""


class Cell(NamedTuple):
    """One figure of a paper.

    ``published`` is what the authors printed, ``original`` what their code gives when it is run; ``deviation`` is ours
    less the original, or less the published where nobody ran it. ``bar`` is the deviation that is allowed.
    """

    figure: str
    case: str
    policy: str
    quantity: str
    at: float | None
    unit: str
    published: float | None
    original: float | None
    ours: float
    deviation: float | None
    bar: float | None
    verdict: str


SCHEMA = {
    name: pl.String if name in ("figure", "case", "policy", "quantity", "unit", "verdict") else pl.Float64
    for name in Cell._fields
}


class Measure(NamedTuple):
    """What a cell is of."""

    figure: str
    quantity: str
    unit: str
    printed: float
    """The last digit that was printed."""


def cell(
    what: Measure, case: str, policy: str, at: float | None, ours: float, *, published: float | None = None,
    original: float | None = None, bar: float | None = None, exact: bool = True, comparable: bool = True,
) -> Cell:  # fmt: skip
    """A cell with its verdict; ``exact`` if equal digits may be expected, ``comparable`` if it is the same at all."""
    reference = published if original is None else original
    deviation = None if reference is None else ours - reference
    told: Any = (what.figure, case, policy, what.quantity, at, what.unit, published, original, ours, deviation)
    if deviation is None:
        return Cell._make((*told, None, "no reference"))
    digit = what.printed / 2 + FLOAT_NOISE
    if not comparable:
        return Cell._make((*told, None, "indicative"))
    if abs(deviation) <= digit:
        return Cell._make((*told, bar or digit, "same"))
    within = bar is not None and not exact and abs(deviation) <= bar and not math.isnan(bar)
    return Cell._make((*told, digit if exact else bar, "within" if within else "outside"))


@dataclass(frozen=True)
class Reproduction:
    """A paper's figures, made again."""

    name: str
    title: str
    source: str
    """Where pods or jobs came from."""
    cells: pl.DataFrame
    curves: pl.DataFrame
    """Points of charts: chart, x_title, y_title, policy, x, y."""
    runs: int
    wall_s: float
    citation: str
    cpu_s: float | None = None
    """CPU seconds of the runs themselves."""

    def count(self, verdict: str) -> int:
        """Cells with this verdict."""
        return int((self.cells["verdict"] == verdict).sum())

    @property
    def verdict(self) -> str:
        """One line about all cells."""
        told = [f"{self.count(name):,} {name}" for name in VERDICTS if self.count(name)]
        return f"{len(self.cells):,} cells: {', '.join(told)}"

    @property
    def effort(self) -> str:
        """Runs and seconds."""
        spent = "" if self.cpu_s is None else f", {self.cpu_s:,.1f} s of CPU time in them"
        return f"{self.runs:,} run{'' if self.runs == 1 else 's'} in {self.wall_s:,.1f} s{spent}"

    def write(self, folder: str | os.PathLike[str]) -> Path:
        """Cells and curves as Parquet, and a page, in a folder that appears complete or not at all."""
        from fastsim.experiments.reproduce.page import page

        target = Path(folder)
        with replacing_folder(target) as partial:
            self.cells.write_parquet(partial / "cells.parquet")
            self.curves.write_parquet(partial / "curves.parquet")
            (partial / "index.html").write_text(page(self), encoding="utf-8")
        return target


def cell_table(cells: list[Cell]) -> pl.DataFrame:
    """Cells as a table."""
    return pl.DataFrame(cells, schema=SCHEMA, orient="row")


@cache
def published_table(name: str) -> pl.DataFrame:
    """A table of published figures that ships with the package."""
    return pl.read_csv(TABLES / f"{name}.csv")


def points(chart: str, x_title: str, y_title: str, policy: str, x: Any, y: Any) -> pl.DataFrame:
    """The points of one line of a chart."""
    frame = pl.DataFrame({"policy": policy, "x": x, "y": y}, schema_overrides={"x": pl.Float64, "y": pl.Float64})
    names = {"chart": chart, "x_title": x_title, "y_title": y_title}
    return frame.select(*(pl.lit(text).alias(name) for name, text in names.items()), "policy", "x", "y")


class Played(Protocol):
    """What is to be played with a policy."""

    @property
    def policy(self) -> str:
        """As the paper's table says it."""


Some = TypeVar("Some", bound=Played)


def of_policies(items: Sequence[Some], policies: Sequence[str]) -> list[Some]:
    """The items with one of these policies, however it is spelled; all of them if none is named."""
    wanted = {plain_name(text) for text in policies}
    return [item for item in items if not wanted or plain_name(item.policy) in wanted]


def beyond(items: Sequence[Played], policies: Sequence[str]) -> list[str]:
    """The policies that no item has."""
    known = {plain_name(item.policy) for item in items}
    return [text for text in policies if plain_name(text) not in known]


@cache
def plain_name(policy: str) -> str:
    """One text for all spellings of a policy."""
    from fastsim.policies.registry import parse

    return str(parse(policy))

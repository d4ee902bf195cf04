"""Colour, stroke and mark of each series: the same for a policy in every chart.

Colours are assigned: no two series of one chart, nor of one report, share one as long as there are some. The first six
are those of Okabe and Ito without black, yellow and grey; the others are as far as possible from all before them for
every kind of colour blindness, and are seen on white and on black. No two series share both stroke and mark, so that
they differ without colours, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import polars as pl

COLOURS = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8700fc", "#635124", "#f30051", "#5a3fc6",
    "#abbd5a", "#ab006c", "#e148fc", "#cfabab", "#245a6c", "#bd1bab", "#fc6c87", "#905100", "#902d48", "#5a7e48",
    "#e1ab7e", "#753687", "#2d87f3", "#f375d8",
)  # fmt: skip
MARKS = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (1, 4), (12, 4))
"""Strokes of the first six looks, the next six, and so on."""
LOOKS = len(MARKS) * len(DASHES)
"""Different looks; a chart of more series repeats them, and one of more series than colours repeats colours."""
FAMILIES = (
    ("fgd", "random", "best_fit", "dot_product", "gpu_packing", "gpu_clustering", "pwr", "simon", "tetris",
     "least_power"),
    ("max_min_fairness", "fifo", "isolated", "srtf", "las", "finish_time_fairness", "min_total_duration",
     "max_sum_throughput", "allox", "gandiva", "drf", "tiresias"),
    ("sia", "pollux", "optimus", "planned"),
    ("exclusive", "gpushare", "round_robin", "most_free_memory", "least_utilised", "coolest"),
)  # fmt: skip
"""Policies that are compared with each other; the place of one in its family is its look."""
_PLACES = {name: place for family in FAMILIES for place, name in enumerate(family)}


MARKED = 8
"""Number of marks on a line, which distinguish lines without colours."""


class Look(NamedTuple):
    """Colour, stroke and mark of one series."""

    colour: str
    dash: tuple[int, ...]
    mark: str


def look(place: int) -> Look:
    """The look of this number."""
    place %= LOOKS
    turn, mark = divmod(place, len(MARKS))
    # Marks move on by one each turn: a colour that comes back has another mark then, too.
    return Look(COLOURS[place % len(COLOURS)], DASHES[turn], MARKS[(mark + turn) % len(MARKS)])


def looks(names: Sequence[str]) -> list[Look]:
    """The look of each series of one chart: that of its policy, or the first one that is free."""
    places: dict[int, int] = {}
    # Policies by their whole names come first, then names with a policy in them.
    for number in sorted(range(len(names)), key=lambda number: (names[number] not in _PLACES, number)):
        wanted = _place(names[number])
        if wanted is not None and wanted not in places.values():
            places[number] = wanted
    free = iter(sorted(set(range(LOOKS)) - set(places.values())))
    return [look(places[number] if number in places else next(free, number)) for number in range(len(names))]


def channels(
    names: Sequence[str], field: str, legend: dict[str, Any] | None = None, among: Sequence[str] = ()
) -> dict[str, dict[str, Any]]:
    """The Vega-Lite channels ``color``, ``strokeDash`` and ``shape`` of a field with these values.

    ``among``: names of all series of the report that the chart is in, so that one has the same look in all its charts.
    """
    drawn = dict(zip(among, looks(among), strict=True))
    looks_of = [drawn[name] for name in names] if set(names) <= set(drawn) else looks(names)
    ranges: dict[str, list[Any]] = {
        "color": [one.colour for one in looks_of],
        "strokeDash": [list(one.dash) for one in looks_of],
        "shape": [one.mark for one in looks_of],
    }
    return {
        channel: {"field": field, "type": "nominal", "title": None, "legend": legend,
                  "scale": {"domain": list(names), "range": values}}
        for channel, values in ranges.items()
    }  # fmt: skip


def marked(points: pl.DataFrame, field: str) -> pl.DataFrame:
    """Some points of each line, where its marks are; those of different lines stand beside each other."""
    names = points[field].unique(maintain_order=True)
    line = pl.col(field).replace_strict(names, range(len(names)), return_dtype=pl.Int64)
    step = (pl.len().over(field) // MARKED).clip(1)
    number = pl.int_range(pl.len()).over(field)
    return points.filter((number + step * line // max(len(names), 1)) % step == 0)


def _place(name: str) -> int | None:
    """The look that the first policy in a name would have alone; None for a name with none in it."""
    return next((_PLACES[word] for word in re.findall(r"[A-Za-z_]+", name) if word in _PLACES), None)

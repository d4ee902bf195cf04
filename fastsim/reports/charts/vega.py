"""Vega-Lite specifications of a report's charts: lines, areas, a heat map, bars. Colours of text are the page's.

Parameters of the specifications: ``hidden``, the list of hidden runs, ``chosen``, the run of charts of one run, and
``moment``, a step of time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fastsim.reports.charts.legends import SYMBOL, relabelled
from fastsim.reports.charts.series_looks import MARKED, channels

Spec = dict[str, Any]

SHADES = ("#4c8bf5", "#e8710a", "#12a37c", "#d64a8c", "#8e63ce", "#b38600", "#1aa6c7", "#d6453d", "#7a8b2e", "#7b8794")
"""Colours of pods and of single GPUs, distinct on white and on black."""
PARTS = ("#4c8bf5", "#12a37c", "#b38600", "#e8710a", "#d64a8c", "#8e63ce", "#1aa6c7", "#d6453d")
SHADE = 0.16
"""Opacity of intervals; those of many lines are fainter, as they lie on each other."""
HEIGHT, TALL = 200, 300
"""Heights of plots without their axes and legends, pixels; the latter has a row for each GPU."""


def lines(names: Sequence[str], x: str, y: str, *, log: bool = False, band: bool = False, zero: bool = True,
          step: bool = False, top: float | None = None, among: Sequence[str] = (),
          ends: bool = False) -> Spec:  # fmt: skip
    """A line for each run over ``x``, with the interval of its seeds behind it; ``among`` as for `channels`.

    Intervals are a band, or with ``ends`` a bar at each point.
    """
    look = channels(names, "run", among=among)
    colour = {"color": look["color"]}
    scale: Spec = {"type": "log", "nice": False} if log else {"nice": False, "zero": False}
    scale |= {"padding": 10} if ends else {}
    over = {"field": "x", "type": "quantitative", "title": x, "scale": scale,
            "axis": {"format": "~g", "tickCount": 6} if log else {"labelFlush": True, "tickCount": 6}}  # fmt: skip
    y_scale: Spec = {"zero": zero} if top is None else {"domain": [0, top]}
    value = {"field": "y", "type": "quantitative", "title": y, "scale": y_scale}
    tooltip = [_tooltip("run", "run", "nominal"), _tooltip("x", x), _tooltip("y", y)]
    line: Spec = {"type": "line", "strokeWidth": 1.8, "clip": True}
    if step:
        line["interpolate"] = "step-after"
    layers: list[Spec] = []
    if band:
        low = {"field": "low", "type": "quantitative", "title": y}
        area = {"type": "area", "opacity": round(min(SHADE, 1 / len(names)), 3), "clip": True}
        area |= {"interpolate": line["interpolate"]} if step else {}
        area = {"type": "errorbar", "ticks": True} if ends else area
        layers.append({"mark": area, "encoding": {"x": over, "y": low, "y2": {"field": "high"}} | colour})
    layers.append({"mark": line, "encoding": {"x": over, "y": value, "strokeDash": look["strokeDash"]} | colour})
    layers.append(_marks(names, {"x": over, "y": value, "shape": look["shape"]} | colour))
    marks = {"type": "point", "opacity": 0, "size": 50, "clip": True}
    layers.append({"mark": marks, "encoding": {"x": over, "y": value, "tooltip": tooltip} | colour})
    hidden: Spec = {"params": [{"name": "hidden", "value": []}]}
    return _framed(layers) | hidden | {"transform": [{"filter": "indexof(hidden, datum.run) < 0"}]}


def _marks(names: Sequence[str], encoding: Spec) -> Spec:
    """Marks on some points of each line; those of different lines stand beside each other."""
    numbered = {"window": [{"op": "row_number", "as": "number"}], "groupby": ["run"]}
    counted = {"joinaggregate": [{"op": "count", "as": "points"}], "groupby": ["run"]}
    step = f"max(1, floor(datum.points / {MARKED}))"
    shift = f"floor({step} * indexof({json.dumps(list(names))}, datum.run) / {max(len(names), 1)})"
    chosen = {"filter": f"(datum.number + {shift}) % {step} === 0"}
    mark = {"type": "point", "filled": True, "opacity": 1, "size": 42, "clip": True}
    return {"mark": mark, "encoding": encoding, "transform": [numbered, counted, chosen]}


def areas(parts: Sequence[str], x: str, y: str, colours: Mapping[str, str]) -> Spec:
    """Parts on top of each other over ``x``, of the chosen run."""
    shades = [colours.get(part, PARTS[place % len(PARTS)]) for place, part in enumerate(parts)]
    over = {"field": "x", "type": "quantitative", "title": x, "scale": {"nice": False, "zero": False},
            "axis": {"labelFlush": True, "tickCount": 6}}  # fmt: skip
    encoding = {
        "x": over,
        "y": {"field": "y", "type": "quantitative", "title": y, "stack": "zero"},
        "color": {"field": "part", "type": "nominal", "title": None, "scale": {"domain": list(parts), "range": shades},
                  "legend": {"symbolType": "square"} | _below(parts, 2, 220)},
        "order": {"field": "place", "type": "quantitative"},
        "tooltip": [_tooltip("part", "part", "nominal"), _tooltip("x", x), _tooltip("y", y)],
    }  # fmt: skip
    placed = {"calculate": f"indexof({json.dumps(list(parts))}, datum.part)", "as": "place"}
    return _one([{"mark": {"type": "area", "interpolate": "step-before"}, "encoding": encoding}], [placed])


def traces(parts: Sequence[str], x: str, y: str, *, zero: bool = True) -> Spec:
    """A line for each part over ``x``, of the chosen run."""
    colours = [SHADES[place % len(SHADES)] for place in range(len(parts))]
    encoding = {
        "x": {"field": "x", "type": "quantitative", "title": x, "scale": {"nice": False, "zero": False},
              "axis": {"labelFlush": True, "tickCount": 6}},
        "y": {"field": "y", "type": "quantitative", "title": y, "scale": {"zero": zero}},
        "color": {"field": "part", "type": "nominal", "title": None, "scale": {"domain": list(parts), "range": colours},
                  "legend": {"symbolType": "stroke"} | _below(parts, 3, 180)},
        "tooltip": [_tooltip("part", "part", "nominal"), _tooltip("x", x), _tooltip("y", y)],
    }  # fmt: skip
    mark = {"type": "line", "strokeWidth": 1.5, "interpolate": "step-after", "clip": True}
    return _one([{"mark": mark, "encoding": encoding}])


class NodeQuantity(NamedTuple):
    """A quantity of nodes over time: its column, title, and the ends of its scale."""

    column: str
    title: str
    least: float
    most: float


def heat(x: str, shown: NodeQuantity) -> Spec:
    """A quantity by node and time, of the chosen run, with a line at the chosen moment."""
    # Cells overlap their neighbours a little, as seams would show between them.
    seamless = [{"calculate": f"datum.{end} + (datum.{end} - datum.{begin}) / 8", "as": f"{end}_drawn"}
                for begin, end in (("x", "x2"), ("low", "high"))]  # fmt: skip
    encoding = {
        "x": {"field": "x", "type": "quantitative", "title": x, "scale": {"nice": False, "zero": False},
              "axis": {"labelFlush": True, "grid": False, "tickCount": 6}},
        "x2": {"field": "x2_drawn"},
        "y": _nodes(),
        "y2": {"field": "high_drawn"},
        "color": _shade(shown),
        "tooltip": [_tooltip("low", "first node", "quantitative", "d"), _tooltip("x", x),
                    _tooltip(shown.column, f"{shown.title}, mean")],
    }  # fmt: skip
    line = {
        "mark": {"type": "rule", "color": "#d55e00", "strokeWidth": 2},
        "transform": [{"filter": "datum.step === moment && datum.low === 0"}],
        "encoding": {"x": {"field": "x", "type": "quantitative"}},
    }
    return _at_moment(_one([{"mark": {"type": "rect"}, "encoding": encoding}, line], seamless))


def heat_at(shown: NodeQuantity) -> Spec:
    """A quantity by node at the chosen moment, of the chosen run, from the data of `heat`."""
    encoding = {
        "x": {"field": "zero", "type": "quantitative", "title": shown.title, "scale": {"domain": [0, shown.most]}},
        "x2": {"field": shown.column}, "y": _nodes(), "y2": {"field": "high"},
        "color": _shade(shown) | {"legend": None},
        "tooltip": [_tooltip("low", "first node", "quantitative", "d"),
                    _tooltip(shown.column, f"{shown.title}, mean")],
    }  # fmt: skip
    rows = [{"filter": "datum.step === moment"}, {"calculate": "0", "as": "zero"}]
    return _at_moment(_one([{"mark": {"type": "rect"}, "encoding": encoding}], rows))


def _nodes() -> Spec:
    return {"field": "low", "type": "quantitative", "title": "node", "scale": {"reverse": True, "nice": False},
            "axis": {"grid": False, "format": "d", "tickMinStep": 1}}  # fmt: skip


def _shade(shown: NodeQuantity) -> Spec:
    return {"field": shown.column, "type": "quantitative", "title": shown.title,
            "scale": {"scheme": "viridis", "domain": [shown.least, shown.most]},
            "legend": {"orient": "bottom", "gradientLength": 160, "titleLimit": 300}}  # fmt: skip


def _at_moment(spec: Spec) -> Spec:
    """With the parameter ``moment``, the number of a step of time."""
    return spec | {"params": [*spec["params"], {"name": "moment", "value": 0}]}


def gantt(x: str, rows: Sequence[str] = ()) -> Spec:
    """Bars of pods on their GPUs, of the chosen run; ``rows`` are the names of all GPUs."""
    encoding = {
        "x": {"field": "x", "type": "quantitative", "title": x, "scale": {"nice": False, "zero": False},
              "axis": {"labelFlush": True, "tickCount": 6}},
        "x2": {"field": "x2"},
        "y": {"field": "row", "type": "nominal", "title": "node · GPU", "sort": None,
              "axis": {"labelLimit": 120, "labelOverlap": "parity"} | relabelled(rows, 110, 10)},
        "color": {"field": "shade", "type": "nominal", "legend": None,
                  "scale": {"domain": list(range(10)), "range": list(SHADES)}},
        "tooltip": [_tooltip("pod", "pod", "nominal"), _tooltip("row", "GPU", "nominal"), _tooltip("x", "from, " + x),
                    _tooltip("x2", "to, " + x)],
    }  # fmt: skip
    bar = {"type": "bar", "opacity": 0.75, "cornerRadius": 1, "height": {"band": 0.8}}
    return _one([{"mark": bar, "encoding": encoding}]) | {"height": TALL}


def _one(layers: list[Spec], transform: Sequence[Spec] = ()) -> Spec:
    of_chosen = {"filter": "datum.run === chosen"}
    chosen: Spec = {"params": [{"name": "chosen", "value": ""}]}
    return _framed(layers) | chosen | {"transform": [of_chosen, *transform]}


def _below(names: Sequence[str], most: int, limit: int) -> Spec:
    """A legend below a plot, in so many columns at most: one on a narrow screen."""
    columns = f"(width < 360 ? 1 : {most})"
    room = {"expr": f"min({limit}, max(60, width / {columns} - {SYMBOL}))"}
    return {"orient": "bottom", "columns": {"expr": columns}, "labelLimit": room} | relabelled(names, limit, 11)


def _framed(layers: list[Spec]) -> Spec:
    spec: Spec = {"$schema": "https://vega.github.io/schema/vega-lite/v6.json"} | {"data": {"name": "table"}}
    # The height is that of the plot: axes and legends are added to it.
    return spec | {"width": "container", "height": HEIGHT, "autosize": {"type": "fit-x", "contains": "padding"},
                   "layer": layers}  # fmt: skip


def _tooltip(field: str, title: str, kind: str = "quantitative", form: str = ",.4~g") -> Spec:
    field_spec = {"field": field, "type": kind, "title": title}
    return field_spec | {"format": form} if kind == "quantitative" else field_spec

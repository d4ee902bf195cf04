"""Vega-Lite specifications of a report's charts: lines, areas, a heat map, bars. Colours of text are the page's.

Parameters of the specifications: ``hidden``, the list of hidden runs, and ``chosen``, the run of charts of one run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Spec = dict[str, Any]

COLOURS = ("#4c8bf5", "#e8710a", "#12a37c", "#d64a8c", "#8e63ce", "#b38600", "#1aa6c7", "#d6453d", "#7a8b2e", "#7b8794")
"""Colours of lines, distinct on white and on black."""
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [1, 4])
"""Strokes of the second ten lines, the third, and so on."""
PARTS = ("#4c8bf5", "#12a37c", "#b38600", "#e8710a", "#d64a8c", "#8e63ce", "#1aa6c7", "#d6453d")
HEIGHT = 240


def styles(names: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Colour and stroke of each line."""
    count = len(COLOURS)
    return [(COLOURS[k % count], DASHES[k // count % len(DASHES)]) for k in range(len(names))]


def lines(names: Sequence[str], x: str, y: str, *, log: bool = False, band: bool = False, zero: bool = True,
          step: bool = False, top: float | None = None) -> Spec:  # fmt: skip
    """A line for each run over ``x``, with the range of its seeds behind it."""
    looks = styles(names)
    colour = {
        "field": "run", "type": "nominal", "legend": None,
        "scale": {"domain": list(names), "range": [look for look, _ in looks]},
    }  # fmt: skip
    dash = {"field": "run", "type": "nominal", "legend": None,
            "scale": {"domain": list(names), "range": [stroke for _, stroke in looks]}}  # fmt: skip
    scale: Spec = {"type": "log", "nice": False} if log else {"nice": False, "zero": False}
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
        area = {"type": "area", "opacity": 0.16, "clip": True}
        layers.append({"mark": area, "encoding": {"x": over, "y": low, "y2": {"field": "high"}, "color": colour}})
    layers.append({"mark": line, "encoding": {"x": over, "y": value, "color": colour, "strokeDash": dash}})
    marks = {"type": "point", "opacity": 0, "size": 50, "clip": True}
    layers.append({"mark": marks, "encoding": {"x": over, "y": value, "color": colour, "tooltip": tooltip}})
    hidden: Spec = {"params": [{"name": "hidden", "value": []}]}
    return _framed(layers) | hidden | {"transform": [{"filter": "indexof(hidden, datum.run) < 0"}]}


def areas(parts: Sequence[str], x: str, y: str, colours: Mapping[str, str]) -> Spec:
    """Parts on top of each other over ``x``, of the chosen run."""
    shades = [colours.get(part, PARTS[place % len(PARTS)]) for place, part in enumerate(parts)]
    over = {"field": "x", "type": "quantitative", "title": x, "scale": {"nice": False, "zero": False},
            "axis": {"labelFlush": True, "tickCount": 6}}  # fmt: skip
    encoding = {
        "x": over,
        "y": {"field": "y", "type": "quantitative", "title": y, "stack": "zero"},
        "color": {"field": "part", "type": "nominal", "title": None, "scale": {"domain": list(parts), "range": shades},
                  "legend": {"orient": "bottom", "columns": 2, "symbolType": "square", "labelLimit": 220}},
        "order": {"field": "place", "type": "quantitative"},
        "tooltip": [_tooltip("part", "part", "nominal"), _tooltip("x", x), _tooltip("y", y)],
    }  # fmt: skip
    placed = {"calculate": f"indexof({list(parts)!r}, datum.part)", "as": "place"}
    return _one([{"mark": {"type": "area", "interpolate": "step-before"}, "encoding": encoding}], [placed])


def traces(parts: Sequence[str], x: str, y: str, *, zero: bool = True) -> Spec:
    """A line for each part over ``x``, of the chosen run."""
    colours = [COLOURS[place % len(COLOURS)] for place in range(len(parts))]
    encoding = {
        "x": {"field": "x", "type": "quantitative", "title": x, "scale": {"nice": False, "zero": False},
              "axis": {"labelFlush": True, "tickCount": 6}},
        "y": {"field": "y", "type": "quantitative", "title": y, "scale": {"zero": zero}},
        "color": {"field": "part", "type": "nominal", "title": None, "scale": {"domain": list(parts), "range": colours},
                  "legend": {"orient": "bottom", "columns": 3, "symbolType": "stroke", "labelLimit": 180}},
        "tooltip": [_tooltip("part", "part", "nominal"), _tooltip("x", x), _tooltip("y", y)],
    }  # fmt: skip
    mark = {"type": "line", "strokeWidth": 1.5, "interpolate": "step-after", "clip": True}
    return _one([{"mark": mark, "encoding": encoding}])


def heat(x: str) -> Spec:
    """GPUs in use by node and time, of the chosen run."""
    # Cells overlap their neighbours a little, as seams would show between them.
    seamless = [{"calculate": f"datum.{end} + (datum.{end} - datum.{begin}) / 8", "as": f"{end}_drawn"}
                for begin, end in (("x", "x2"), ("low", "high"))]  # fmt: skip
    encoding = {
        "x": {"field": "x", "type": "quantitative", "title": x, "scale": {"nice": False, "zero": False},
              "axis": {"labelFlush": True, "grid": False, "tickCount": 6}},
        "x2": {"field": "x2_drawn"},
        "y": {"field": "low", "type": "quantitative", "title": "node", "scale": {"reverse": True, "nice": False},
              "axis": {"grid": False, "format": "d", "tickMinStep": 1}},
        "y2": {"field": "high_drawn"},
        "color": {"field": "y", "type": "quantitative", "title": "GPUs of a node in use",
                  "scale": {"scheme": "viridis"},
                  "legend": {"orient": "bottom", "gradientLength": 160, "titleLimit": 300}},
        "tooltip": [_tooltip("low", "first node", "quantitative", "d"), _tooltip("x", x),
                    _tooltip("y", "GPUs in use, mean")],
    }  # fmt: skip
    return _one([{"mark": {"type": "rect"}, "encoding": encoding}], seamless)


def gantt(x: str) -> Spec:
    """Bars of pods on their GPUs, of the chosen run."""
    encoding = {
        "x": {"field": "x", "type": "quantitative", "title": x, "scale": {"nice": False, "zero": False},
              "axis": {"labelFlush": True, "tickCount": 6}},
        "x2": {"field": "x2"},
        "y": {"field": "row", "type": "nominal", "title": "node · GPU", "sort": None, "axis": {"labelLimit": 110}},
        "color": {"field": "shade", "type": "nominal", "legend": None,
                  "scale": {"domain": list(range(10)), "range": list(COLOURS)}},
        "tooltip": [_tooltip("pod", "pod", "nominal"), _tooltip("row", "GPU", "nominal"), _tooltip("x", "from, " + x),
                    _tooltip("x2", "to, " + x)],
    }  # fmt: skip
    bar = {"type": "bar", "opacity": 0.75, "cornerRadius": 1, "height": {"band": 0.8}}
    return _one([{"mark": bar, "encoding": encoding}]) | {"height": 340}


def _one(layers: list[Spec], transform: Sequence[Spec] = ()) -> Spec:
    of_chosen = {"filter": "datum.run === chosen"}
    chosen: Spec = {"params": [{"name": "chosen", "value": ""}]}
    return _framed(layers) | chosen | {"transform": [of_chosen, *transform]}


def _framed(layers: list[Spec]) -> Spec:
    spec: Spec = {"$schema": "https://vega.github.io/schema/vega-lite/v6.json"} | {"data": {"name": "table"}}
    return spec | {"width": "container", "height": HEIGHT, "autosize": {"type": "fit", "contains": "padding"},
                   "layer": layers}  # fmt: skip


def _tooltip(field: str, title: str, kind: str = "quantitative", form: str = ",.4~g") -> Spec:
    field_spec = {"field": field, "type": kind, "title": title}
    return field_spec | {"format": form} if kind == "quantitative" else field_spec

"""The chart libraries of the ``[report]`` extra, and files of charts that are complete or absent."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastsim.errors import FastsimError, ScenarioError
from fastsim.foundation import interrupts
from fastsim.foundation.parquet import replacing
from fastsim.reports.charts.html_page import ScriptEncoder, chart_page

if TYPE_CHECKING:
    import altair as alt

SUFFIXES = (".png", ".svg", ".html", ".json")
"""File suffixes of the formats."""


def charting() -> Any:
    """The module altair."""
    interrupts.check()
    try:
        import altair
    except ImportError:
        raise FastsimError('charts need the report extra: pip install "fastsim-gpu[report]"') from None
    return altair


def picturing() -> Any:
    """The module vl_convert, which draws pictures of charts."""
    interrupts.check()
    try:
        import vl_convert
    except ImportError:
        raise FastsimError('pictures need the report extra: pip install "fastsim-gpu[report]"') from None
    return vl_convert


def drawable() -> bool:
    """Whether the report extra is installed."""
    try:
        charting(), picturing()
    except FastsimError:
        return False
    return True


def page_scripts() -> str:
    """The JavaScript that draws charts in a page; it takes seconds to bundle, so a process does it once."""
    picturing()  # raises if the extra is missing, also when the bundle is cached
    return _bundle()


@cache
def _bundle() -> str:
    bundle: str = picturing().javascript_bundle()
    return bundle


def written_file(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write the file, complete or not at all; its path."""
    with replacing(path) as partial:
        partial.write_bytes(content)
    return Path(path)


def written_chart(chart: alt.TopLevelMixin, path: str | os.PathLike[str], scale: float = 1.5) -> Path:
    """Write the chart as .png (``scale`` pixels for each chart pixel), .svg, .html (one file) or .json (Vega-Lite)."""
    suffix, spec = Path(path).suffix, chart.to_json()
    if suffix not in SUFFIXES:
        raise ScenarioError(str(path), f"a name that ends in {suffix or 'nothing'}", f"one of {', '.join(SUFFIXES)}")
    if suffix == ".json":
        return written_file(path, spec.encode())
    if suffix == ".png":
        return written_file(path, picturing().vegalite_to_png(spec, scale=scale))
    svg = suffix == ".svg"
    content = picturing().vegalite_to_svg(spec) if svg else chart_page(spec, Path(path).stem, page_scripts())
    return written_file(path, content.encode())


def displayed(chart: Any) -> Any:
    """The same chart, whose HTML in notebooks and files ends no script early, whatever names it has in it."""
    kind: Any = type(chart)
    object.__setattr__(chart, "__class__", _displayed_class(kind))  # altair's own makes a property of the chart
    return chart


@cache
def _displayed_class(kind: Any) -> Any:
    """The class of a chart with JSON in HTML as :func:`fastsim.reports.charts.html_page.script_json` writes it."""
    if "fastsim_json" in vars(kind):
        return kind

    def to_html(self: Any, *arguments: Any, json_kwds: dict[str, Any] | None = None, **options: Any) -> Any:
        return kind.to_html(self, *arguments, json_kwds=_in_scripts(json_kwds), **options)

    def save(self: Any, *arguments: Any, json_kwds: dict[str, Any] | None = None, **options: Any) -> Any:
        return kind.save(self, *arguments, json_kwds=_in_scripts(json_kwds), **options)

    def bundle(self: Any, *arguments: Any, **options: Any) -> Any:
        shown, renderer = kind._repr_mimebundle_(self, *arguments, **options), charting().renderers.get()
        if "text/html" in shown and "<" in json.dumps(self.to_dict(context={"pre_transform": False})):
            return renderer(self.to_dict(context={"pre_transform": False}), json_kwds=_in_scripts(None))
        return shown

    methods = {"to_html": to_html, "save": save, "_repr_mimebundle_": bundle, "fastsim_json": True}
    return type(kind.__name__, (kind,), methods | {"__module__": kind.__module__})


def _in_scripts(json_kwds: dict[str, Any] | None) -> dict[str, Any]:
    return {"cls": ScriptEncoder} | (json_kwds or {})

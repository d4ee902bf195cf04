"""The chart libraries of the ``[report]`` extra, and files of charts that are complete or absent."""

from __future__ import annotations

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastsim.errors import FastsimError, ScenarioError
from fastsim.foundation import interrupts
from fastsim.foundation.limits.environment import refuse_little_room_of_pictures
from fastsim.foundation.parquet import replacing
from fastsim.reports.charts.html_page import ScriptEncoder, chart_page

if TYPE_CHECKING:
    import altair as alt

SUFFIXES = (".png", ".svg", ".pdf", ".html", ".json")
"""File suffixes of the formats."""

UNDRAWN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Signs that no picture has a letter for: they are none in XML, and the library that draws ends the process."""
SUSPECT = re.compile(r"\\[bf]|\\u00[01]|\\ud[89a-f]|\\ufff[ef]|[\ud800-\udfff\ufffe\uffff]", re.IGNORECASE)
"""Spellings in JSON of all such signs, and of some others."""


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
    refuse_little_room_of_pictures()
    try:
        import vl_convert
    except ImportError:
        raise FastsimError('pictures need the report extra: pip install "fastsim-gpu[report]"') from None
    return vl_convert


def drawable() -> bool:
    """Whether pages and pictures can be made: the report extra is installed and has room for addresses."""
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


def drawn_picture(spec: str, suffix: str, **options: Any) -> bytes:
    """The chart of a Vega-Lite specification as a picture, .png, .svg or .pdf; signs without a letter are spelled."""
    maker = picturing()
    draw = {".png": maker.vegalite_to_png, ".svg": maker.vegalite_to_svg, ".pdf": maker.vegalite_to_pdf}[suffix]
    content = draw(json.dumps(_drawable(json.loads(spec))) if SUSPECT.search(spec) else spec, **options)
    return content if isinstance(content, bytes) else str(content).encode()


def _drawable(value: Any) -> Any:
    """The same value, in whose texts signs without a letter are spelled as in Python."""
    if isinstance(value, str):
        return UNDRAWN.sub(lambda sign: ascii(sign[0])[1:-1], value)
    if isinstance(value, dict):
        return {_drawable(key): _drawable(item) for key, item in value.items()}
    return [_drawable(item) for item in value] if isinstance(value, list) else value


def written_file(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write the file, complete or not at all; its path."""
    with replacing(path) as partial:
        partial.write_bytes(content)
    return Path(path)


def written_chart(chart: alt.TopLevelMixin, path: str | os.PathLike[str], scale: float = 1.5) -> Path:
    """Write the chart as .png (``scale`` pixels for each of its own), .svg, .pdf, .html or .json (Vega-Lite)."""
    suffix, spec = Path(path).suffix, chart.to_json()
    if suffix not in SUFFIXES:
        raise ScenarioError(str(path), f"a name that ends in {suffix or 'nothing'}", f"one of {', '.join(SUFFIXES)}")
    if suffix == ".json":
        return written_file(path, spec.encode())
    if suffix == ".html":
        return written_file(path, chart_page(spec, Path(path).stem, page_scripts()).encode())
    return written_file(path, drawn_picture(spec, suffix, **({"scale": scale} if suffix == ".png" else {})))


def displayed(chart: Any) -> Any:
    """The same chart, whose HTML ends no script early and whose pictures can be drawn, whatever names it has in it."""
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
        if "text/html" not in shown:
            return shown
        spec = self.to_dict(validate=False, context={"pre_transform": False})  # altair has just looked at it
        return renderer(spec, json_kwds=_in_scripts(None)) if "<" in json.dumps(spec) else shown

    def to_dict(self: Any, *arguments: Any, **options: Any) -> Any:
        return _drawable(kind.to_dict(self, *arguments, **options))

    methods = {"to_dict": to_dict, "to_html": to_html, "save": save, "_repr_mimebundle_": bundle, "fastsim_json": True}
    return type(kind.__name__, (kind,), methods | {"__module__": kind.__module__})


def _in_scripts(json_kwds: dict[str, Any] | None) -> dict[str, Any]:
    return {"cls": ScriptEncoder} | (json_kwds or {})

"""Files of charts: every kind, complete or absent, and the error without the extra."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fastsim.errors import FastsimError, ResultError, ScenarioError
from fastsim.reports.charts.chart_files import SUFFIXES, charting, displayed, drawn_picture, picturing, written_chart
from tests.needs import needed

altair = needed("altair")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_chart_is_written_as_its_name_ends(tmp_path: Path, suffix: str) -> None:
    chart = altair.Chart(altair.Data(values=[{"x": 1}])).mark_point().encode(x="x:Q")
    content = written_chart(chart, tmp_path / f"a{suffix}").read_bytes()
    begins = {".png": b"\x89PNG", ".svg": b"<svg", ".html": b"<!DOCTYPE html>", ".json": b"{", ".pdf": b"%PDF"}
    assert content.lstrip().startswith(begins[suffix])
    if suffix == ".json":
        assert json.loads(content)["mark"] == {"type": "point"}
    with pytest.raises(ResultError, match="cannot be written"):
        written_chart(chart, tmp_path / "no" / f"a{suffix}")


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"ends in .gif, expected one of .png, .svg, .pdf"):
        written_chart(altair.Chart().mark_point(), tmp_path / "a.gif")
    assert not list(tmp_path.iterdir())


def test_without_the_extra_the_way_to_get_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, function in (("altair", charting), ("vl_convert", picturing)):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(FastsimError, match=r'pip install "fastsim-gpu\[report\]"'):
            function()


NO_LETTERS = "a\x00\x05\x0c\x1b[1mb\ufffe\ud800c\\b"
"""Signs that XML does not have, at which the library that draws ends the process."""


def test_names_without_letters_can_be_drawn(tmp_path: Path) -> None:
    chart = altair.Chart(altair.Data(values=[{"x": NO_LETTERS}]), title=NO_LETTERS).mark_point().encode(x="x:N")
    for suffix in (".png", ".svg", ".pdf"):
        assert drawn_picture(chart.to_json(), suffix)
    drawn = displayed(chart)
    drawn.save(str(tmp_path / "own.svg"))
    drawn.save(str(tmp_path / "own.png"))
    for svg in (written_chart(chart, tmp_path / "chart.svg").read_bytes(), (tmp_path / "own.svg").read_bytes()):
        texts = [item.text for item in ElementTree.fromstring(svg).iter() if item.text]
        assert r"a\x00\x05\x0c\x1b[1mb\ufffe\ud800c\b" in texts
    assert (
        json.loads(written_chart(chart, tmp_path / "chart.json").read_text())["title"]
        == r"a\x00\x05\x0c\x1b[1mb\ufffe\ud800c\b"
    )

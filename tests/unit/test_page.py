"""The report page: complete, in order, and safe against the names it is given."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from fastsim.page import report_page
from fastsim.show import table_html
from tests.unit.test_show import ROW


@dataclass
class Run:
    """As much of a result as a page tells."""

    citations: tuple[str, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)


@dataclass
class Compared:
    """As much of a comparison as a page tells."""

    names: tuple[str, ...]
    results: tuple[Run, ...]

    @property
    def table(self) -> pl.DataFrame:
        """One row for each run."""
        return pl.DataFrame([{**ROW, "name": name} for name in self.names], schema_overrides={"frag_pct": pl.Float64})


class Charts:
    """Charts that are only their title."""

    def __init__(self, title: str) -> None:
        self.title = title

    def to_json(self, indent: int | None) -> str:
        """The charts as JSON."""
        return json.dumps({"title": self.title}, indent=indent)


KNOWN = {
    "policy": "fgd", "options": {"seed": 7}, "versions": {"fastsim": "1.2"},
    "cluster": {"nodes": 3, "sha256": "c" * 64}, "workload": {"pods": 9, "sha256": "d" * 64},
}  # fmt: skip


def page(*names: str, runs: tuple[Run, ...] | None = None, title: str = "t") -> str:
    compared: Any = Compared(names, runs or (Run(("@a{x,\n y}",), KNOWN),) * len(names))
    return report_page(compared, Charts(title), "SCRIPTS")


def test_the_parts_stand_in_order() -> None:
    html = page("one", "two")
    parts = ["<!DOCTYPE html>", "<style>", "<script>SCRIPTS</script>", "<table>", '<div id="charts">', "<h2>Runs</h2>",
             "<h2>Please cite</h2>", "vegaEmbed(", "</html>"]  # fmt: skip
    places = [html.index(part) for part in parts]
    assert places == sorted(places)
    compared: Any = Compared(("one", "two"), ())
    assert table_html(compared.table) in html


def test_every_run_says_what_decides_its_numbers() -> None:
    expected = (
        "<li>one: policy fgd, seed 7, 3 nodes (sha256 cccccccccccc), 9 pods (sha256 dddddddddddd), fastsim 1.2</li>"
    )
    assert expected in page("one")
    assert "<li>old: policy ?, seed ?, ? nodes (sha256 ?), ? pods (sha256 ?), fastsim ?</li>" in page(
        "old", runs=(Run(),)
    )


def test_a_citation_is_told_once_in_order_of_appearance() -> None:
    runs = (Run(("@b", "@a")), Run(("@a", "@c & <d>")))
    assert "<pre>@b\n\n@a\n\n@c &amp; &lt;d&gt;</pre>" in page("one", "two", runs=runs)


def test_no_name_can_break_out() -> None:
    html = page("</script><b>", title="</script><script>alert(1)</script>")
    assert "<b>" not in html and "alert(1)</script>" not in html
    drawn = html.split('vegaEmbed("#charts", ')[1].split(', {"actions"')[0]
    assert json.loads(drawn) == {"title": "</script><script>alert(1)</script>"}

"""The report page: complete, in order, without a network, and safe against the names it is given."""

from __future__ import annotations

import json
import re

import polars as pl

import fastsim as fs
from fastsim.reports.report_page import column_json, provenance_rows, report_page
from tests import reports


def page(*names: str) -> str:
    """The page of as many runs."""
    return report_page(fs.report(reports.filling()[: len(names)], names), "SCRIPTS")


def test_the_parts_stand_in_order() -> None:
    html = page("one", "two")
    parts = ["<!DOCTYPE html>", "Content-Security-Policy", "<style>", "<h1>", '<table id="summary">',
             "Runs side by side", 'id="chart-allocation"', "One run in detail", 'id="chosen"', 'id="chart-classes"',
             "Where this comes from", "Please cite",
             "@inproceedings", 'id="figures"', "<script>SCRIPTS</script>", "vegaEmbed(", "</html>"]  # fmt: skip
    places = [html.index(part) for part in parts]
    assert places == sorted(places)


def test_nothing_is_asked_of_a_network() -> None:
    html = re.sub(r"<script.*?</script>", "", page("one"), flags=re.S)
    assert not re.search(r"\b(src|href)=|url\(|@import", html) and "default-src 'none'" in html


def test_names_cannot_break_the_page() -> None:
    html = page('</script><b>"x', "ok")
    assert "</script><b>" not in html and "\\u003c/script\\u003e" in html and "&lt;/script&gt;&lt;b&gt;&quot;x" in html


def test_every_run_says_what_decides_its_numbers() -> None:
    result = reports.filling()[0]
    rows = dict(provenance_rows(result))
    assert rows["seed"] == "1" and rows["policy"] == "fgd"
    assert result.provenance["workload"]["sha256"] in page("one")
    assert dict(provenance_rows(fs.Result({}, {}, {})))["workload sha256"] == "?"


def test_a_run_without_tables_has_a_page_without_charts() -> None:
    bare = fs.simulate("openb:20", "synth:openb?pods=3&seed=1", record="summary")
    html = report_page(fs.report([bare]), "SCRIPTS")
    assert (
        "SCRIPTS" not in html and 'id="summary"' in html and "chart-" not in re.sub(r"<script.*", "", html, flags=re.S)
    )


def test_columns_are_short() -> None:
    column = column_json(pl.DataFrame({"run": ["b", "a", "b"], "y": [1.0, 2.5, -3.0], "n": [1, 2, 3]}))
    assert column == {"length": 3, "columns": {"run": {"levels": ["b", "a"], "codes": [0, 1, 0]}, "y": [1, 2.5, -3],
                                             "n": [1, 2, 3]}}  # fmt: skip
    assert json.dumps(column["columns"]["y"]) == "[1, 2.5, -3]"

"""Comparisons: the table, the points of the curves, and files that need no network."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import polars as pl
import pytest

import fastsim as fs
from fastsim.reports import comparison as plots
from fastsim.reports import text_tables
from fastsim.reports.charts.series import POINTS
from fastsim.reports.report import report
from fastsim.reports.report_table import table_markdown
from tests.needs import needed

needed("altair")


@pytest.fixture(scope="module")
def results() -> list[fs.Result]:
    """Two small runs without departures."""
    text = "synth:openb?pods=300&seed=1&tune=1.3&tune_seed=1"
    return [fs.simulate("openb:20?seed=1", text, policy, record="timeline", typical=None) for policy in ("fgd", "pwr")]


@pytest.fixture(scope="module")
def comparison(results: list[fs.Result]) -> fs.Comparison:
    """The two runs side by side."""
    return fs.compare(results)


def test_names_come_from_the_runs_and_are_distinct(results: list[fs.Result]) -> None:
    assert fs.compare(results).names == ("fgd", "pwr")
    assert fs.compare([results[0], results[0]]).names == ("fgd", "fgd (2)")
    assert fs.compare(results, ["a", "b"]).names == ("a", "b")
    with pytest.raises(fs.ScenarioError, match="2, one for each"):
        fs.compare(results, ["a"])
    with pytest.raises(fs.ScenarioError, match="at least one"):
        fs.compare([])


def test_the_table_has_a_row_for_each_run(comparison: fs.Comparison, results: list[fs.Result]) -> None:
    table = comparison.table
    assert table["name"].to_list() == ["fgd", "pwr"]
    assert table["gpu_alloc_pct"].to_list() == [result.summary["gpu_alloc_pct"].item() for result in results]
    assert set(plots.FIGURES) < set(table.columns)


@pytest.mark.parametrize("metric", sorted(plots.METRICS))
def test_every_metric_can_be_drawn(comparison: fs.Comparison, metric: str) -> None:
    drawn = json.loads(comparison.plot(metric).to_json())
    assert drawn["encoding"]["x"]["title"] == "arrived GPU demand (% of capacity)"
    line, marks = (layer["encoding"] for layer in drawn["layer"])
    assert line["strokeDash"]["scale"]["domain"] == marks["shape"]["scale"]["domain"] == list(comparison.names)
    assert len(set(marks["shape"]["scale"]["range"])) == len(comparison.names)
    assert drawn["encoding"]["y"]["title"] and drawn["title"]


def test_curves_follow_the_timeline(comparison: fs.Comparison, results: list[fs.Result]) -> None:
    curve = comparison.curve("allocation").filter(pl.col("name") == "fgd")
    last = results[0].timeline.row(-1, named=True)
    assert curve["x"][-1] == pytest.approx(100 * last["arrived_gpu_milli"] / last["gpu_milli_capacity"])
    assert curve["y"][-1] == pytest.approx(results[0].summary["gpu_alloc_pct"].item())
    assert curve["x"].is_sorted()
    hours = comparison.curve("power", over="time")
    assert hours["x"][-1] == pytest.approx(last["t_s"] / 3600)


def test_long_timelines_are_thinned_but_keep_their_end() -> None:
    workload = "synth:openb?pods=2500&seed=1&arrivals=order&durations=forever"
    comparison = fs.compare([fs.simulate("openb:20?seed=1", workload, "random", record="timeline")])
    assert len(comparison.results[0].timeline) > 2000
    curve = comparison.curve("failed")
    assert 300 < len(curve) <= POINTS
    assert curve["y"][-1] == comparison.results[0].summary["pods_unplaced"].item()


def test_mistakes_are_named(comparison: fs.Comparison) -> None:
    with pytest.raises(fs.ScenarioError, match="did you mean 'allocation'"):
        comparison.plot("alocation")
    with pytest.raises(fs.ScenarioError, match="demand, time"):
        comparison.plot("power", over="space")
    bare = fs.simulate("openb:20", "synth:openb?pods=3&seed=1", record="summary")
    with pytest.raises(fs.ResultError, match="no timeline"):
        fs.compare([bare]).plot()


def test_a_cluster_without_gpus_can_be_compared() -> None:
    request = {
        "pod_id": [0, 1],
        "submit_s": [0.0, 9.0],
        "cpu_milli": 8000,
        "memory_mib": 9,
        "num_gpu": 0,
        "gpu_milli": 0,
    }
    pods = fs.Workload.from_arrow(pl.DataFrame(request))
    result = fs.simulate("uniform?nodes=2", pods, record="timeline")
    assert fs.compare([result]).curve("power", over="time")["y"][0] > 0


def test_the_report_is_one_file_without_links(comparison: fs.Comparison, tmp_path: Path) -> None:
    page = comparison.to_html(tmp_path / "report.html").read_text()
    assert "<table id=" in page and "weng2023fgd" in page and "sha256" in page
    without_scripts = re.sub(r"<script.*?</script>", "", page, flags=re.S)
    assert not re.search(r"\b(src|href)=|url\(|@import", without_scripts) and page.count("vegaEmbed(") >= 1
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_names_cannot_break_the_page(results: list[fs.Result], tmp_path: Path) -> None:
    page = fs.compare(results, ["</script><b>", "ok"]).to_html(tmp_path / "a.html", ["power"]).read_text()
    assert "</script><b>" not in page and "\\u003c/script\\u003e" in page and "&lt;/script&gt;" in page


def test_pictures(comparison: fs.Comparison, tmp_path: Path) -> None:
    assert comparison.to_png(tmp_path / "a.png", ["power"]).read_bytes().startswith(b"\x89PNG")
    assert "<svg" in comparison.to_svg(tmp_path / "a.svg", ["power", "grar"]).read_text()[:200]
    with pytest.raises(fs.ResultError, match="cannot be written"):
        comparison.to_svg(tmp_path / "no" / "a.svg", ["power"])


def test_without_the_extra_the_way_to_get_it_is_told(
    comparison: fs.Comparison, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(fs.FastsimError, match=r'pip install "fastsim-gpu\[report\]"'):
        comparison.plot()
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(fs.FastsimError, match="report"):
        comparison.to_png(tmp_path / "a.png")
    with pytest.raises(fs.FastsimError, match="report"):
        comparison.to_html(tmp_path / "a.html")
    assert not list(tmp_path.iterdir())


def test_the_tables_of_terminal_and_report_show_the_same_numbers(comparison: fs.Comparison) -> None:
    text, html = text_tables.comparison_text(comparison.table), table_markdown(report(comparison.results).table)
    number = f"{comparison.table['gpu_alloc_pct'][0]:.2f}"
    assert number in text and f"| {number} |" in html
    assert max(map(len, text.splitlines())) <= 80


def test_runs_with_departures_show_means_over_time() -> None:
    result = fs.simulate("openb:20", "synth:openb?pods=50&seed=1", record="summary")
    text = text_tables.comparison_text(fs.compare([result]).table)
    assert "JCT" in text and "GRAR" not in text
    assert "mean completion time" in text_tables.summary_text(result)
    assert json.loads(text_tables.result_json(result))["summary"]["pods"] == 50

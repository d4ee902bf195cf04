"""The table of a report: means with intervals, Markdown, LaTeX and CSV."""

from __future__ import annotations

import io
import statistics

import polars as pl
import pytest

from fastsim.reports.charts.seed_intervals import half_width
from fastsim.reports.charts.series import series_of
from fastsim.reports.report_table import FILLING, PASSING, _cell, report_table, table_frame, table_latex, table_markdown
from tests import reports


def test_a_row_is_the_mean_of_its_seeds() -> None:
    runs = reports.filling()
    table = report_table(series_of(runs))
    assert [name for name, _ in table.rows] == ["fgd", "random"] and table.headings[0] == "runs"
    column = table.headings.index("GPU allocated at the end, %")
    values = [run.summary["gpu_alloc_pct"].item() for run in runs[:2]]
    cell = table.rows[0][1][column]
    assert cell.value == statistics.fmean(values)
    assert cell.text == f"{statistics.fmean(values):.2f} ± {float(half_width(values)):.2f}"
    assert cell.half == pytest.approx(float(half_width(values)))


def test_an_interval_beyond_what_is_possible_is_written_by_its_ends() -> None:
    def text(values: list[float], column: str) -> str:
        return _cell(values, next(one for one in (*FILLING, *PASSING) if one[0] == column)).text

    assert text([90.0, 100.0], "gpu_alloc_pct") == "95.00 (31.47 to 100.00)"  # Student's t of one degree: 12.706
    assert text([3600.0, 36000.0], "wait_mean_s") == "5.500 (0.000 to 62.678)"
    assert text([50.0, 51.0], "gpu_alloc_pct") == "50.50 ± 6.35" and text([1.0, 1.0], "gpu_alloc_pct") == "1.00"


def test_columns_follow_the_kind_of_run() -> None:
    table = report_table(series_of([reports.jobs()]))
    assert "mean completion, h" in table.headings and "runs" not in table.headings
    assert "fitted nowhere" not in table.headings and "deadlines missed" not in table.headings
    assert all("±" not in cell.text for cell in table.rows[0][1])


def test_markdown_keeps_its_columns_whatever_the_names() -> None:
    table = report_table(series_of([reports.passing()], ["a|b"]))
    lines = table_markdown(table).splitlines()
    assert lines[2].startswith("| a\\|b | 150 |")
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1


def test_latex_prints_names_as_they_are() -> None:
    text = table_latex(report_table(series_of([reports.passing()], [r"a_b & 50 % {x} ~^$#\\ <|>"])))
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 2 and rows[1].startswith(
        r"a\_b \& 50 \% \{x\} \textasciitilde{}\textasciicircum{}\$\#\textbackslash{}\textbackslash{} $<$"
        r"\textbar{}$>$ & 150 &"
    )
    columns = text.split(r"\begin{tabular}{l")[1].partition("}")[0]
    assert rows[0].count(" & ") == len(columns) == rows[1].replace(r"\& ", "").count(" & ")
    assert r"$\pm$" in table_latex(report_table(series_of(reports.filling())))


def test_csv_has_means_and_intervals_in_the_units_of_the_summary() -> None:
    runs = reports.filling()
    frame = pl.read_csv(io.BytesIO(table_frame(report_table(series_of(runs))).write_csv().encode()))
    assert frame["run"].to_list() == ["fgd", "random"] and frame["runs"].to_list() == [2, 2]
    values = [run.summary["eopc_w"].item() for run in runs[:2]]
    assert frame["eopc_w"][0] == pytest.approx(statistics.fmean(values))
    assert frame["eopc_w_ci95"][0] == pytest.approx(float(half_width(values)))
    alone = table_frame(report_table(series_of(runs[:1])))
    assert not [name for name in alone.columns if name.endswith("_ci95")]

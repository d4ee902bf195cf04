"""The summary table: means over seeds with their spread, columns that say something."""

from __future__ import annotations

import statistics

from fastsim.reports.charts.series import series_of
from fastsim.reports.table import report_table, table_markdown
from tests import reports


def test_a_row_is_the_mean_of_its_seeds() -> None:
    runs = reports.filling()
    table = report_table(series_of(runs))
    assert [name for name, _ in table.rows] == ["fgd", "random"] and table.headings[0] == "runs"
    column = table.headings.index("GPU allocated at the end, %")
    values = [run.summary["gpu_alloc_pct"].item() for run in runs[:2]]
    cell = table.rows[0][1][column]
    assert cell.value == statistics.fmean(values)
    assert cell.text == f"{statistics.fmean(values):.2f} ± {statistics.stdev(values):.2f}"


def test_columns_follow_the_kind_of_run() -> None:
    table = report_table(series_of([reports.jobs()]))
    assert "mean completion, h" in table.headings and "runs" not in table.headings
    assert "fitted nowhere" not in table.headings and "deadlines missed" not in table.headings
    assert all("±" not in cell.text for cell in table.rows[0][1])


def test_markdown_keeps_its_columns_whatever_the_names() -> None:
    table = report_table(series_of([reports.passing()], ["a|b"]))
    told = table_markdown(table).splitlines()
    assert told[2].startswith("| a\\|b | 150 |")
    assert len({line.replace("\\|", "").count("|") for line in told}) == 1

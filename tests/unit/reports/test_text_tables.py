"""Text and JSON of results: units, decimals, what is left out, and headings over their own columns."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.experiments.reproduce.reproduction import Measure, cell, cell_table
from fastsim.reports.text_tables import (
    AT_THE_END,
    comparison_text,
    demo_text,
    reproduction_text,
    result_json,
    summary_text,
    table_json,
    text_table,
)

ROW = {
    "name": "a<b", "pods_finished": 0, "at_capacity_gpu_alloc_pct": 93.456, "gpu_alloc_pct": 12.0, "frag_pct": None,
    "pods_unplaced": 1234, "eopc_w": 1_234_560.0, "grar": 0.98765, "pods_per_s": 20_000.4, "wait_mean_s": 7.25,
    "mean_gpu_alloc_pct": 55.5, "mean_power_w": 2000.0, "jct_mean_s": 3600.0,
}  # fmt: skip


def table(**change: Any) -> pl.DataFrame:
    return pl.DataFrame([{**ROW, **change}], schema_overrides={"frag_pct": pl.Float64})


@dataclass
class Run:
    """As much of a result as is shown."""

    summary: pl.DataFrame
    timing: dict[str, float] = field(default_factory=lambda: {"pods_per_s": 1234.5})
    provenance: dict[str, Any] = field(default_factory=lambda: {"where": Path("x")})


def cells(text: str) -> list[str]:
    """The last line of a table, which stands in one row of the terminal."""
    return text.splitlines()[-1].split()


def test_numbers_have_their_unit_decimals_and_a_dash_if_unknown() -> None:
    assert cells(comparison_text(table())) == ["a<b", "93.46", "12.00", "1,234", "-", "1,234.6", "0.9877", "20,000"]


def test_where_pods_finish_the_headings_change_with_the_columns() -> None:
    text = comparison_text(table(pods_finished=3))
    assert cells(text) == ["a<b", "93.46", "55.50", "1,234", "7.2", "2.0", "3,600.0", "20,000"]
    assert "wait s" in text and "GRAR" not in text and "GRAR" in comparison_text(table())


def test_money_and_emissions_are_columns_where_they_are_known() -> None:
    told = comparison_text(table(pods_finished=5, cost=12.5, co2_kg=3.25))
    assert "cost $" in told and "CO2 kg" in told and cells(told)[-2:] == ["12.50", "3.2"]
    assert "cost" not in comparison_text(table(pods_finished=5, cost=None, co2_kg=None))


@pytest.mark.parametrize(("finished", "word", "figure"), [(0, "GRAR", "0.9877"), (1, "JCT", "3,600.0")])
def test_the_terminal_shows_the_same_columns(finished: int, word: str, figure: str) -> None:
    text = comparison_text(table(pods_finished=finished))
    assert word in text and figure in text and "a<b" in text
    assert ("GRAR" in text) + ("JCT" in text) == 1


def test_one_run_is_told_line_by_line_without_what_is_unknown() -> None:
    known = {"pods": 8152, "pods_unplaced": 0, "grar": None, "gpu_alloc_pct": 93.456, "eopc_w": 1_500_000.0}
    text = summary_text(Run(pl.DataFrame([known])), Path("out"))  # type: ignore[arg-type]
    lines = {line[:27].strip(): line[27:].strip() for line in text.splitlines()[:-1]}
    assert lines == {
        "pods": "8,152",
        "pods that fitted nowhere": "0",  # nothing is a figure too
        "GPU allocation at the end": "93.46 %",
        "power at the end": "1,500.0 kW",
        "simulation speed": "1,234 pods/s",
    }
    assert text.endswith("saved to out\n")


def test_a_run_whose_pods_have_all_left_is_told_by_means_over_time() -> None:
    state = dict.fromkeys(AT_THE_END, 1.0) | {"mean_cpu_alloc_pct": 5.0, "mean_gpu_alloc_pct": 6.0}
    ended = summary_text(Run(pl.DataFrame([{**state, "pods_finished": 3, "pods_running": 0}])))  # type: ignore[arg-type]
    assert "at the end" not in ended and "GRAR" not in ended and ended.count("mean over time") == 2
    for counts in ({"pods_finished": 3, "pods_running": 1}, {"pods_finished": 0, "pods_running": 0}):
        text = summary_text(Run(pl.DataFrame([{**state, **counts}])))  # type: ignore[arg-type]
        assert text.count("at the end") == len(AT_THE_END) - 1 and "GRAR" in text and "CPU allocation, mean" not in text


def test_json_keeps_nulls_and_writes_what_is_no_number_as_text() -> None:
    record = json.loads(result_json(Run(pl.DataFrame([{"grar": None, "pods": 3}]))))  # type: ignore[arg-type]
    assert record["summary"] == {"grar": None, "pods": 3}
    assert record["timing"] == {"pods_per_s": 1234.5} and record["provenance"] == {"where": "x"}
    assert json.loads(table_json(table()))[0] == ROW


def test_the_demo_says_where_its_report_is() -> None:
    text = demo_text(table(), Path("here"))
    assert text.startswith(comparison_text(table()))
    assert text.endswith(f"report: {Path('here/report.html')}   picture: {Path('here/report.png')}\n")


def test_a_run_of_jobs_is_summed_up_in_its_own_words() -> None:
    run = fs.simulate("gavel:2:2:2", "synth:gavel?jobs=8&rate_per_hour=4", "isolated", record="summary")
    text = summary_text(run)
    assert "GPUs at work" in text and "rounds/s" in text
    assert "memory" not in text and "cost" not in text
    assert "cost" in summary_text(
        fs.simulate(
            "gavel:2:2:2", "synth:gavel?jobs=8", "isolated", record="summary", prices="fixed?v100=1&p100=1&k80=1"
        )
    )


def figures() -> pl.DataFrame:
    long = Measure("check value", "speedup of tuned over fair shares, all seeds together", "x", 0.01)
    watts = Measure("figure 7", "power_w", "", 1.0)
    return cell_table([
        cell(long, "seed 42", "fifo + tune", 9.0, 3.3813, published=3.38),
        cell(watts, "mean of all", "0.05*pwr + 0.95*fgd", None, 1_360_642.4, original=1_335_109.0, comparable=False),
        cell(watts, "mean of all", "0.05*pwr + 0.95*fgd", 0.5, 12.0, original=12.0),
    ])  # fmt: skip


@pytest.mark.parametrize("width", [72, 80, 120])
def test_a_reproduction_keeps_to_the_terminal(width: int) -> None:
    lines = reproduction_text(figures(), width).splitlines()
    assert max(map(len, lines)) <= width
    assert lines[1] == "check value, seed 42, fifo + tune" and "figure 7, mean of all, 0.05*pwr + 0.95*fgd" in lines
    cells = [line.split()[-4:] for line in lines if line.endswith(("same", "indicative"))]
    assert cells == [["3.38", "3.3813", "+0.0013", "same"],
                    ["1,335,109", "1,360,642", "+25,533", "indicative"], ["12", "12", "0", "same"]]  # fmt: skip
    if width == 120:  # each figure has a line of its own
        assert len(lines) == 6 and "speedup of tuned over fair shares, all seeds together (x)" in lines[2]
    ends = {line.rindex(word) for line in lines for word in ("verdict", "same", "indicative") if line.endswith(word)}
    assert len(ends) == 1, "columns stand below each other"


def test_a_reproduction_without_references_is_a_heading() -> None:
    assert reproduction_text(figures().clear(), 80).split() == ["at", "reference", "ours", "deviation", "verdict"]


@pytest.mark.parametrize("name", ["[/b]", "[red]x", ":smile:", "[link=x]y", "a\\[b]"])
def test_signs_of_names_are_no_commands(name: str) -> None:
    assert cells(comparison_text(table(name=name)))[0] == name
    assert cells(text_table(table(name=name), [("name", "run")], ["name"])) == [name]


def test_a_name_stays_on_its_line_and_moves_no_cursor() -> None:
    for text in (
        comparison_text(table(name="a\x1b[31m\nb")),
        text_table(table(name="a\x1b[31m\nb"), [("name", "run")]),
    ):
        assert cells(text)[0] == r"a\x1b[31m\nb"


@pytest.mark.parametrize("columns", [None, "60"])
def test_what_goes_through_a_pipe_is_as_wide_as_it_needs(columns: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    row = {"policy": "max_min_fairness_water_filling(mode=packed)", "verdict": "cannot tell"}
    row |= {f"a_column_of_figures_{number}": str(number) for number in range(4)}
    lines = text_table(pl.DataFrame([row]), [(name, name) for name in row], left=("policy", "verdict")).splitlines()
    assert (max(map(len, lines)) > 100) == (columns is None)

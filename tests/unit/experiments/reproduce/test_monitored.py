"""The table of mechanisms over declared memory, at the first level."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from fastsim.experiments.reproduce import monitored as experiments
from fastsim.experiments.reproduce.papers import reproduce, run_count


def test_the_table_at_one_level(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {name: experiments.POLICIES[name] for name in ("gpushare", "monitored", "monitored, no quirks")}
    monkeypatch.setattr(experiments, "POLICIES", kept)
    reported: list[int] = []
    figures = (experiments.RUNS, experiments.TELEMETRY)
    reproduction = reproduce("monitor", quick=True, progress=reported.append, figures=figures)
    assert reproduction.runs == run_count("monitor", quick=True) == 3 and reported == [1, 2, 3]
    assert (
        reproduction.count("outside") == 0
        and reproduction.count("within") >= 8
        and reproduction.count("no reference") == 7
    )
    cells = {(row["policy"], row["quantity"]): row for row in reproduction.cells.rows(named=True)}
    one = cells["monitored", "makespan"]
    assert (one["published"], one["bar"], one["case"]) == (1150, pytest.approx(0.15 * 1150), "0 % more")
    assert cells["monitored", "restarts"]["verdict"] == "indicative"  # a matter of seconds
    assert reproduction.cells["original"].null_count() == len(reproduction.cells)
    assert reproduction.curves["chart"].n_unique() == len(experiments.QUANTITIES)
    assert "Kube-Knots" in reproduction.citation


def test_recordings_bring_levels_of_their_own(tmp_path: Path) -> None:
    folder = (tmp_path / experiments.RECORDED).parent
    folder.mkdir(parents=True)
    names = ",".join(["overprov_pct", "mechanism", *(one.column for one in experiments.QUANTITIES.values())])
    (tmp_path / experiments.RECORDED).write_text(f"{names}\n100,ALIBABA,1,2,3,4,5,6,7\n")
    assert experiments._recorded(tmp_path) == {(100, "gpushare"): {
        "makespan_s": 1, "jct_mean_s": 2, "queue_mean_s": 3, "restarts": 4, "util_pct": 5, "memory_used_mib": 6,
        "power_w": 7,
    }}  # fmt: skip
    (first, *_) = experiments._cells((100, "gpushare"), dict.fromkeys(experiments.QUANTITIES, 1.0), {"makespan_s": 1.0})
    assert (first.published, first.original, first.quantity) == (None, 1.0, "makespan")


def test_one_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "POLICIES", {"gpushare": experiments.POLICIES["gpushare"]})
    made = reproduce("monitor", quick=True, figures=[experiments.TELEMETRY])
    assert set(made.cells["figure"]) == {experiments.TELEMETRY} and made.curves["chart"].n_unique() == 3


def test_single_jobs_in_order_or_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {name: experiments.POLICIES[name] for name in ("gpushare", "monitored", "monitored, no quirks")}
    monkeypatch.setattr(experiments, "POLICIES", kept)
    made = reproduce("monitor", quick=True, figures=[experiments.JOBS]).cells
    assert len(made) == 2 * 2 * 30 and set(made["figure"]) == {experiments.JOBS}
    alike = made.filter(policy="gpushare", quantity="restarts")
    assert set(alike["verdict"]) == {"same"} and alike["case"][0] == "0 % more, job 0"
    waits = made.filter(policy="monitored", quantity="wait")
    assert waits["published"].is_sorted() and waits["ours"].is_sorted() and not waits["bar"].has_nulls()
    assert waits["case"][29] == "0 % more, value 29 in rising order"


def test_means_of_readings_are_exact_so_that_the_number_of_threads_changes_none() -> None:
    values = [1e16, 1.0, -1e16]
    readings = pl.DataFrame({"metric": ["power_w"] * 3 + ["util_pct", "memory_used_mib"], "value": [*values, 2.0, 3.0]})
    summary = pl.DataFrame({name: [1.0] for name in experiments.QUANTITIES})
    quantities = experiments._quantities(SimpleNamespace(summary=summary, telemetry=readings))  # type: ignore[arg-type]
    assert quantities["power_w"] == 1 / 3 and quantities["util_pct"] == 2.0

"""The table of mechanisms over declared memory, at the first level."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from fastsim.experiments.reproduce import monitored as experiments
from fastsim.experiments.reproduce.papers import reproduce, run_count
from fastsim.experiments.reproduce.published_numbers import published_numbers


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


def test_values_of_single_jobs_in_rising_order(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {name: experiments.POLICIES[name] for name in ("gpushare", "monitored", "monitored, no quirks")}
    monkeypatch.setattr(experiments, "POLICIES", kept)
    made = reproduce("monitor", quick=True, figures=[experiments.JOBS]).cells
    assert len(made) == 2 * 3 * 30 and set(made["figure"]) == {experiments.JOBS}
    by_name = {name: made.filter(policy=name[0], quantity=name[1]) for name in made.select("policy", "quantity").rows()}
    for values in by_name.values():
        assert values["published"].is_sorted() and values["ours"].is_sorted()
        assert values["case"][29] == "0 % more, value 29 in rising order"
    starts, waits = by_name["gpushare", "start"], by_name["gpushare", "wait"]
    assert set(starts["verdict"]) <= {"same", "within"} and set(waits["verdict"]) == {"indicative"}
    assert set(by_name["gpushare", "restarts"]["verdict"]) == {"same"}
    assert set(by_name["monitored", "restarts"]["verdict"]) == {"indicative"}


def test_a_start_is_the_sum_of_a_wait_and_the_arrival_of_its_job() -> None:
    rows = published_numbers("monitor").filter(
        figure=experiments.JOBS, panel="over-provisioning 0 %", series="exclusive", metric="wait"
    )
    jobs = pl.DataFrame({"pod_id": range(30), "submit_s": [1000.0 - k for k in range(30)], "restarts": [0] * 30})
    result = SimpleNamespace(jobs=jobs.with_columns(queue_s=rows["value"] + 0.25).sample(fraction=1, shuffle=True))
    cells = list(experiments._job_cells((0, "exclusive"), result))  # type: ignore[arg-type]
    starts = sorted(wait + 1000.0 - k for k, wait in enumerate(rows["value"]))
    assert [one.published for one in cells[:30]] == starts
    assert [one.deviation for one in cells[:30]] == [0.25] * 30


def test_means_of_readings_are_exact_so_that_the_number_of_threads_changes_none() -> None:
    values = [1e16, 1.0, -1e16]
    readings = pl.DataFrame({"metric": ["power_w"] * 3 + ["util_pct", "memory_used_mib"], "value": [*values, 2.0, 3.0]})
    summary = pl.DataFrame({name: [1.0] for name in experiments.QUANTITIES})
    quantities = experiments._quantities(SimpleNamespace(summary=summary, telemetry=readings))  # type: ignore[arg-type]
    assert quantities["power_w"] == 1 / 3 and quantities["util_pct"] == 2.0

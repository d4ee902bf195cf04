"""The tables of the Sia and Pollux papers on few short lists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fastsim.engine.result import Result
from fastsim.errors import FastsimError
from fastsim.experiments.many_runs import simulate_many
from fastsim.experiments.reproduce import sia_pollux as paper
from fastsim.experiments.reproduce.sia_pollux import run_count, sia_reproduction


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short generated lists, a short search, and no plots."""
    monkeypatch.setattr(paper, "PLOTS", ())
    monkeypatch.setattr(paper, "QUICK_JOBS", 3)
    monkeypatch.setattr(paper, "MIXED_POLICIES", ("sia", "rotation"))


def lists(folder: Path, trace: str, jobs: int) -> None:
    """Two lists of a trace."""
    place = folder / "workloads" / trace
    place.mkdir(parents=True)
    for number, app in ((1, "cifar10"), (2, "deepspeech2")):
        rows = [f"{app}-{k},{100 * k},{app},1,128" for k in range(jobs)]
        head = "name,time,application,num_replicas,batch_size"
        (place / f"workload-{number}.csv").write_text("\n".join([head, *rows]) + "\n")


def test_generated_lists_are_a_glance() -> None:
    reported: list[int] = []
    reproduction = sia_reproduction(None, True, 1, reported.append)
    assert (
        reproduction.runs == reported[-1] == run_count(None, "sia", True) == 2
        and "a glance only" in reproduction.source
    )
    assert reproduction.cells["verdict"].unique().sort().to_list() == ["indicative", "no reference"]
    mean = reproduction.cells.filter(quantity="mean completion time")
    assert mean["published"].to_list() == [0.6, 1.9] and mean["policy"].to_list() == ["sia", "rotation"]
    assert reproduction.curves["chart"].unique().to_list() == ["table 3, philly: completion times"]
    assert "subramanya" in reproduction.citation


def test_all_rows_of_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert run_count(None, "sia", False) == 3 * (3 * 3 + 6 + 1 + 3 + len(paper.PLOTS)) - 2 * 4
    assert run_count(None, "pollux", False) == 3 * 6
    for row in paper._rows(None, "sia", False):
        paper._scenario(row, row.lists[0], None).check()


def test_lists_of_a_folder_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lists(tmp_path, "philly", 4)
    monkeypatch.setattr(paper, "EQUAL_POLICIES", ("rotation",))
    effect = ("tuned over asked", "11", "jct_mean_gain_from_batch_size", -1)
    monkeypatch.setattr(paper, "EFFECTS", {"sia(tuned=False)": effect})
    reproduction = sia_reproduction(tmp_path, False, 1)
    assert (
        "2 of philly; made-up applications" in reproduction.source
        and reproduction.runs == run_count(tmp_path, "sia", False) == 10
    )
    assert "Table 4" not in reproduction.source  # nothing to compare
    assert reproduction.cells["verdict"].unique().sort().to_list() == ["indicative", "no reference"]
    monkeypatch.setattr(paper, "applications_file", lambda *_: "default")
    reproduction = sia_reproduction(tmp_path, False, 1)
    assert set(reproduction.cells["verdict"]) <= {"same", "within", "outside", "no reference"}
    assert "behind the published 12.5 to 17.2 are other requests" in reproduction.source
    roomy = reproduction.cells.filter(case="philly, no waits")
    assert set(roomy["verdict"]) == {"no reference"} and roomy.filter(quantity="GPU hours of a job")["ours"][0] > 0
    assert reproduction.cells.filter(figure="11")["published"].to_list() == [-13.0]
    row = reproduction.cells.filter(figure="table 3", policy="sia")
    assert row.filter(quantity="mean completion time")["bar"][0] == pytest.approx(0.1 + 0.05)  # as printed
    assert row.filter(quantity="99th percentile")["bar"][0] > 0.05  # that of the lists


def test_policies_are_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lists(tmp_path, "philly", 3)
    lists(tmp_path, "saturn", 3)
    given = ("rotation", "served")
    reproduction = sia_reproduction(tmp_path, False, 1, policies=given)
    rows = reproduction.cells.select("figure", "case", "policy").unique(maintain_order=True).rows()
    assert sorted(rows) == sorted([
        ("table 3", "saturn", "rotation"), ("table 3", "philly", "rotation"), ("table 4", "philly", "rotation"),
        ("table 4", "philly, no waits", "rotation"),
        ("table 3", "philly", "served"), ("table 3", "saturn", "served"),
    ])  # fmt: skip
    assert (
        reproduction.runs == run_count(tmp_path, "sia", False, policies=given) == 12 and (reproduction.cpu_s or 0) > 0
    )
    strange = reproduction.cells.filter(policy="served")
    assert strange["published"].null_count() == len(strange)
    means = reproduction.cells.filter(reproduction.cells["quantity"].str.starts_with("mean"))
    (mean_h, spread_h) = means.filter(case="saturn", policy="rotation")["ours"]
    assert mean_h > spread_h > 0


def test_what_lacks_a_part_is_compared_with_the_whole() -> None:
    rows = paper._rows(None, "sia", False)
    chosen = paper._chosen(rows, ["sia(tuned=False)"], ())
    assert [row[:3] for row in chosen] == [("11", "philly", "sia(tuned=False)"), ("table 3", "philly", "sia")]
    assert paper._chosen(rows, [], ()) == rows


def test_profiling_is_compared_on_the_lists_of_helios(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "applications_file", lambda *_: "default")
    for trace in ("philly", "saturn"):
        lists(tmp_path, trace, 2)
    reproduction = sia_reproduction(tmp_path, False, 1, figures=[paper.PROFILING])
    assert reproduction.runs == run_count(tmp_path, "sia", False, figures=[paper.PROFILING]) == 3 * 2
    cells = reproduction.cells
    assert set(cells["case"]) == {"saturn"} and cells["published"].to_list()[:2] == [8.0, -30.0]
    bars = cells.filter(quantity="jct_mean")
    assert bars["published"].round(2).to_list() == [0.72, 0.66, 1.02] and bars["policy"][0] == "sia"


def test_a_folder_without_lists(tmp_path: Path) -> None:
    with pytest.raises(FastsimError, match="no list of jobs"):
        sia_reproduction(tmp_path, True, 1)


def test_a_policy_may_stand_for_another_one_in_the_tables() -> None:
    (result,) = simulate_many([paper._scenario(equal := row_of(paper.PRICED), equal.lists[0], None)], 1)
    for row, published in ((equal, 2.6), (row_of("sia"), 2.6), (row_of("optimus"), None)):
        cells = {cell.quantity: cell for cell in paper._table_cells(row, [result], True)}
        assert cells["restarts of a job"].published == published


def row_of(policy: str) -> paper.Row:
    return paper.Row("table 4", "philly", policy, paper.EQUAL, ("synth:sia?jobs=3&seed=1",))


PLOTS = paper.PLOTS


def plotted(data: Path, monkeypatch: pytest.MonkeyPatch, figure: str, *series: str) -> pl.DataFrame:
    """Cells of a plot with these series, of all lists of the folder."""
    monkeypatch.setattr(paper, "applications_file", lambda *_: "default")
    chosen = tuple(plot for plot in PLOTS if plot.figure == figure and plot.series in series)
    monkeypatch.setattr(paper, "PLOTS", chosen)
    made = sia_reproduction(data, False, 1, figures=[figure])
    assert made.runs == run_count(data, "sia", False, figures=[figure]) >= len(chosen) > 0
    return made.cells.filter(pl.col("figure") == figure)


def test_rigid_jobs_beside_adaptive_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lists(tmp_path, "philly", 3)
    cells = plotted(tmp_path, monkeypatch, "1", "sia")
    assert cells.filter(quantity="jct_mean")["published"].sort().to_list() == [0.6, 1.5, 1.9]
    assert set(cells.filter(quantity="jct_mean_error_bar_half_width")["verdict"]) == {"indicative"}
    assert paper.RIGID["sia"] in set(cells["policy"]) or "sia" in set(cells["policy"])


def test_gpu_hours_are_over_the_smallest_total(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lists(tmp_path, "saturn", 3)
    cells = plotted(tmp_path, monkeypatch, "6", "sia", "rotation")
    for app in ("cifar10", "deepspeech2"):
        of_app = cells.filter(pl.col("case").str.ends_with(app))
        totals = of_app.filter(pl.col("case").str.starts_with("total"))
        assert len(of_app) == 8 and totals["ours"].min() == 1.0
        models = of_app.filter(~pl.col("case").str.starts_with("total"))
        assert models["ours"].sum() == pytest.approx(totals["ours"].sum())


def test_the_bar_of_gpu_hours_is_the_deviation_of_the_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for name, gone in (("both", 0), ("first", 2), ("second", 1)):
        lists(tmp_path / name, "saturn", 3)
        second = tmp_path / name / "workloads/saturn/workload-2.csv"
        second.write_text(second.with_name("workload-1.csv").read_text().replace("0,cifar10", "7,cifar10"))
        (second if gone == 2 else second.with_name(f"workload-{gone}.csv")).unlink(missing_ok=True)
        cells = plotted(tmp_path / name, monkeypatch, "6", *paper.ADAPTIVE).sort("case", "policy")
        made.append(cells.filter(pl.col("case").str.ends_with("cifar10")))
    both, first, second_only = made
    deviation = np.std([first["ours"], second_only["ours"]], axis=0, ddof=1)
    assert len(both) == 12 and deviation.max() > 0
    assert both["bar"].to_list() == pytest.approx((first["bar"].to_numpy() + deviation).tolist())


def test_the_last_round_of_a_job_counts_as_a_whole_one() -> None:
    row = row_of("rotation")._replace(cluster=paper.MIXED)
    (result,) = simulate_many([paper._scenario(row, row.lists[0], None)], 1)
    hours = paper._gpu_hours(result)
    total = sum(value for (model, _), value in hours.items() if model == "total")
    assert total == pytest.approx(result.jobs["round_gpu_hours"].sum())
    assert total > result.jobs["gpu_hours"].sum()
    assert sum(value for (model, _), value in hours.items() if model != "total") == pytest.approx(total)


def test_active_jobs_are_counted_at_the_end_of_each_round_from_second_0() -> None:
    jobs = pl.DataFrame({"submit_s": [130.0, 60.0, 61.0], "end_s": [200.0, 180.0, 425.0]})
    result, ends = Result({"jobs": jobs}, {}, {}), [60.0 * number for number in range(1, 9)]
    twin = [sum(first <= end < last for first, last in jobs.rows()) for end in ends]
    assert paper._active_mean(result, 60.0) == pytest.approx(np.mean(twin))
    assert twin == [1, 2, 2, 1, 1, 1, 1, 0]


def test_lists_by_arrival_rate_stand_in_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data/sia").mkdir(parents=True)
    lists(tmp_path, "philly", 1)  # table 3 wants a list
    rows = [{"name": f"cifar10-{k}", "time": 100 * k, "application": "cifar10", "num_replicas": 1, "batch_size": 128,
             "_workload": number} for number in (1, 2) for k in range(2)]  # fmt: skip
    for rate in (10, 20, 30, 40, 50):
        pl.DataFrame(rows).write_parquet(tmp_path / f"data/sia/workloads_scale_rate_{rate}.parquet")
    cells = plotted(tmp_path, monkeypatch, "7", "rotation").filter(quantity="jct_mean")
    assert cells["at"].to_list() == [10.0, 20.0, 30.0, 40.0, 50.0] and cells["ours"].n_unique() == 1


def test_ratios_are_to_the_smallest_or_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lists(tmp_path, "saturn", 3)
    lists(tmp_path, "philly", 3)
    cells = plotted(tmp_path, monkeypatch, "10", "sia [p=-1]", "sia [p=0.3]", "sia [round 300 s]")
    ratios = cells.filter(quantity="jct_mean_normalised")
    assert ratios["ours"].min() == 1.0 and ratios["at"].sort().to_list() == [-1.0, 0.3]
    assert cells.filter(quantity="jct_mean")["policy"].to_list() == ["sia [round 300 s]"]
    cells = plotted(tmp_path, monkeypatch, "11", "sia").filter(pl.col("quantity") == "jct_mean_normalised")
    assert set(cells.filter(at=0.0)["ours"]) == {1.0} and cells["at"].unique().sort().to_list() == [0.0, 50.0, 100.0]


def test_fairness_of_the_jobs_of_one_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lists(tmp_path, "saturn", 3)
    monkeypatch.setattr(paper, "applications_file", lambda *_: "default")
    monkeypatch.setattr(paper, "PLOTS", tuple(plot for plot in PLOTS if plot.figure == "8" and plot.policy == "sia"))
    made = sia_reproduction(tmp_path, False, 1, figures=["8"])
    assert made.runs == run_count(tmp_path, "sia", False, figures=["8"]) == 1
    ours = dict(made.cells.select("quantity", "ours").iter_rows())
    assert ours["ftf_rho_p10"] <= ours["ftf_rho_p50"] <= ours["ftf_rho_p99"] <= ours["ftf_rho_max"]
    assert 0 < ours["jct_p25"] <= ours["jct_p99"] and 0 <= ours["fraction_rho_above_1"] <= 100
    assert set(made.cells["verdict"]) == {"indicative"} and set(made.cells["policy"]) == {"sia"}


def test_pipelines_side_by_side(shared: Callable[[str], Path]) -> None:
    data = shared("golden/sia/input").parents[2]
    made = sia_reproduction(data, False, 1, figures=[paper.GPT])
    assert made.runs == 0 and len(made.cells) == 35 and set(made.cells["verdict"]) == {"within"}
    assert sia_reproduction(None, True, 1, figures=[paper.GPT]).cells.is_empty()

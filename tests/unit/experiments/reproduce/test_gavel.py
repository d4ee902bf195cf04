"""Figures of the Gavel paper: ratios of rates, and completion times at one load."""

from __future__ import annotations

import pytest

from fastsim.experiments.reproduce import gavel as figure

FTF = "ftf-single (repository figure)"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few jobs on few GPUs."""
    monkeypatch.setattr(figure, "WINDOW", "20:40")
    monkeypatch.setattr(figure, "CLUSTER", "gavel:8:8:8")


def test_a_figure_at_one_load() -> None:
    reported: list[int] = []
    name = "fifo-single (repository figure)"
    reproduction = figure.gavel_reproduction(None, True, 1, reported.append, figures=(name,))
    assert reproduction.runs == figure.run_count(None, "gavel", True, (name,)) == 2 and reported == [1, 2]
    cells = reproduction.cells.filter(policy="fifo", case="seed 0, printed")
    assert set(reproduction.cells["figure"]) == {name}
    assert cells.select("published", "bar", "at").rows() == [(18.32, pytest.approx(0.04 * 18.32), 2.0)]
    assert reproduction.curves["policy"].to_list() == ["fifo", "fifo_perf"] and "narayanan" in reproduction.citation


def test_quantiles_and_means_of_three_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(figure.LOADS, "8", figure.LoadFigure(False, ("gandiva",), (2.0,)))
    reproduction = figure.gavel_reproduction(None, False, 1, figures=("8",))
    assert reproduction.runs == 3
    assert set(reproduction.cells["quantity"]) == {
        "jct_mean", "jct_mean_sd_over_seeds", *(f"jct_p{part}" for part in (25, 50, 75, 90, 95, 99)),
    }  # fmt: skip
    hours = {row["quantity"]: row["ours"] for row in reproduction.cells.filter(case="b, CDF of JCT").rows(named=True)}
    assert hours["jct_p25"] < hours["jct_p50"] < hours["jct_p99"]


def test_figures_share_runs() -> None:
    eight, ftf = figure.run_count(None, "", True, ("8",)), figure.run_count(None, "", True, (FTF,))
    assert figure.run_count(None, "", True, ("8", FTF)) == eight + ftf - 1  # allox is in both


def test_ratios_of_rates_need_no_run() -> None:
    reproduction = figure.gavel_reproduction(None, True, 1, figures=("1",))
    assert reproduction.runs == 0 and set(reproduction.cells["verdict"]) == {"indicative"}
    cells = {(row["case"], row["policy"]): row for row in reproduction.cells.rows(named=True)}
    case = next(case for case, _ in cells if case.startswith("a, ResNet-50"))
    rate, dollars = cells[case, "v100"], cells[case.replace("a,", "b,", 1), "v100"]
    assert (rate["published"], dollars["published"]) == (9.6, 1.8)
    assert dollars["ours"] == pytest.approx(rate["ours"] * 0.135 / 0.74)


def test_makespans_of_jobs_that_all_arrive_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "makespan (static-multiple)"
    few = figure.STATIC[name]._replace(cluster="gavel:8:8:8", policies=("gandiva",))
    monkeypatch.setitem(figure.STATIC, name, few)
    reproduction = figure.gavel_reproduction(None, True, 1, figures=(name,))
    assert reproduction.runs == figure.run_count(None, "gavel", True, (name,)) == 3
    cells = reproduction.cells
    assert cells["quantity"].sort().to_list() == ["makespan", "makespan_sd_over_seeds"]
    assert set(cells["at"]) == {100.0} and set(cells["policy"]) == {"gandiva"}
    mean = cells.filter(quantity="makespan").row(0, named=True)
    assert mean["published"] == pytest.approx(166.610363) and mean["bar"] == pytest.approx(0.02 * mean["ours"])


def test_every_cluster_of_the_makespans_is_known() -> None:
    for static in figure.STATIC.values():
        point = figure.StaticPoint(static.cluster, static.multi_gpu, static.policies[-1], 100, 0)
        figure._scenario(point, "default").check()
    assert {static.cluster for static in figure.STATIC.values()} == {"gavel:36:36:36", "gavel:64:0:0", "gavel:48:32:16"}

"""Figures of the Gavel paper: ratios of rates, and completion times at one load."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from fastsim.engine.result import Result
from fastsim.errors import ScenarioError
from fastsim.experiments.reproduce import gavel as figure
from fastsim.experiments.reproduce import papers
from fastsim.performance.gavel_rates import JOB_NAMES
from fastsim.performance.oracle import Oracle
from fastsim.policies.registry import parse
from fastsim.simulation.simulate import played

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
    assert reproduction.runs == figure.run_count(None, "gavel", True, (name,)) == 3 and reported == [1, 2, 3]
    cells = reproduction.cells.filter(policy="fifo", case="seed 0, printed")
    assert set(reproduction.cells["figure"]) == {name}
    assert cells.select("published", "bar", "at").rows() == [(18.32, pytest.approx(0.04 * 18.32), 2.0)]
    assert reproduction.curves["policy"].to_list() == list(figure.FIFO) and "narayanan" in reproduction.citation


@pytest.mark.long
def test_quantiles_and_means_of_three_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(figure.LOADS, "8", (figure.LoadFigure(False, ("gandiva",), (2.0,)),))
    reproduction = figure.gavel_reproduction(None, False, 1, figures=("8",))
    assert reproduction.runs == 3 + 1 + 6  # under isolated, and the sample of the instructions
    assert set(reproduction.cells["quantity"]) == {
        "utilization", "jct_mean", "jct_mean_sd_over_seeds", *(f"jct_p{part}" for part in (25, 50, 75, 90, 95, 99)),
        "fraction_rho_above_1", "ftf_rho_mean", *(f"ftf_rho_p{part}" for part in (10, 25, 50, 75, 90, 95, 99, 100)),
    }  # fmt: skip
    assert set(reproduction.curves["policy"]) == {"allox", "gandiva"}
    hours = {row["quantity"]: row["ours"] for row in reproduction.cells.filter(case="b, CDF of JCT").rows(named=True)}
    assert hours["jct_p25"] < hours["jct_p50"] < hours["jct_p99"]


def test_fairness_is_over_the_same_jobs_under_isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure, "WINDOW", "1:6")
    jobs: list[int] = [3, 1, 2, 0, 6, 4, 5]
    times = {"alone": [20.0, 100.0, 50.0, 1.0, 1.0, None, 2.0], "here": [20.3, 90.0, 60.0, 9.0, 0.1, 5.0, None]}
    alone, here = (
        Result({"jobs": pl.DataFrame({"pod_id": jobs, "jct_s": seconds})}, {}, {}) for seconds in times.values()
    )  # fmt: skip
    row = {"figure": "8", "panel": "b", "series": "allox", "x": "2", "unit": "", "value": 1.0, "digit": 0.0,
           "tolerance": 0.001}  # fmt: skip
    expected = {"ftf_rho_p50": (1.015, 0.021), "ftf_rho_p100": (1.2, 0.021), "ftf_rho_mean": (3.115 / 3, 0.021),
                "fraction_rho_above_1": (2 / 3, 1 / 3 + 0.001)}  # fmt: skip
    for metric, values in expected.items():
        cell = figure._fairness_cell({**row, "metric": metric}, here, alone)
        assert (cell.ours, cell.bar) == pytest.approx(values)


def test_the_sample_of_the_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(figure.LOADS, "8", ())
    cells = figure.gavel_reproduction(None, False, 1, figures=("8",)).cells
    assert len(cells) == 12 and set(cells["case"]) == {f"{figure.SAMPLE}{seed}" for seed in (15, 42, 1234)}
    assert cells["bar"].max() == pytest.approx(5e-7, rel=0.01)
    assert cells.filter(quantity="utilization")["ours"].is_between(0.01, 1.0).all()
    assert cells.filter(quantity="jct_mean")["ours"].min() > 600.0  # type: ignore[operator]


def test_figures_share_runs() -> None:
    eight, ftf = figure.run_count(None, "", True, ("8",)), figure.run_count(None, "", True, (FTF,))
    assert figure.run_count(None, "", True, ("8", FTF)) == eight + ftf - 2  # allox and isolated are in both


def test_figures_made_together_have_the_cells_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Although the abstract has runs at a load at which figure 8, with numbers there, has none under ``isolated``."""
    monkeypatch.setitem(figure.LOADS, "8", (figure.LoadFigure(False, ("max_min_fairness",), (2.0,)),))
    monkeypatch.setattr(figure, "CLUSTER", "gavel:36:36:36")
    monkeypatch.setattr(figure, "SWEPT_JOBS", 20)
    names = ("8", figure.ABSTRACT)
    alone = [figure.gavel_reproduction(None, True, 1, figures=(name,)).cells for name in names]
    assert figure.gavel_reproduction(None, True, 1, figures=names).cells.equals(pl.concat(alone))
    assert len(alone[0]) > 0 and set(alone[0]["at"]) == {2.0}


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


EARLY = "makespan multi_gpu_v100=64_p100=0_k80=0 (repository figure)"


@pytest.fixture
def early_rates(tmp_path: Path) -> Path:
    """A folder with rates in the form of 2019: those of fastsim on one GPU for every number of GPUs."""
    oracle = Oracle.default()
    alone = {(row["workload"], row["gpu_model"]): row["steps_per_s"] for row in oracle.table().to_pylist()
             if row["num_gpu"] == 1 and row["colocated_workload"] is None}  # fmt: skip
    rates = {
        model: {
            one: {"null": alone[one, model]}
            | {two: [0.6 * alone[name, model] for name in (one, two)] for two in JOB_NAMES}
            for one in JOB_NAMES
        }
        for model in oracle.gpu_models
    }  # fmt: skip
    path = tmp_path / figure.EARLY_RATES
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(rates), encoding="utf-8")
    return tmp_path


def test_makespans_of_2019_wait_for_all_jobs_but_one(early_rates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = figure.STATIC[EARLY]._replace(cluster="gavel:30:0:0", policies=("fifo_packed",), seeds=(0, 1))
    monkeypatch.setitem(figure.STATIC, EARLY, few)
    made = figure.gavel_reproduction(early_rates, True, 1, figures=(EARLY,))
    mean = made.cells.filter(quantity="makespan").row(0, named=True)
    spans_h = []
    for seed in (0, 1):
        point = figure.StaticPoint("gavel:30:0:0", True, "fifo_packed", 100, seed, table="2019-09")
        scenario = figure._scenario(point, "default", str(early_rates / figure.EARLY_RATES))
        result = played(scenario)[0]
        ends = result.jobs["end_s"].sort()
        assert len(ends) == 101 and scenario.realloc_s == 0.0
        span_s = figure._early_span_s(result)
        assert ends[-2] <= span_s <= min(ends[-1], ends[-2] + 1920)
        assert span_s in result.frames["timeline"].filter(event="sample")["t_s"]
        spans_h.append(span_s / 3600)
    assert mean["ours"] == pytest.approx(sum(spans_h) / 2) and mean["verdict"] != "indicative"


def test_makespans_of_2019_without_rates_of_then_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    few = figure.STATIC[EARLY]._replace(cluster="gavel:30:0:0", policies=("fifo_packed",), seeds=(0, 1))
    monkeypatch.setitem(figure.STATIC, EARLY, few)
    cells = figure.gavel_reproduction(None, True, 1, figures=(EARLY,)).cells
    assert set(cells["verdict"]) == {"indicative"}
    point = figure.StaticPoint("gavel:30:0:0", True, "fifo_packed", 100, 0, table="2019-09")
    assert "jobs=100&seed=0&table=2020-05" in str(figure._scenario(point, "default").workload)


def test_every_cluster_of_the_makespans_is_known() -> None:
    for static in figure.STATIC.values():
        point = figure.StaticPoint(static.cluster, static.multi_gpu, static.policies[-1], 100, 0)
        figure._scenario(point, "default").check()
    assert {static.cluster for static in figure.STATIC.values()} == {"gavel:36:36:36", "gavel:64:0:0", "gavel:48:32:16"}


def test_jobs_are_those_of_the_revision_that_made_the_figure() -> None:
    for name in (*figure.LOADS, *figure.STATIC, figure.COST):
        for point in figure._points_of(name, False, False):
            sample = isinstance(point, figure.LoadPoint) and point.seed > 2
            last = sample or name == figure.COST or (name == figure.SWEEP and point.policy != figure.ISOLATED)
            scenario = figure._scenario(point, "default")
            assert f"&table={'2020-08' if last else '2020-05'}" in str(scenario.workload)
            if isinstance(point, figure.StaticPoint):
                assert scenario.round_s == (360.0 if last else 1920.0)


def test_runs_with_priorities_fill_to_the_end_and_entities_one_level() -> None:
    name = "priorities-multiple (repository figure)"
    for policy, mode in zip(figure.LOADS[name][0].policies, ("base", "perf"), strict=True):
        scenario = figure._scenario(figure.LoadPoint(True, policy, 0.8, 0, priorities=True), "default")
        expected = f"max_min_fairness_water_filling(mode={mode}, program_compat=True)"
        assert scenario.policy == expected and parse(expected)


def test_settings_in_brackets_reach_the_run() -> None:
    for series, field, value in (
        ("max_min_fairness_perf [round 720 s]", "round_s", 720.0),
        ("max_min_fairness_perf [ideal fluid execution]", "ideal", True),
        ("max_min_fairness_packed [estimated throughputs]", "references", 16),
    ):
        scenario = figure._scenario(figure.LoadPoint(False, series, 2.0, 0), "default")
        assert getattr(scenario, field) == value
    assert len(figure.LENGTHS) == 4


@pytest.mark.long
def test_rounds_beside_ideal_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure, "CLUSTER", "gavel:36:36:36")  # jobs of 8 GPUs wait for ever on 8
    reproduction = figure.gavel_reproduction(None, True, 1, figures=("13",))
    assert reproduction.runs == figure.run_count(None, "gavel", True, ("13",)) == 6 + 2
    panels = reproduction.cells.group_by("case").agg(pl.col("policy").n_unique(), pl.col("at").unique())
    assert sorted(panels.rows()) == [
        ("ideal, multi-GPU jobs (repository figure)", 2, [0.8]), ("ideal, single-GPU jobs", 2, [2.0]),
        ("round length", 4, [2.0]),
    ]  # fmt: skip
    assert set(reproduction.cells["verdict"]) == {"indicative"}  # one seed beside means of three


@pytest.mark.long
def test_means_by_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "priorities-multiple (repository figure)"
    few = figure.LOADS[name][0]._replace(policies=("max_min_fairness_water_filling",), rates=(0.8,))
    monkeypatch.setitem(figure.LOADS, name, (few,))
    reproduction = figure.gavel_reproduction(None, False, 1, figures=(name,))
    means = reproduction.cells.filter(quantity="jct_mean")
    assert reproduction.runs == 3 and set(means["case"]) == {
        f"{kind} priority jobs{end}" for kind in ("high", "low") for end in ("", ", printed")
    }  # fmt: skip
    assert means["ours"].n_unique() == 2


def test_long_figures_are_quick_only_if_named() -> None:
    every, named = figure.run_count(None, "", True), figure.run_count(None, "", True, ("13",))
    points = set(figure._points(True, ()))
    assert every == len(points) and not points >= set(figure._points(True, ("13",))) and named == 8
    assert set(figure._points(False, ())) >= set(figure._points(False, figure.LONG))


def test_a_whole_figure_has_every_published_point() -> None:
    few, every = (set(figure._points(False, ("8", "13"), whole)) for whole in (False, True))
    assert few < every
    for name, load in (("8", figure.LOADS["8"][0]), *(("13", load) for load in figure.LOADS["13"])):
        means = figure._numbers(name).filter(pl.col("metric") == "jct_mean", pl.col("series").is_in(load.policies))
        for row in means.filter(~pl.col("panel").str.starts_with(figure.SAMPLE)).iter_rows(named=True):
            if name == "8" or ("multi-GPU" in row["panel"]) == load.multi_gpu:
                assert figure.LoadPoint(load.multi_gpu, row["series"], float(row["x"]), 0) in every
    name = "makespan (static-multiple)"
    static = figure._points(False, (name,), True)
    assert figure.StaticPoint("gavel:36:36:36", True, "min_total_duration_packed", 700, 2) in static


def test_the_whole_is_of_papers_of_which_some_loads_are_usual() -> None:
    assert papers.run_count("gavel", figures=["10"], whole=True) > papers.run_count("gavel", figures=["10"])
    for paper, quick in (("sia", False), ("gavel", True)):
        with pytest.raises(ScenarioError, match=r"whole: found '?(sia|quick)"):
            papers.run_count(paper, quick=quick, whole=True)


def test_clusters_are_swept_by_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure, "SWEPT_JOBS", 12)
    reproduction = figure.gavel_reproduction(None, True, 1, figures=(figure.SWEEP,))
    cells = reproduction.cells.filter(quantity="jct_reduction")
    assert cells["case"].to_list() == [f"average JCT, Frac. of V100s = {part}" for part in ("1.0", "0.5", "0.1")]
    assert cells["ours"][0] == 1.0 and cells["at"].to_list() == [2.0] * 3
    spans = reproduction.cells.filter(quantity="makespan_reduction")
    assert spans.select("case", "at").rows() == [("makespan, seed 0", 0.5)] and reproduction.runs == 8


def test_entities_take_jobs_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    reproduction = figure.gavel_reproduction(None, True, 1, figures=("11",))
    whole = reproduction.cells.filter(pl.col("quantity").str.starts_with("fraction"), pl.col("at") == 72)
    assert reproduction.runs == 0 and len(whole) == 36
    for case in whole["case"].unique():
        assert whole.filter(case=case)["ours"].sum() == pytest.approx(1.0)
    agnostic = reproduction.cells.filter(pl.col("policy") == "hierarchical water filling, heterogeneity-agnostic")
    assert agnostic["ours"].max() == pytest.approx(9.0)  # all GPUs
    # Drawn rates are those of Python's generator, so these numbers do not depend on the rates of the oracle.
    random = reproduction.cells.filter(pl.col("case").str.contains(", random throughputs"))
    assert len(random) == 612 and random.filter(verdict="outside").height == 5
    assert random["deviation"].abs().max() < 0.01  # type: ignore[operator]


def test_what_gpus_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure, "COST_JOBS", 10)
    monkeypatch.setattr(figure, "CLUSTER", "gavel:4:4:4")
    made = figure.gavel_reproduction(None, True, 1, figures=(figure.COST,))
    assert made.runs == figure.run_count(None, "gavel", True, (figure.COST,)) == 3
    assert made.cells["policy"].unique(maintain_order=True).to_list() == list(figure.COST_POLICIES)
    assert set(made.cells["verdict"]) == {"no reference"}
    usual, per_cost, _ = made.cells.filter(quantity="cost of all jobs")["ours"]
    assert 0 < per_cost < usual
    assert made.cells.filter(quantity="jobs past their deadlines")["ours"][2] == 0

"""The figures of the Pollux paper on few short lists, and published jobs where the lists are at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastsim.engine.result import Result
from fastsim.errors import FastsimError
from fastsim.experiments.many_runs import simulate_many
from fastsim.experiments.reproduce import pollux as paper
from fastsim.experiments.reproduce.pollux import Point, pollux_reproduction, run_count
from fastsim.experiments.reproduce.published_numbers import published_numbers

SHORT = "synth:sia?jobs=3&seed=1"
OTHERS = ("optimus(oracle=True, interval_s=0)", "served(order=demotion, first_h=16, nodes=emptiest)")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short generated lists."""
    monkeypatch.setattr(paper, "QUICK_JOBS", 3)


def result_of(policy: str = OTHERS[1]) -> Result:
    (result,) = simulate_many([paper._scenario(Point(policy, 1.0, 60.0, 1), {(1.0, 1): SHORT}, None)], 1)
    return result


def test_generated_lists_are_a_glance() -> None:
    reported: list[int] = []
    reproduction = pollux_reproduction(None, True, 1, reported.append, OTHERS, ("8a", "abstract"))
    assert reproduction.runs == reported[-1] == run_count(None, "pollux", True, OTHERS, ("8a", "abstract")) == 2
    assert "a glance" in reproduction.source and "qiao2021pollux" in reproduction.citation
    assert set(reproduction.cells["verdict"]) <= {"indicative", "no reference"}


def test_runs_of_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = {(load, number): SHORT for load in (0.5, 1.0) for number in (1, 6)}
    monkeypatch.setattr(paper, "_lists", lambda *_: lists)
    assert run_count(None, "pollux", False, (), ("8a",)) == 3 * 4
    assert run_count(None, "pollux", False, (), ("8b",)) == 5 * 2
    assert run_count(None, "pollux", False, (), ("8a", "8b")) == 3 * 4 + 4 * 2  # those of 60 s are the same
    assert run_count(None, "pollux", False, (), ("simulator fidelity (5.3)",)) == 3
    assert run_count(None, "pollux", False, (), ("abstract",)) == 3 * 2
    assert run_count(None, "pollux", False, OTHERS[:1], ("8b",)) == 0


def test_the_list_of_the_testbed_is_the_quick_one(tmp_path: Path) -> None:
    (tmp_path / "workloads").mkdir()
    for number in (1, 6):
        text = "name,time,application,num_replicas,batch_size\na-0,1,bert,1,12\n"
        (tmp_path / f"workloads/workload-{number}.csv").write_text(text)
    assert list(paper._lists(tmp_path, True, None)) == [(1.0, 6)]
    assert list(paper._lists(tmp_path, False, None)) == [(1.0, 1), (1.0, 6)]
    for path in (tmp_path / "workloads").iterdir():
        path.unlink()
    with pytest.raises(FastsimError, match="no list of jobs"):
        paper._lists(tmp_path, True, None)


def test_each_list_is_compared_with_its_own_numbers() -> None:
    result = result_of()
    cells = {cell.quantity: cell for cell in paper._cells({Point("tiresias", 1.0, 60.0, 5): result}, True)}
    assert set(cells) == {"jct_mean", "jct_p50", "jct_p99", "makespan"}
    mean = cells["jct_mean"]
    assert mean.case == "job load, per workload, 1.0 / workload-5" and mean.policy == OTHERS[1]
    assert mean.ours == pytest.approx(result.summary["jct_mean_s"][0]) and mean.original is None
    assert mean.verdict == "outside"  # of three generated jobs


def test_the_search_has_a_bar_and_rules_have_none() -> None:
    result = result_of()
    for name, bar in (("pollux", True), ("optimus", False)):
        cells = paper._cells({Point(name, 1.0, 60.0, 1): result}, True)
        mean = next(cell for cell in cells if cell.quantity == "jct_mean")
        assert mean.bar is not None and (mean.bar > 0.04 * (mean.published or 0.0)) is bar


def test_means_need_all_lists_of_a_load() -> None:
    result = result_of()
    done = {Point("tiresias", 0.5, 60.0, number): result for number in range(1, 9)}
    whole = [cell for cell in paper._cells(done, True) if cell.case == "job load"]
    assert {cell.quantity: cell.at for cell in whole}["jct_mean"] == 0.5
    spread = next(cell for cell in whole if cell.quantity == "jct_mean_sd_over_workloads")
    assert spread.ours == 0.0
    del done[Point("tiresias", 0.5, 60.0, 3)]
    assert not [cell for cell in paper._cells(done, True) if cell.case == "job load"]


def test_intervals_and_the_gain_on_the_list_of_the_testbed() -> None:
    result = result_of()
    done = {Point("pollux", 1.0, 30.0, 6): result, Point("pollux", 1.0, 60.0, 6): result,
            Point("optimus", 1.0, 60.0, 6): result}  # fmt: skip
    cells = paper._cells(done, True)
    assert {cell.case for cell in cells if cell.figure == "8b"} == {
        f"scheduling interval, per workload, {each} / workload-6" for each in (30, 60)
    }
    gains = [cell for cell in cells if cell.quantity == "jct_mean_reduction"]
    assert [(cell.policy, cell.ours) for cell in gains] == [("pollux over optimus", 0.0)]
    assert gains[0].bar == pytest.approx(0.5), "half the printed digit"


def test_the_range_of_the_abstract_is_compared_at_its_printed_ends() -> None:
    runs = {Point(name, 1.0, 60.0, 1): result_of() for name in paper.POLICIES}
    cells = [one for one in paper._cells(runs, True) if one.figure == paper.ABSTRACT]
    assert [(one.published, one.ours, one.verdict) for one in cells] == [
        (printed, 0.0, "outside") for printed in (37.0, 50.0)
    ]
    assert all(one.bar == pytest.approx(0.5) for one in cells), "half the printed digit"
    del runs[Point("optimus", 1.0, 60.0, 1)]
    assert not [one for one in paper._cells(runs, True) if one.figure == paper.ABSTRACT], "an end needs all policies"


def test_interference_that_is_avoided_is_the_usual_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "_lists", lambda *_: {(1.0, number): SHORT for number in (1, 6)})
    assert run_count(None, "pollux", False, (), ("8c",)) == run_count(None, "pollux", False, (), ("8a", "8c")) - 4 == 8
    cells = [one for one in paper._cells({Point("pollux", 1.0, 60.0, 2): result_of()}, True) if one.figure == "8c"]
    assert {cell.quantity for cell in cells} == {"jct_mean", "jct_p50", "jct_p99", "makespan"}
    assert {cell.case for cell in cells} == {"interference, per workload, 0 / workload-2"}


def test_interference_that_is_not_avoided_has_runs_of_its_own() -> None:
    result = result_of()
    point = Point(paper.SHARING_NODES, 1.0, 60.0, 2, 0.25)
    cells = paper._cells({point: result}, True)
    assert {cell.case for cell in cells} == {"interference, per workload, 25 / workload-2"}
    assert {cell.policy for cell in cells} == {"pollux(apart=False, fit_stop=2.22045e-09)"} and len(cells) == 4
    assert all(cell.bar is not None and cell.bar > 0.04 * (cell.published or 0.0) for cell in cells)
    scenario = paper._scenario(point, {(1.0, 2): SHORT}, None)
    assert (scenario.interference, scenario.policy) == (0.25, paper.TEXTS[paper.SHARING_NODES])
    every = {point._replace(number=n): result for n in range(1, 9)}
    means = [one for one in paper._cells(every, True) if one.case == "interference"]
    assert {cell.at for cell in means} == {25.0} and {cell.figure for cell in means} == {"8c"}
    charts = paper._curves(every)["chart"].unique().to_list()
    assert charts == ["Completion time over interference"]


def test_another_policy_has_no_reference() -> None:
    (cell,) = paper._cells({Point("rotation", 1.0, 60.0, 1): result_of()}, True)
    assert (cell.policy, cell.verdict) == ("rotation", "no reference")
    assert paper._names(["rotation", OTHERS[0]]) == ["rotation", "optimus"]


def test_every_published_list_number_has_a_run() -> None:
    per_list = published_numbers("pollux").filter(figure="8b")["x"].unique().to_list()
    assert all(paper._plain(text.partition(" / ")[0]) in paper.INTERVALS_S for text in per_list)

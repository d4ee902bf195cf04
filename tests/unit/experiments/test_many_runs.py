"""Many runs: checked before the first one, the same bytes on any number of workers and in threads; shared ones once."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import fastsim as fs
from fastsim.experiments import many_runs
from fastsim.experiments.many_runs import SharedRuns, sharing
from fastsim.experiments.reproduce import papers
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.simulate import PodTooLarge
from tests.unit.simulation.test_simulation import CLUSTER, FEW, pods


def test_many_runs_are_checked_before_the_first_one() -> None:
    with pytest.raises(fs.ScenarioError, match="2 mistakes"):
        fs.simulate_many([{"cluster": CLUSTER, "workload": "none", "policy": "fdg"}])
    assert fs.simulate_many([]) == []


@pytest.mark.long
def test_one_and_two_workers_write_the_same_bytes(tmp_path: Path) -> None:
    scenarios = [fs.Scenario("openb:30", FEW, policy, seed=5) for policy in ("fgd", "random", "0.5*pwr + 0.5*best_fit")]
    reported: list[int] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PodTooLarge)
        for workers in (1, 2):
            for result in fs.simulate_many(scenarios, workers, reported.append):
                result.save(tmp_path / f"{workers}-{result.provenance['scenario_id']}")
    assert reported == [1, 2, 3, 1, 2, 3]
    for scenario in scenarios:
        for one in sorted((tmp_path / f"1-{scenario.id}").glob("*.parquet")):
            assert one.read_bytes() == (tmp_path / f"2-{scenario.id}" / one.name).read_bytes(), one.name


@pytest.mark.spread(1)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_column_that_asks_for_more_than_is_done_is_named(workers: int, tmp_path: Path) -> None:
    elastic = str(tmp_path / "elastic.parquet")
    pods(3, min_replicas=1).write(elastic)
    scenarios = [fs.Scenario(CLUSTER, elastic, policy) for policy in ("fgd", "pwr")]
    with pytest.warns(
        fs.ColumnIgnored, match=r"elastic\.parquet: the online engine does not look at min_replicas"
    ) as raised:
        fs.simulate_many(scenarios, workers)
    assert len(raised) == 1


def test_threads_write_the_same_bytes_and_the_same_warnings(tmp_path: Path) -> None:
    policies = ("fgd", "random", "0.5*pwr + 0.5*best_fit")
    for kind in (False, True):
        folder = tmp_path / f"threads-{kind}"
        scenarios = [fs.Scenario(CLUSTER, FEW, p, seed=5, out=str(folder / str(k))) for k, p in enumerate(policies)]
        with pytest.warns(PodTooLarge, match="stayed unplaced") as warned:
            results = fs.simulate_many(scenarios, 2 if kind else 1, threads=kind)
        assert len(warned) == 1 and [r.provenance["policy"] for r in results][1] == "random"
    files = sorted((tmp_path / "threads-False").rglob("*.parquet"))
    assert len(files) == 15
    for one in files:
        other = tmp_path / "threads-True" / one.relative_to(tmp_path / "threads-False")
        assert one.read_bytes() == other.read_bytes(), one.name


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of the scenarios that are simulated."""
    ids: list[str] = []
    real = many_runs.simulate_many

    def simulate_many(scenarios: Iterable[Scenario], *given: Any) -> Any:
        given_scenarios = list(scenarios)
        ids.extend(one.id for one in given_scenarios)
        return real(given_scenarios, *given)

    monkeypatch.setattr(many_runs, "simulate_many", simulate_many)
    return ids


def scenario(seed: int, name: str = "") -> Scenario:
    return Scenario("openb", f"synth:openb?pods=20&seed={seed}", "fgd", name=name)


def test_a_scenario_is_run_once(tmp_path: Path, made: list[str]) -> None:
    shared = SharedRuns(tmp_path)
    reported: list[int] = []
    first = shared.results([scenario(1), scenario(2), scenario(1, "another name")], progress=reported.append)
    assert len(made) == 2 and first[0] is first[2] and first[0] is not first[1] and reported == [1, 2, 3]
    again = shared.results([scenario(3), scenario(2)], progress=reported.append)
    assert len(made) == 3 and again[1] is first[1] and reported[3:] == [1, 2]


def test_the_folder_ends_with_the_block() -> None:
    with sharing() as outer:
        (outer.folder / "list.csv").touch()
        with sharing(outer) as inner:
            assert inner is outer
        assert (outer.folder / "list.csv").exists()
    assert not outer.folder.exists()


@pytest.mark.parametrize(
    ("paper", "policy", "figures"), [("sia", "rotation", ("1", "table 3")), ("pollux", "tiresias", ("8a", "abstract"))]
)
def test_figures_share_their_runs(paper: str, policy: str, figures: tuple[str, ...], made: list[str]) -> None:
    with sharing() as shared:
        both = [papers.reproduce(paper, quick=True, policies=[policy], figures=[one], shared=shared) for one in figures]
    count = len(made)
    assert len(set(made)) == count < sum(one.runs for one in both)
    alone = papers.reproduce(paper, quick=True, policies=[policy], figures=[figures[1]])
    assert len(made) == count + alone.runs
    assert both[1].cells.equals(alone.cells) and both[1].curves.equals(alone.curves)

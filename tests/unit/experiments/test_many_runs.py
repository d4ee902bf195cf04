"""Many runs: checked before the first one, the same bytes on any number of workers and in threads."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import fastsim as fs
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

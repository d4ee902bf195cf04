"""Rankings of results, folders and both; pairs are runs of one workload and seed."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

import fastsim as fs
from fastsim.experiments.statistics.ranked_runs import run_figures


@cache
def runs() -> tuple[fs.Result, ...]:
    """Two policies with three seeds, of which the workload has the first number and the run the second."""
    scenarios = [
        fs.Scenario("openb:20", f"synth:openb?pods=150&seed={seed}", policy, queue="fifo", seed=seed, record="summary")
        for policy in ("fgd", "random") for seed in range(3)
    ]  # fmt: skip
    return tuple(fs.simulate_many(scenarios))


def test_results_and_folders_are_ranked_alike(tmp_path: Path) -> None:
    folders = [run.save(tmp_path / f"run-{number}") for number, run in enumerate(runs())]
    whole = fs.stats(runs(), "mean_gpu_alloc_pct")
    assert whole["run"].sort().to_list() == ["fgd", "random"] and whole["n"].to_list() == [3, 3]
    every: tuple[Any, ...] = (folders, [*runs()[:2], *folders[2:]], tmp_path, str(tmp_path))
    for mixed in every:
        assert fs.stats(mixed, "mean_gpu_alloc_pct").equals(whole)


def test_pairs_are_runs_of_one_workload_and_seed() -> None:
    rows = run_figures(runs(), "mean_gpu_alloc_pct")
    assert rows.select("seed", "workload").n_unique() == 3
    apart = fs.stats([*runs()[:3], runs()[3]], "mean_gpu_alloc_pct")
    assert apart.filter(run="random")["n"].item() == 1
    assert apart["verdict"].to_list()[1] == "cannot tell"


def test_names_make_candidates_and_missing_figures_are_failures() -> None:
    named = fs.stats(runs(), "mean_gpu_alloc_pct", names=["a", "a", "a", "b", "b", "b"])
    assert named["run"].sort().to_list() == ["a", "b"]
    with pytest.raises(fs.ScenarioError, match="found no finite value of gpu_hours_lost"):
        fs.stats(runs(), "gpu_hours_lost", higher=False)
    with pytest.raises(fs.ScenarioError, match="stats: found no results"):
        fs.stats([])

"""The command of causes: noise is there, small, and ends with its block; steps are exchanged among few jobs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fastsim as fs
from bench import gavel_noise
from bench.gavel_noise import (
    KEYS,
    ExchangedSteps,
    NoisyAllocator,
    moved_plans,
    noisy_levels,
    order_in_a_set,
    outside_cells,
)
from fastsim.engine.shares.plan import SharePlan
from fastsim.experiments.reproduce import gavel_rate_figures as shares
from fastsim.performance.oracle import Oracle
from fastsim.policies.registry import ORIGINAL_NAMES

RUN = ("gavel:2:2:2", "synth:gavel?jobs=12&rate_per_hour=8&seed=3", ORIGINAL_NAMES["max_min_fairness"])


def ends(seed: int | None) -> list[float]:
    """Ends of the jobs of a small run, without noise or with that of a seed."""
    if seed is None:
        return fs.simulate(*RUN).jobs["end_s"].to_list()
    with moved_plans(NoisyAllocator, seed):
        return fs.simulate(*RUN).jobs["end_s"].to_list()


def test_noise_moves_who_is_first_and_little_else() -> None:
    init = SharePlan.__init__
    plain, noisy = ends(None), ends(1)
    assert noisy == ends(1) and plain == ends(None) and SharePlan.__init__ is init
    assert sum(noisy) == pytest.approx(sum(plain), rel=0.05)
    assert len({tuple(ends(seed)) for seed in range(4)}) > 1


def test_a_published_value_within_the_range_of_all_runs_is_reached(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = iter([(1.0, 5.0, 9.0), (1.2, 5.0, 9.0), (0.9, 5.0, 9.0)])

    def cells(figure: str, data: Path | None) -> pl.DataFrame:
        keys = {"case": ["a"] * 3, "policy": ["p"] * 3, "quantity": ["x", "y", "z"], "at": [None, 1.0, 1.0]}
        rest = {"published": [1.3, 4.0, 9.0], "bar": [0.1] * 3, "verdict": ["outside", "outside", "within"]}
        return pl.DataFrame(keys | rest | {"ours": list(next(made))})

    monkeypatch.setattr(gavel_noise, "cells_of", cells)
    table = outside_cells("8", tmp_path, [1, 2])
    assert table.select("quantity", "least", "most", "reached").rows() == [
        ("x", 0.9, 1.2, True), ("y", 5.0, 5.0, False)
    ]  # fmt: skip
    assert table.columns[: len(KEYS)] == KEYS


def test_noise_on_levels_moves_what_a_job_has_beyond_its_own() -> None:
    speeds = shares._speeds(Oracle.default())["random"]

    def first(seed: int | None) -> float:
        if seed is None:
            return float(shares._normalised(speeds, "first come first served", "base", 10)[0])
        with noisy_levels(seed):
            return first(None)

    found = [first(seed) for seed in range(8)]
    assert found == [first(seed) for seed in range(8)] and len({*found, first(None)}) == 9
    # The job's own level is 0.5; the printed share of 0.654 is one of the many that are as good.
    assert max(found) - min(found) < 0.01 and min(found) - 0.0005 <= 0.654 <= max(found) + 0.0005


def test_a_set_lists_few_jobs_in_another_order() -> None:
    assert order_in_a_set(np.arange(101)).tolist() == list(range(101))
    assert order_in_a_set(np.array([3, 40, 66])).tolist() == [1, 2, 0]  # of eight places the set takes 0, 2 and 3


def test_steps_are_exchanged_under_pairs_only() -> None:
    jobs = "synth:gavel?jobs=40&seed=3"
    for mode, same in (("perf", True), ("packed", False)):
        run = ("gavel:3:3:3", jobs, f"min_total_duration(mode={mode})")
        plain = fs.simulate(*run).jobs["end_s"].to_list()
        with moved_plans(ExchangedSteps, 1):
            assert (fs.simulate(*run).jobs["end_s"].to_list() == plain) == same

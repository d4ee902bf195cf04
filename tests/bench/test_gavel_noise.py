"""The command of noise on shares: the noise is there, small, and ends with its block."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import fastsim as fs
from bench import gavel_noise
from bench.gavel_noise import KEYS, noisy_shares, outside_cells
from fastsim.engine.shares.plan import SharePlan
from fastsim.policies.registry import ORIGINAL_NAMES

RUN = ("gavel:2:2:2", "synth:gavel?jobs=12&rate_per_hour=8&seed=3", ORIGINAL_NAMES["max_min_fairness"])


def ends(seed: int | None) -> list[float]:
    """Ends of the jobs of a small run, without noise or with that of a seed."""
    if seed is None:
        return fs.simulate(*RUN).jobs["end_s"].to_list()
    with noisy_shares(seed):
        return fs.simulate(*RUN).jobs["end_s"].to_list()


def test_noise_moves_who_is_first_and_little_else() -> None:
    init = SharePlan.__init__
    plain, noisy = ends(None), ends(1)
    assert noisy == ends(1) and plain == ends(None) and SharePlan.__init__ is init
    assert sum(noisy) == pytest.approx(sum(plain), rel=0.05)
    assert len({tuple(ends(seed)) for seed in range(4)}) > 1


def test_a_published_value_within_the_range_of_all_runs_is_decided_by_rounding(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = iter([(1.0, 5.0, 9.0), (1.2, 5.0, 9.0), (0.9, 5.0, 9.0)])

    def cells(figure: str, data: Path | None) -> pl.DataFrame:
        keys = {"case": ["a"] * 3, "policy": ["p"] * 3, "quantity": ["x", "y", "z"], "at": [None, 1.0, 1.0]}
        rest = {"published": [1.3, 4.0, 9.0], "bar": [0.1] * 3, "verdict": ["outside", "outside", "within"]}
        return pl.DataFrame(keys | rest | {"ours": list(next(made))})

    monkeypatch.setattr(gavel_noise, "cells_of", cells)
    table = outside_cells("8", tmp_path, [1, 2])
    assert table.select("quantity", "least", "most", "rounding decides").rows() == [
        ("x", 0.9, 1.2, True), ("y", 5.0, 5.0, False)
    ]  # fmt: skip
    assert table.columns[: len(KEYS)] == KEYS

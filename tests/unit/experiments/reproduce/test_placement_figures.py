"""Rounding and interpolation rules of the published curves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fastsim.experiments.reproduce import placement_figures


def test_steps_fall_on_whole_per_cents_rounded_half_to_even() -> None:
    # 1 GPU: 10 milli = 1 %; 15 milli = 1.5 % goes to 2 and 25 milli = 2.5 % too.
    table = placement_figures.discrete_table([0, 10, 15, 25], [0, 10, 15, 25], [0, 0, 0, 0], [1000, 990, 985, 975], 1)
    assert table["arrive_pct"].tolist() == list(range(131))
    assert table["alloc_pct"][:3].tolist() == [0.0, 1.0, 2.0]


def test_an_empty_per_cent_takes_its_neighbours() -> None:
    table = placement_figures.discrete_table([10, 30], [10, 30], [100, 300], [1000, 1000], 1)
    assert table["alloc_pct"][:5].tolist() == [1.0, 1.0, 2.0, 3.0, 3.0]
    assert table["frag_pct"][:4].tolist() == [10.0, 10.0, 20.0, 30.0]
    assert table["frag_ratio_pct"][2] == 20.0
    assert np.isnan(table["alloc_pct"][5:]).all()


def test_steps_may_come_in_any_order() -> None:
    demand, values = np.array([20.0, 0.0, 20.0, 22.0]), np.array([1.0, 2.0, 4.0, 9.0])
    table = placement_figures.discrete_table(demand * 10, values * 10, values, values, total_gpus=1)
    assert table["alloc_pct"][[0, 1, 19, 20, 21, 22]].tolist() == [2.0, 2.0, 2.5, 2.5, 4.67, 9.0]
    assert np.isnan(table["alloc_pct"][[2, 18, 24]]).all()


def test_a_full_cluster_has_no_fragmentation_ratio() -> None:
    table = placement_figures.discrete_table([1000], [1000], [0.0], [0.0], 1)
    assert table["frag_ratio_pct"][100] == 0.0


def test_interpolation_goes_by_position() -> None:
    grid, values = placement_figures.interpolated([0, 1, 40], [0.0, 10.0, 50.0], 1000, last=0.04)
    assert grid.tolist() == pytest.approx([0.005 * i for i in range(9)])
    # Known: 0, 0.001 and 0.04; between the last two lie seven grid points, so each is 1/8 of the way.
    assert values.tolist() == pytest.approx([0.0, *(10 + 40 * i / 8 for i in range(1, 9))])


def test_interpolation_keeps_the_first_of_equal_demands_and_extends_the_ends() -> None:
    _, values = placement_figures.interpolated([10, 10, 20], [7.0, 99.0, 9.0], 1000, last=0.03)
    assert values.tolist() == pytest.approx([7.0, 7.0, 7.0, 8.0, 9.0, 9.0, 9.0])


def test_saving_and_grar() -> None:
    assert placement_figures.power_saving_pct([200.0, 100.0], [150.0, 110.0]).tolist() == [25.0, -10.0]
    assert placement_figures.grar([0, 50, 90], [0, 50, 100]).tolist() == [1.0, 1.0, 0.9]


def test_averaging_over_seeds() -> None:
    mean = placement_figures.averaged([{"alloc_pct": [1.0, 3.0]}, {"alloc_pct": [3.0, 5.0]}])
    assert mean["alloc_pct"].tolist() == [2.0, 4.0]


def test_published_tables_follow_from_the_recorded_metrics(shared: Callable[[str], Path]) -> None:
    """Every recorded run of a published policy gives the authors' own table."""
    golden = shared("golden/fgd")
    published = pl.read_parquet(golden / "published_discrete.parquet")
    checked = 0
    for folder in sorted(golden.glob("*-seed*")):
        policy, trace, seed = folder.name.split("-")[:3]
        rows = published.filter(
            (pl.col("policy") == policy) & (pl.col("trace") == trace) & (pl.col("seed") == int(seed[4:]))
        ).sort("arrive_pct")
        if rows.is_empty() or policy == "Random":
            continue
        metrics = pl.read_parquet(folder / "metrics.parquet")
        classes = metrics.select("q1_lack_both", "q2_lack_gpu", "q3_satisfied", "q4_lack_cpu")
        idle = classes.sum_horizontal() + metrics["xl_satisfied"] + metrics["xr_lack_cpu"] + metrics["no_access"]
        table = placement_figures.discrete_table(
            metrics["arrived_gpu_milli"], metrics["used_gpu_milli"], metrics["frag_gpu_milli"], idle, 6212
        )
        assert np.array_equal(table["alloc_pct"], rows["alloc_pct"]), folder.name
        assert np.array_equal(table["frag_pct"], rows["frag_pct"]), folder.name
        # The published ratios are printed with four decimals.
        assert np.abs(table["frag_ratio_pct"] - rows["frag_ratio_pct"].to_numpy()).max() < 0.51e-4
        checked += 1
    assert checked >= 5

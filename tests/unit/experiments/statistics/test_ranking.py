"""Winners with their verdicts."""

from __future__ import annotations

import math

import polars as pl
import pytest
from scipy import stats

from fastsim.errors import ScenarioError
from fastsim.experiments.statistics.ranking import winners


def table() -> pl.DataFrame:
    """Three policies with the same luck by seed."""
    luck = [0.0, 5.0, -3.0, 2.0]
    rows = [
        {
            "policy": name,
            "load": load,
            "seed": seed,
            "jct_mean_s": load * (base + luck[seed] + 0.1 * seed * (name == "b")),
        }
        for name, base, more in (("c", 30.0, 0.0), ("a", 20.0, 0.0), ("b", 20.05, 0.1))
        for load in (1, 2)
        for seed in range(4)
    ]
    return pl.DataFrame(rows)


def test_winners_are_found_pair_by_pair() -> None:
    found = winners(table(), "jct_mean_s", by=["load"])
    assert found["policy"].to_list() == ["a", "b", "c"] * 2 and found["load"].to_list() == [1] * 3 + [2] * 3
    assert found["verdict"].to_list()[:3] == ["best", "cannot tell", "worse"]
    assert found["difference"].to_list()[:3] == [None, pytest.approx(0.2), pytest.approx(10.0)]
    best = winners(table(), "jct_mean_s", by=["load"], higher=True)
    assert best["policy"].to_list()[0] == "c" and best["rank"].to_list()[:3] == [1, 2, 3]


def test_a_tie_needs_a_bound_or_equal_pairs() -> None:
    near = table().filter(pl.col("load") == 1, pl.col("policy") != "c")  # b is later by 0.05 to 0.35
    verdicts = {part: winners(near, "jct_mean_s", equivalence=part)["verdict"][1] for part in (None, 0.001, 0.02, 0.1)}
    assert verdicts == {None: "cannot tell", 0.001: "cannot tell", 0.02: "tie", 0.1: "tie"}
    mine, best = (near.filter(policy=name)["jct_mean_s"].to_numpy() for name in "ba")
    bound = 0.02 * best.mean()
    sides = [
        stats.ttest_1samp(mine - best, far, alternative=side).pvalue
        for far, side in ((-bound, "greater"), (bound, "less"))
    ]
    assert max(sides) < 0.05
    same = near.with_columns(policy=pl.lit("x")), near.filter(policy="a").with_columns(policy=pl.lit("y"))
    equal = winners(
        pl.concat([same[0].filter(pl.col("jct_mean_s").is_in(same[1]["jct_mean_s"].implode())), same[1]]), "jct_mean_s"
    )
    assert equal["verdict"].to_list() == ["best", "tie"]
    with pytest.raises(ScenarioError, match=r"equivalence: found -0\.1"):
        winners(near, "jct_mean_s", equivalence=-0.1)


def test_a_bound_makes_large_differences_no_tie() -> None:
    found = winners(table(), "jct_mean_s", by=["load"], equivalence=0.05)
    assert found["verdict"].to_list()[:3] == ["best", "tie", "worse"]


def test_enough_pairs_show_the_difference_four_times_out_of_five() -> None:
    rows = pl.DataFrame(
        {"policy": ["a", "b"] * 3, "seed": [0, 0, 1, 1, 2, 2], "jct_mean_s": [5.0, 9.0, 5.0, 4.0, 5.0, 8.0]}
    )
    found = winners(rows, "jct_mean_s")
    assert found["verdict"].to_list() == ["best", "cannot tell"]
    needed, effect = int(found["pairs_needed"][1]), 2.0 / math.sqrt(7.0)
    quantile = stats.t.ppf(0.975, needed - 1)
    power = 1 - stats.nct.cdf(quantile, needed - 1, effect * math.sqrt(needed))
    assert power == pytest.approx(0.8, abs=0.03)


def test_intervals_stay_where_the_quantity_can_be() -> None:
    rows = pl.DataFrame(
        {"policy": ["a"] * 3, "seed": [0, 1, 2], "jct_mean_s": [1.0, 2.0, 900.0], "gpu_alloc_pct": [1.0, 99.0, 99.0]}
    )
    time, share = (winners(rows, metric).row(0, named=True) for metric in ("jct_mean_s", "gpu_alloc_pct"))
    assert time["low"] == 0.0 and time["high"] > time["mean"]
    assert (share["low"], share["high"]) == (0.0, 100.0)
    assert winners(rows.with_columns(mine="jct_mean_s"), "mine", higher=False)["low"][0] < 0


def test_values_that_are_not_finite_count_as_failed() -> None:
    rows = table().filter(pl.col("load") == 1)
    wrong = (
        pl.when(pl.col("policy") == "a", pl.col("seed") < 2)
        .then(pl.Series([math.inf, math.nan] * 6))
        .otherwise("jct_mean_s")
    )
    found = winners(rows.with_columns(jct_mean_s=wrong), "jct_mean_s").sort("policy")
    assert found.select("policy", "n", "failed", "verdict").rows()[0] == ("a", 2, 2, "incomplete")
    assert (
        winners(rows.with_columns(jct_mean_s=-pl.col("jct_mean_s")), "jct_mean_s", higher=True)["mean"].to_numpy().max()
        < 0
    )
    zero = winners(rows.with_columns(jct_mean_s=0.0), "jct_mean_s", equivalence=0.1)
    assert zero["verdict"].to_list() == ["best", "tie", "tie"]


def test_a_candidate_that_fails_on_hard_seeds_is_not_the_best() -> None:
    rows = table().filter(pl.col("load") == 1)
    hard = pl.when((pl.col("policy") == "c") & (pl.col("seed") > 0)).then(None).otherwise("jct_mean_s")
    easy = pl.when((pl.col("policy") == "c") & (pl.col("seed") == 0)).then(1.0).otherwise(hard)
    found = winners(rows.with_columns(jct_mean_s=easy), "jct_mean_s")
    assert found["policy"].to_list() == ["a", "b", "c"] and found["verdict"].to_list()[2] == "incomplete"


def test_one_seed_tells_nobody_apart() -> None:
    found = winners(table().filter(pl.col("seed") == 0), "jct_mean_s", by=["load"])
    assert found["verdict"].to_list()[:3] == ["best", "cannot tell", "cannot tell"] and found["low"][0] is None
    with pytest.raises(ScenarioError, match="no column 'jct'"):
        winners(table(), "jct")
    with pytest.raises(ScenarioError, match="did you mean 'jct_mean_s'"):
        winners(table(), "jct_mean")
    with pytest.raises(ScenarioError, match=r"no column 'seed'.*; pairs= \(--pairs\) names the column"):
        winners(table().rename({"seed": "draw"}), "jct_mean_s")
    with pytest.raises(ScenarioError, match="no finite value"):
        winners(table().with_columns(jct_mean_s=pl.lit(None, pl.Float64)), "jct_mean_s")


def test_runs_without_a_figure_are_counted_for_each_candidate() -> None:
    hard = (pl.col("policy") == "a") & (pl.col("seed") == 0)
    rows = table().with_columns(jct_mean_s=pl.when(hard | (pl.col("policy") == "c")).then(None).otherwise("jct_mean_s"))
    found = winners(rows, "jct_mean_s", by=["load"]).filter(load=1).sort("policy")
    seeds = rows["seed"].n_unique()
    assert found.select("policy", "n", "failed").rows() == [("a", seeds - 1, 1), ("b", seeds, 0), ("c", 0, seeds)]
    assert found["verdict"].to_list()[2] == "failed" and found["rank"].to_list()[2] is None


def test_the_metric_says_which_end_is_the_better_one() -> None:
    rows = table().filter(pl.col("load") == 1).with_columns(gpu_alloc_pct="jct_mean_s", gpu_hours="jct_mean_s")
    assert winners(rows, "gpu_alloc_pct")["policy"].to_list() == ["c", "b", "a"]
    assert winners(rows, "gpu_alloc_pct", higher=False)["policy"].to_list() == ["a", "b", "c"]
    assert winners(rows, "gpu_hours", higher=True)["policy"].to_list() == ["c", "b", "a"]
    with pytest.raises(ScenarioError, match=r"metric 'gpu_hours': found a column of which neither .* --lower"):
        winners(rows, "gpu_hours")

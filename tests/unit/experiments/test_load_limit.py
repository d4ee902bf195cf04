"""The largest stable load: what grows, and the search for where it begins to."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from fastsim.errors import ScenarioError
from fastsim.experiments.load_limit import growth_of, knees, knees_text


def line(count: int, gap_s: float, work_s: float) -> pl.DataFrame:
    """Jobs one after the other on one GPU."""
    submit_s = np.arange(count) * gap_s
    end_s = np.maximum.accumulate(submit_s - np.arange(count) * work_s) + (np.arange(count) + 1) * work_s
    return pl.DataFrame({"submit_s": submit_s, "end_s": end_s})


def test_growth_of_a_line() -> None:
    assert growth_of(line(300, 1.0, 0.5)) == (0.0, 0.0, 0.0)
    grown = growth_of(line(300, 1.0, 2.0))
    # Of n arrivals the k-th finds k / 2: on average n / 4 among the middle third, and 5 n / 12 among the last.
    assert grown.before == pytest.approx(75, abs=1) and grown.late == pytest.approx(125, abs=1)
    waiting = line(300, 1.0, 2.0).with_columns(end_s=pl.when(pl.col("end_s") < 250).then("end_s"))
    assert grown.part == pytest.approx(0.5, abs=0.01) and growth_of(waiting).part > grown.part
    with pytest.raises(ScenarioError, match="found 5 jobs, expected at least 30"):
        growth_of(line(5, 1.0, 1.0))


BASE: dict[str, Any] = {"cluster": "gavel:1:1:1", "jobs": 150, "durations": 3600, "seed": [0, 1]}


@pytest.mark.long
def test_the_search_ends_between_two_loads() -> None:
    found = knees({**BASE, "policy": ["isolated", "isolated()"]}, 0.05, 40.0, tolerance=0.3)
    assert found["policy"].to_list() == ["isolated", "isolated()"]
    for row in found.iter_rows(named=True):
        # Three GPUs do three to about one job in an hour, by model.
        assert 0.2 < row["stable"] < row["unstable"] < 6.0 and row["unstable"] - row["stable"] <= 0.3 * row["unstable"]
        assert row["growth_stable"] <= 0.05 < row["growth_unstable"] and row["loads"] > 4
    assert "isolated" in knees_text(found, "rate_per_hour")


def test_both_ends_may_be_alike() -> None:
    calm = knees({**BASE, "policy": "isolated"}, 0.05, 0.1).row(0, named=True)
    assert (calm["stable"], calm["unstable"]) == (0.1, None)
    full = knees({**BASE, "policy": "isolated"}, 20.0, 40.0).row(0, named=True)
    assert (full["stable"], full["unstable"]) == (None, 20.0)


@pytest.mark.parametrize(
    ("low", "high", "more"), [(0, 1, {}), (2, 1, {}), (1, 2, {"growth": 1.0}), (1, 2, {"tolerance": 0})]
)
def test_mistakes(low: float, high: float, more: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match="knee: found low"):
        knees({**BASE, "policy": "isolated"}, low, high, **more)


def test_loads_of_the_file_are_not_looked_at() -> None:
    loads = {
        "rate_per_hour": {"from": 0.0, "to": 6.0, "points": 16},
        "cutoff_rates": {"gavel:2:2:2": {"isolated": 5.0}},
    }
    base = {**BASE, "policy": "isolated"}
    assert knees(base | loads, 0.05, 0.1).equals(knees(base, 0.05, 0.1))

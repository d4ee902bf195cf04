"""Figures of many values: bit for bit those of numpy for one array, however the values came and where they lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastsim.engine.totals import exact_percentiles
from fastsim.engine.totals.exact_percentiles import PERCENTS, ExactPercentiles, values_at

NAMES = ("x_mean_s", "x_p50_s", "x_p95_s", "x_p99_s", "x_max_s")
SHAPES: dict[str, Any] = {
    "smooth": lambda rng, n: rng.exponential(100.0, n),
    "all equal": lambda rng, n: np.full(n, 0.3),
    "mostly zero": lambda rng, n: np.where(rng.random(n) < 0.7, 0.0, rng.exponential(1e6, n)),
    "both signs": lambda rng, n: rng.normal(0.0, 1e-3, n),
    "few values": lambda rng, n: np.round(rng.exponential(5.0, n)),
    "alike in the first 32 bits": lambda rng, n: 1.0 + rng.integers(0, 1 << 18, n) * 2.0**-52,
}


def by_numpy(values: Any) -> tuple[float, ...]:
    return (float(values.mean()), *(float(np.percentile(values, q)) for q in PERCENTS), float(values.max()))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little memory, so that a few thousand values need the file and every pass."""
    monkeypatch.setattr(exact_percentiles, "HELD", 1024)
    monkeypatch.setattr(exact_percentiles, "GATHERED", 100)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [1, 2, 9, 129, 1023, 1025, 5000, 70_003])
def test_figures_are_those_of_numpy_to_the_bit(shape: str, count: int) -> None:
    values = SHAPES[shape](np.random.default_rng(count), count)
    held = ExactPercentiles()
    for part in np.array_split(values, 7):
        held.add(part)
    assert tuple(held.figures("x").items()) == tuple(zip(NAMES, by_numpy(values), strict=True))
    assert held.figures("x") == held.figures("x")  # reading changes nothing
    held.add(values[:5])  # and more may come afterwards
    assert tuple(held.figures("x").values()) == by_numpy(np.concatenate([values, values[:5]]))
    held.close()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=40))
def test_every_rank_is_found(values: list[float]) -> None:
    array = np.array(values)
    value_at = values_at(lambda: iter([array[:3], array[3:]]), range(len(values)))
    assert [value_at[rank] for rank in range(len(values))] == sorted(values)


def test_nothing_has_no_figures() -> None:
    none = ExactPercentiles()
    none.add(np.zeros(0))
    assert none.figures("x") == dict.fromkeys(NAMES)


def test_values_of_an_earlier_start_go_on_and_what_came_after_them_is_dropped(tmp_path: Path) -> None:
    first = ExactPercentiles(tmp_path / "values")
    first.add(np.array([4.0, 2.0, 9.0]))
    first.secure()
    first.close()
    again = ExactPercentiles(tmp_path / "values", 2)
    assert tuple(again.figures("x").values()) == by_numpy(np.array([4.0, 2.0]))
    again.add(np.array([6.0]))
    assert (again.count, again.total(), again.percentiles((0, 50, 100))) == (3, 12.0, [2.0, 4.0, 6.0])
    again.close()


def test_no_zero_has_a_sign() -> None:
    held = ExactPercentiles()
    held.add(np.array([-0.0, -0.0]))
    assert np.signbit(held.percentiles((0, 50, 100))).tolist() == [False] * 3

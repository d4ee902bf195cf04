"""Rates: order of models, restriction, refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fastsim.errors import InputError
from fastsim.performance.oracle import Oracle


def small(alone: list[list[float]]) -> Oracle:
    kinds = tuple((f"w{k}", 1) for k in range(len(alone)))
    return Oracle(kinds, ("a", "b"), np.array(alone), np.zeros((len(alone), len(alone), 2)))


def test_models_are_ordered_by_their_mean_speed_and_holes_do_not_count() -> None:
    assert small([[1, 2], [3, 4]]).fastest_first == ("b", "a")
    assert small([[1, 2], [9, 2], [5, float("nan")]]).fastest_first == ("a", "b")
    assert small([[1, 0]]).fastest_first == ("a", "b")


def test_a_restriction_keeps_the_asked_order() -> None:
    part = small([[1, 2]]).restricted(["b", "a"])
    assert part.gpu_models == ("b", "a")
    assert part.alone__kg.tolist() == [[2, 1]]
    assert small([[1, 2]]).restricted(["b"]).shared__kkg.shape == (1, 1, 1)


def test_wrong_rates_and_models_are_refused() -> None:
    with pytest.raises(InputError, match="expected one of a, b"):
        small([[1, 2]]).restricted(["c"])
    with pytest.raises(InputError, match="negative or infinite"):
        small([[-1, 2]])
    with pytest.raises(InputError, match="shape"):
        Oracle((("w", 1),), ("a",), np.zeros((2, 1)), np.zeros((1, 1, 1)))
    with pytest.raises(ValueError, match="read-only"):
        small([[1, 2]]).alone__kg[0, 0] = 5


def test_an_oracle_is_the_same_from_parquet_whatever_the_order_of_its_kinds(tmp_path: Path) -> None:
    shared = np.zeros((2, 2, 2))
    shared[0, 1] = (1, 2)
    oracle = Oracle((("b", 1), ("a", 1)), ("y", "x"), np.array([[1.0, 2], [3, 4]]), shared)
    assert oracle.to_parquet(tmp_path / "rates.parquet") == 12
    again = Oracle.from_parquet(tmp_path / "rates.parquet")
    assert again.kinds == (("a", 1), ("b", 1)) and again.gpu_models == ("x", "y")
    assert again.alone__kg.tolist() == [[4, 3], [2, 1]]
    assert again.shared__kkg[1, 0].tolist() == [2, 1] and not again.shared__kkg[0].any()


def test_a_file_that_is_no_table_of_rates_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        Oracle.from_parquet(tmp_path / "none.parquet")

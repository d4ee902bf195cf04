"""Kubernetes quantities: the grammar, rounding, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim.errors import InputError
from fastsim.kubernetes.quantity import capacity_mib, milli, quantity, request_mib, whole


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("2", 2), ("500m", Fraction(1, 2)), ("1.5Gi", 3 << 29), ("12e6", 12_000_000), ("12E6", 12_000_000),
        ("3E", 3 * 10**18), ("1Ei", 1 << 60), (".5", Fraction(1, 2)), ("5.", 5), ("+5", 5), ("-1", -1), ("Gi", 0),
        ("1e-12", Fraction(1, 10**9)), ("-1e-12", Fraction(-1, 10**9)), (64, 64), (0.5, Fraction(1, 2)),
        (1e-06, Fraction(1, 10**6)),
    ],
)  # fmt: skip
def test_the_number_meant(text: object, amount: Fraction | int) -> None:
    assert quantity(text) == amount


@pytest.mark.parametrize(
    "text",
    ["1GB", "2K", "1KI", "1gi", "1mi", " 5", "5 ", "5 Gi", "1_000", "0x10", "1e", "1Gi1", "100Mi500m", "", ".", "+",
     "-", "e3", "٣", "1e101", "9" * 101, "1\n", None, True, [1], float("nan"), float("inf")],
)  # fmt: skip
def test_what_is_no_quantity(text: object) -> None:
    with pytest.raises(InputError, match=r"pod a: memory: found .*, expected (a quantity such as|an exponent)"):
        quantity(text, "pod a: memory")


def test_whole_numbers_are_rounded_away_from_zero() -> None:
    assert [whole(text) for text in ("500m", "2001m", "2000m", "-500m")] == [1, 3, 2, -1]
    assert [milli(text) for text in ("1999u", "2", "1n", "-1n")] == [2, 2000, 1, -1]


def test_a_request_takes_every_mib_it_touches_and_a_node_has_full_ones() -> None:
    assert (request_mib("1Mi"), request_mib("1048577"), request_mib("1k")) == (1, 2, 1)
    assert (capacity_mib("1Mi"), capacity_mib("2097151"), capacity_mib("61255492Ki")) == (1, 1, 59819)


@given(st.fractions(min_value=-(10**12), max_value=10**12, max_denominator=1))
def test_integers_are_themselves(amount: Fraction) -> None:
    assert quantity(str(amount)) == amount == whole(str(amount))


@given(st.integers(0, 10**9), st.sampled_from(["Ki", "Mi", "Gi"]))
def test_halves_of_binary_units_are_exact(count: int, unit: str) -> None:
    assert 2 * quantity(f"{count}.5{unit}") == quantity(f"{2 * count + 1}{unit}")

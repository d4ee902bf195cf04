"""Orders as data: every key is made of terms, and both engines read the same table."""

from __future__ import annotations

from typing import Any

import pytest

from fastsim.engine.online.plan import RULES
from fastsim.policies import registry
from fastsim.scenario.sort_keys import (
    MOST_TERMS,
    OF_JOBS,
    ORDERS,
    PODS,
    SERVED,
    TERMS,
    column_of,
    key_fault,
    key_of,
    numbers,
    queue_key,
)
from tests.views import setting


def test_every_key_is_made_of_terms() -> None:
    for key in ORDERS.values():
        assert key_fault(key) is None and key[-1] == "arrival" and len(key) < MOST_TERMS
    assert numbers(("-weight", "arrival")) == [(TERMS.index("weight"), -1.0), (0, 1.0)]
    assert numbers(("column(a)", "-column(b)")) == [(len(TERMS), 1.0)] * 2  # values have their signs


def test_policies_of_jobs_read_this_table() -> None:
    for name, key in ORDERS.items():
        policy: Any = registry.parse(name)
        assert tuple(term for term in policy.begin(setting([1], [[1]])).order if term != "-starving") == key


def test_pods_know_the_orders_that_mean_something_to_them() -> None:
    assert set(PODS.values()) == set(ORDERS.values()) - {ORDERS["fcfs"], ORDERS["round_robin"]}
    assert SERVED == ("las", "tiresias")


def test_a_term_may_be_a_column() -> None:
    assert [column_of(term) for term in ("column(a)", "-column( b c )", "arrival", "-gpus")] == ["a", "b c", "", ""]
    assert [column_of(term) for term in ("column()", "column( )", "column(a", "columns(a)", "--column(a)")] == [""] * 5


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("column(a)", ("column(a)", "arrival")),
        (" -column(a , b),remaining ", ("-column(a , b)", "remaining", "arrival")),
        ("arrival", ("arrival",)),
        ("gpus,arrival,remaining", ("gpus", "arrival", "remaining")),
        ("gpus,-column(a),remaining,column(b)", ("gpus", "-column(a)", "remaining", "column(b)")),
    ],
)
def test_texts_are_keys_whose_ties_go_by_arrival(text: str, key: tuple[str, ...]) -> None:
    assert key_of(text) == queue_key(text) == queue_key(f"{text}_skip") == key
    assert key_of("gpus,remaining", 2) == ("gpus", "remaining")


def test_names_of_rules_are_no_keys() -> None:
    assert not any(map(queue_key, RULES)) and queue_key("unheard") == ()
    assert queue_key("edf_skip") == ORDERS["edf"] and queue_key("smallest") == ORDERS["drf"]


@pytest.mark.parametrize(
    ("key", "found", "do"),
    [
        (("-age", "arrival"), "'-age'", "the values of a column are column(age)"),
        (("column()",), "'column()'", ""),
        ((), "0 terms", ""),
        (("column(a)",) * 5, "5 terms", ""),
        (("-last",), "'-last'", "the values of a column are column(last)"),
    ],
)
def test_what_is_no_key_is_named(key: tuple[str, ...], found: str, do: str) -> None:
    fault = key_fault(key, OF_JOBS)
    assert fault is not None and (fault[0], fault[2]) == (found, do)
    assert fault[1].startswith("1 to 4 of arrival, remaining,") and fault[1].endswith(", gpus, column(NAME)")

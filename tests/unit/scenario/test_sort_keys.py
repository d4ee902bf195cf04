"""Orders as data: every key is made of terms, and both engines read the same table."""

from __future__ import annotations

from typing import Any

from fastsim.policies import registry
from fastsim.scenario.sort_keys import MOST_TERMS, ORDERS, PODS, SERVED, TERMS, numbers
from tests.views import setting


def test_every_key_is_made_of_terms() -> None:
    for key in ORDERS.values():
        assert all(term.removeprefix("-") in TERMS for term in key)
        assert key[-1] == "arrival" and len(key) < MOST_TERMS
    assert numbers(("-weight", "arrival")) == [(TERMS.index("weight"), -1.0), (0, 1.0)]


def test_policies_of_jobs_read_this_table() -> None:
    for name, key in ORDERS.items():
        policy: Any = registry.parse(name)
        assert tuple(term for term in policy.begin(setting([1], [[1]])).order if term != "-starving") == key


def test_pods_know_the_orders_that_mean_something_to_them() -> None:
    assert set(PODS.values()) == set(ORDERS.values()) - {ORDERS["fcfs"], ORDERS["round_robin"]}
    assert set(SERVED) < set(PODS)

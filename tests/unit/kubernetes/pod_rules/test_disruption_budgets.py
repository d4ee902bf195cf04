"""How many pods a PodDisruptionBudget lets go at a time."""

from __future__ import annotations

from typing import Any

import pytest

from fastsim.errors import InputError
from fastsim.kubernetes.pod_rules.disruption_budgets import budgets
from tests.objects import manifest, pod

READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
PODS = [manifest(pod(f"p{n}", labels={"app": "w"}, status=READY)) for n in range(7)]
ALL = {"matchLabels": {"app": "w"}}


def allowed(spec: dict[str, Any]) -> int:
    item = manifest({"kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec})
    [budget] = budgets([item], PODS)
    return budget.allowed


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ({"minAvailable": 5}, 2), ({"minAvailable": 9}, 0), ({"maxUnavailable": 3}, 3), ({"maxUnavailable": 9}, 7),
        ({"minAvailable": "50%"}, 3), ({"maxUnavailable": "50%"}, 4), ({"minAvailable": "0%"}, 7), ({}, 0),
    ],
)  # fmt: skip
def test_amounts_and_percentages_rounded_up(spec: dict[str, Any], count: int) -> None:
    assert allowed({"selector": ALL, **spec}) == count


def test_selectors() -> None:
    assert allowed({"selector": {}, "minAvailable": 1}) == 6
    assert allowed({"minAvailable": 0}) == allowed({"selector": {"matchLabels": {"app": "x"}}, "minAvailable": 0}) == 0


@pytest.mark.parametrize(
    ("spec", "found"),
    [({"minAvailable": "x"}, "spec: minAvailable: found 'x'"), ({"maxUnavailable": "101%"}, "'101%'"),
     ({"minAvailable": -1}, "-1"), ({"minAvailable": 1, "maxUnavailable": 1}, "one of them"),
     ({"selector": 5}, "selector: found 5")],
)  # fmt: skip
def test_budgets_that_mean_nothing_are_refused(spec: dict[str, Any], found: str) -> None:
    with pytest.raises(InputError, match=found):
        allowed(spec)

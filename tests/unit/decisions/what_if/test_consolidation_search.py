"""The search of nodes to empty is never worse than the greedy order, and says when it was cut short."""

from __future__ import annotations

from typing import Any

import pytest

from fastsim.decisions.what_if import consolidation_search
from fastsim.decisions.what_if.consolidation import consolidation
from fastsim.decisions.what_if.consolidation_search import devices
from tests.objects import node
from tests.unit.decisions.what_if.test_consolidation import Twin, runs, state_of


def test_devices_are_the_numbers_of_set_bits() -> None:
    assert devices(0) == () and devices(0b101) == (0, 2) and devices(1 << 63) == (63,)


@pytest.mark.parametrize("seed", range(6))
def test_orders_alone_are_never_worse_than_the_greedy_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consolidation_search, "FEW", 0)
    twin = Twin(seed)
    plan = consolidation(state_of(twin.objects()))
    assert plan.greedy <= len(plan.nodes) <= twin.best([1.0] * len(twin.free))


def test_a_search_that_is_cut_short_is_not_called_optimal(monkeypatch: pytest.MonkeyPatch) -> None:
    objects: list[dict[str, Any]] = [node(f"n{n}") for n in range(3)]
    objects += [runs(f"p{n}{k}", f"n{n}", {"cpu": 3}) for n in range(3) for k in range(2)]
    monkeypatch.setattr(consolidation_search, "TRIES", 0)
    assert not consolidation(state_of(objects)).optimal

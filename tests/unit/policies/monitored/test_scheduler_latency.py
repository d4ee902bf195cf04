"""How long passes take, and which bindings fail."""

from __future__ import annotations

import pytest

from fastsim.errors import PolicyError
from fastsim.policies.monitored.scheduler_latency import Pace


def test_passes_are_longer_where_every_pod_is_looked_up() -> None:
    assert [Pace().pass_length_s(running) for running in (0, 8)] == [0.5, 0.5]
    assert [Pace(api_pace=True).pass_length_s(running) for running in (0, 2, 3, 8)] == [0.5, 0.5, 0.6, 1.6]


def test_bindings_fail_only_if_asked_for() -> None:
    assert all(Pace().binds(attempt) for attempt in range(1, 32))
    assert sum(not Pace(zero_draw=True).binds(attempt) for attempt in range(1, 32)) == 1


@pytest.mark.parametrize("options", [{"pass_s": -1.0}, {"placed_s": float("nan")}, {"requests_per_s": 0.0}])
def test_bad_paces_are_named(options: dict[str, float]) -> None:
    with pytest.raises(PolicyError, match=f"pace.{next(iter(options))}"):
        Pace(**options)  # type: ignore[arg-type]

"""Rewards of an episode by name and by weight."""

from __future__ import annotations

import pytest

import fastsim as fs
from fastsim.decisions.agents.episode import REWARDS, rewards


def test_a_name_is_one_weight() -> None:
    assert [rewards(name).tolist() for name in REWARDS] == [[float(a == b) for b in REWARDS] for a in REWARDS]
    assert rewards({"power": 0.5, "placed": 2}).tolist() == [2.0, 0.0, 0.0, 0.5]
    with pytest.raises(fs.ScenarioError, match="placed, allocation, fragmentation, power"):
        rewards("speed")

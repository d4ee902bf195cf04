"""Curves of pods over their time on a GPU."""

from __future__ import annotations

import math

import pytest

from fastsim.errors import InputError
from fastsim.telemetry.usage_profile import DETECTOR, PROFILES, Phase, Profile


def test_phases_follow_one_another() -> None:
    profile = Profile("p", (Phase(5), Phase(2.5, 100), Phase(math.inf, 200, 50)))
    assert profile.starts_s == [0, 5, 7.5]
    assert PROFILES["detector"] is DETECTOR and math.isinf(DETECTOR.phases[-1].duration_s)


def test_a_profile_is_scaled_to_another_amount_of_memory() -> None:
    scaled = DETECTOR.scaled(DETECTOR.phases[-1].memory_mib / 2)
    assert [phase.memory_mib for phase in scaled.phases] == [phase.memory_mib / 2 for phase in DETECTOR.phases]
    assert scaled.starts_s == DETECTOR.starts_s
    with pytest.raises(InputError, match="a last phase that holds memory"):
        Profile("idle", (Phase(math.inf),)).scaled(5)


@pytest.mark.parametrize(
    ("phases", "found"),
    [
        ((), "infinite duration"),
        ((Phase(5),), "infinite duration"),
        ((Phase(0), Phase(math.inf)), "phase 1: duration_s"),
        ((Phase(math.inf), Phase(math.inf)), "phase 1: duration_s"),
        ((Phase(math.inf, -1),), "phase 1"),
        ((Phase(math.inf, 1, 101),), "0 to 100 %"),
    ],
)
def test_bad_curves_are_named(phases: tuple[Phase, ...], found: str) -> None:
    with pytest.raises(InputError, match=f"profile p.*{found}"):
        Profile("p", phases)

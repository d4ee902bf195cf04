"""Readings of a GPU from the pods on it: sums, tables, and what is integrated."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim.errors import InputError
from fastsim.telemetry.reading_model import V100, Device, Resident, readings
from fastsim.telemetry.usage_profile import DETECTOR, Phase, Profile

HALF = Profile("half", (Phase(math.inf, 100, 50),))
PLAIN = Device(1000, 30, 130, ambient_c=20, resistance_k_per_w=0.5, tau_s=40)


def test_pods_use_what_others_leave_over() -> None:
    found = readings([Resident(0, 30, HALF), Resident(10, 20, HALF)], PLAIN)
    assert found.begin_s.tolist() == [0, 10, 20, 30]
    assert found.util_pct.tolist() == pytest.approx([50, 75, 50, 0])
    assert found.memory_mib.tolist() == [100, 200, 100, 0]
    assert found.power_w.tolist() == pytest.approx([80, 105, 80, 30])
    assert found.copy_pct.tolist() == pytest.approx([25, 37.5, 25, 0])
    assert found.free_mib(PLAIN).tolist() == [900, 800, 900, 1000]
    assert found.pods.tolist() == [1, 2, 1, 0]


def test_tables_say_what_so_many_pods_do() -> None:
    found = readings([Resident(0, 500, DETECTOR)] * 8, V100)
    assert float(found.at("util_pct", 400, V100)) == 97 and float(found.at("power_w", 400, V100)) == 54.6
    assert float(found.at("memory_mib", 400, V100)) == V100.memory_mib  # no more than there is
    assert float(found.at("util_pct", 5, V100)) == 0 and float(found.at("power_w", 5, V100)) == 27


def test_energy_is_the_integral_of_power() -> None:
    found = readings([Resident(10, 20, HALF)], PLAIN)
    assert found.at("energy_j", [0, 10, 15, 20, 30], PLAIN).tolist() == pytest.approx([0, 300, 700, 1100, 1400])


def test_temperature_follows_power() -> None:
    found = readings([Resident(0, 40, HALF)], PLAIN)
    warm = 20 + 0.5 * 80
    assert float(found.at("temperature_c", 0, PLAIN)) == 35
    assert float(found.at("temperature_c", 40, PLAIN)) == pytest.approx(warm + (35 - warm) / math.e)
    # A finer clock changes nothing, because pieces are integrated exactly.
    fine = readings([Resident(0, 13, HALF), Resident(13, 40, HALF)], PLAIN)
    assert float(fine.at("temperature_c", 60, PLAIN)) == pytest.approx(float(found.at("temperature_c", 60, PLAIN)))


def test_who_was_there_before_is_seen_from_the_first_look_on() -> None:
    found = readings([Resident(-100, 50, HALF), Resident(-9, -5, HALF)], PLAIN)
    assert (found.begin_s.tolist(), found.memory_mib.tolist()) == ([0, 50], [100, 0])
    assert float(found.at("memory_mib", -3, PLAIN)) == 100
    assert readings([], PLAIN).power_w.tolist() == [30]


SPANS = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 200)), max_size=8)


@given(SPANS)
def test_readings_stay_within_bounds_and_end_idle(spans: list[tuple[int, int]]) -> None:
    residents = [Resident(start, start + length, DETECTOR) for start, length in spans]
    for device in (V100, PLAIN):
        found = readings(residents, device)
        assert np.all(np.diff(found.begin_s) > 0) and np.all(np.diff(found.energy_j) > 0)
        assert np.all((found.memory_mib >= 0) & (found.memory_mib <= device.memory_mib))
        assert np.all((found.util_pct >= 0) & (found.util_pct <= 100))
        assert np.all((found.power_w >= device.idle_w) & (found.power_w <= device.peak_w))
        assert (found.memory_mib[-1], found.util_pct[-1], found.power_w[-1]) == (0, 0, device.idle_w)


@pytest.mark.parametrize("options", [{"idle_w": 200.0}, {"idle_w": -1.0}, {"tau_s": 0.0}, {"memory_mib": 0.0}])
def test_bad_devices_are_named(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match=f"device: .*{next(iter(options))}"):
        Device(**{"memory_mib": 1000.0, "idle_w": 30.0, "peak_w": 130.0, **options})  # type: ignore[arg-type]


@pytest.mark.parametrize("end_s", [-1.0, math.inf, math.nan])
def test_a_pod_ends_after_it_starts(end_s: float) -> None:
    with pytest.raises(InputError, match="an end after the start"):
        readings([Resident(0, end_s, HALF)], PLAIN)

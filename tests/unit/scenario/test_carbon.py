"""Carbon intensity as numbers, texts and files, and emissions of power over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim.errors import FastsimError, InputError
from fastsim.scenario.carbon import Carbon, carbon_from


def test_numbers_texts_files_and_objects(tmp_path: Path) -> None:
    grid = tmp_path / "grid.csv"
    grid.write_text("since_s,g_per_kwh\n0,100\n3600,300\n")
    assert carbon_from(None) is None
    for what, grams, pue in ((350, [350], 1.0), ("350?pue=1.2", [350], 1.2), (f"{grid}?pue=1.5", [100, 300], 1.5)):
        found = carbon_from(what)
        assert found is not None and (found.g_per_kwh.tolist(), found.pue) == (grams, pue)
        assert carbon_from(found) is found and found.changes == (len(grams) > 1)


def test_power_is_weighed_with_the_intensity_of_its_time() -> None:
    carbon = Carbon(np.array([0.0, 3600.0]), np.array([100.0, 300.0]), 1.5)
    # 1 kW in the first hour, 2 kW in the second: 1 kWh at 100 g, 2 kWh at 300 g, half as much again for the building
    assert carbon.co2_kg_over(np.array([0.0, 3600.0, 7200.0]), np.array([1000.0, 2000.0])) == pytest.approx(1.05)
    # the first intensity holds before its time, too
    assert carbon.co2_kg_over(np.array([-3600.0, 1800.0]), np.array([1000.0])) == pytest.approx(0.225)


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=6), st.lists(st.floats(1, 1e4), min_size=2, max_size=8))
def test_a_step_at_a_time_gives_the_same(grams: list[float], spans: list[float]) -> None:
    carbon = Carbon(np.arange(len(grams), dtype=np.float64) * 500.0, np.array(grams, np.float64))
    edges = np.cumsum([-700.0, *spans])
    power = np.arange(1.0, len(edges))
    whole = carbon.co2_kg_over(edges, power)
    fine = np.unique(
        np.concatenate([edges, carbon.since_s[(carbon.since_s > edges[0]) & (carbon.since_s < edges[-1])]])
    )
    row = np.maximum(np.searchsorted(carbon.since_s, fine[:-1], "right") - 1, 0)
    draw = power[np.searchsorted(edges, fine[:-1], "right") - 1]
    steps = np.diff(fine) * draw * carbon.g_per_kwh[row] / 3.6e9
    assert whole == pytest.approx(float(steps.sum()), rel=1e-9, abs=1e-12)  # the same sum in another order


def test_an_intensity_that_never_changes_needs_energy_only() -> None:
    assert Carbon.fixed(400, 1.25).co2_kg(10) == pytest.approx(5.0)
    assert not Carbon(np.array([0.0, 5.0]), np.array([2.0, 2.0])).changes


def test_checksums_tell_series_apart() -> None:
    sums = {Carbon.fixed(1).checksum(), Carbon.fixed(2).checksum(), Carbon.fixed(1, 1.1).checksum()}
    assert len(sums) == 3


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("green", "carbon: found 'green', expected g of CO2 for a kWh"),
        ("350?eff=1", "carbon: found '350.eff=1'"),
        ("350?pue=much", "carbon: pue: found 'much', expected a number"),
        ("350?pue=0.5", "carbon: pue: found 0.5, expected 1 to 10"),
        (-1, "carbon: g_per_kwh: found -1 to -1"),
        ("nan", "carbon: g_per_kwh"),
        (True, r"carbon: found True \(bool\)"),
        ([1], "carbon: found"),
    ],
)
def test_what_has_no_sense_is_refused(what: Any, words: str) -> None:
    with pytest.raises(FastsimError, match=words):
        carbon_from(what)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("since_s,g_per_kwh\n", "no row"),
        ("since_s,g_per_kwh\n0,\n", "an empty cell"),
        ("since_s,g_per_kwh\n0,many\n", ":2: g_per_kwh: found 'many'"),
        ("since_s\n0\n", "g_per_kwh"),
        ("since_s,g_per_kwh\n5,1\n5,2\n", "times that do not rise"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "grid.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=words) as error:
        carbon_from(str(path))
    assert str(path) in str(error.value)

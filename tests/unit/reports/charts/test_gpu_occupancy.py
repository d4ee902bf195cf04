"""Occupancy of GPUs: seconds of spans, rows of nodes, bars of a window, shares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastsim as fs
from fastsim.reports.charts.gpu_occupancy import (
    BAR_ROWS,
    OTHERS,
    PARTS,
    STEPS,
    Window,
    bars,
    coverage,
    heat,
    held_s,
    leading,
    shares,
    states,
    stays,
)
from tests import reports


@given(st.lists(st.tuples(st.floats(0, 12), st.floats(0, 12), st.integers(0, 2)), max_size=20), st.integers(1, 7))
def test_coverage_is_what_each_span_has_in_common_with_each_step(
    spans: list[tuple[float, float, int]], steps: int
) -> None:
    edges = np.linspace(1.0, 9.0, steps + 1)
    begin, end = ([min(pair[:2]) for pair in spans], [max(pair[:2]) for pair in spans])
    found = coverage(np.array(begin), np.array(end), np.array([pair[2] for pair in spans], np.int64), 3, edges)
    for row in range(3):
        for step in range(steps):
            expected = sum(
                max(0.0, min(b, edges[step + 1]) - max(a, edges[step]))
                for a, b, (_, _, own) in zip(begin, end, spans, strict=True)
                if own == row
            )
            # Twenty additions of numbers below 20.
            assert found[row, step] == pytest.approx(expected, abs=1e-9)


def test_a_gpu_that_pods_share_is_used_once() -> None:
    result = reports.by_hand()
    frame = stays(result)
    assert frame["pod_id"].to_list() and frame["gpu"].null_count() == 0
    grid = heat(result, frame, 1.0)
    assert grid["y"].max() <= 2.0  # type: ignore[operator]
    assert grid.select("low", "high").unique().sort("low").rows() == [(0, 1), (1, 2)]
    used = float((grid["y"] * (grid["x2"] - grid["x"])).sum())
    # 1 GPU for 100 s, 2 for 80 s, 2 for 50 s; cells have two decimals, positions five digits.
    assert used == pytest.approx(100 + 160 + 100, rel=0.01)


def test_bars_are_the_stays_of_the_window() -> None:
    frame = stays(reports.by_hand())
    every = bars(frame)
    assert len(every) == len(frame) == 6 and every["x"].min() == 0.0
    cut = bars(frame, Window(20.0, 60.0))
    assert cut["x"].min() == 20.0 and cut["x2"].max() == 60.0
    assert bars(frame, Window(1e6, 2e6)).is_empty()
    assert bars(stays(reports.passing()))["row"].n_unique() <= BAR_ROWS


def test_shares_are_the_gpus_of_each_application() -> None:
    result = reports.jobs()
    frame = stays(result)
    held = held_s(result, frame)
    assert held is not None and held_s(reports.passing(), stays(reports.passing())) is None
    parts = leading([held])
    assert len(parts) <= PARTS and held["part"].n_unique() >= len([part for part in parts if part != OTHERS])
    grid = shares(held, parts, 1.0)
    step = (held["end_s"].to_numpy().max() - held["start_s"].to_numpy().min()) / 80
    # Three decimals of each of 80 steps.
    assert float(grid["y"].sum()) * step == pytest.approx(float(held["held_s"].sum()), rel=0.01)


def test_what_holds_least_is_the_others() -> None:
    frame = pl.DataFrame({"part": [f"p{k:02}" for k in range(12)], "held_s": [float(12 - k) for k in range(12)]})
    assert leading([frame]) == [*(f"p{k:02}" for k in range(PARTS - 1)), OTHERS]
    assert leading([frame.head(PARTS)]) == frame["part"].head(PARTS).to_list()


def test_fragmentation_and_power_of_nodes_are_means_over_time() -> None:
    result = reports.passing()
    frame = stays(result)
    series = states(result, frame)
    assert series is not None
    grid = heat(result, frame, 1.0, series)
    assert grid["frag"].null_count() == grid["power"].null_count() == 0
    begin_s, end_s = grid["x"].to_numpy().min(), grid["x2"].to_numpy().max()
    assert len(grid.select("low").unique()) == 20  # each node is a row of its own
    line = result.timeline.group_by("t_s", maintain_order=True).last()
    seconds = line["t_s"].diff().shift(-1).fill_null(0.0)
    for column, timeline, unit in (("frag", "frag_milli", 1000.0), ("power", "power_w", 1.0)):
        mean = float((line[timeline] * seconds).sum()) / unit / (end_s - begin_s)
        # Cells have two decimals, and there are 20 of them in a step; positions have five digits.
        assert float(grid[column].sum()) / STEPS == pytest.approx(mean, abs=0.1, rel=1e-3)


def test_runs_without_their_inputs_show_only_what_placements_tell() -> None:
    result = replace(reports.by_hand(), scenario=None)
    assert states(result, stays(result)) is None
    assert heat(result, stays(result), 1.0)["frag"].null_count() == heat(result, stays(result), 1.0).height


def test_neither_nodes_that_fail_nor_very_long_runs_have_states(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "synth:openb?pods=40&seed=1"
    failing = fs.simulate("openb:20", text, "fgd", failures="mtbf=72000,mttr=3600", record="all")
    assert states(failing, stays(failing)) is None
    monkeypatch.setattr("fastsim.reports.charts.gpu_occupancy.STAYS", 3)
    assert states(reports.passing(), stays(reports.passing())) is None

"""Charts of readings: the points they are made of, and pictures of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from fastsim.cli.monitor import QUANTITIES as OFFERED
from fastsim.errors import InputError, ScenarioError
from fastsim.reports.charts.telemetry_charts import (
    FOUR,
    LINES,
    POINTS,
    QUANTITIES,
    comparison_chart,
    device_points,
    mean_points,
    workload_chart,
)
from fastsim.telemetry.readings_table import ordered
from tests.needs import needed
from tests.telemetry import table


def devices(count: int, seconds: int = 20, **columns: object) -> pa.Table:
    """Readings of so many devices: device i draws i watts."""
    return ordered(pa.concat_tables([
        table({metric: [(1000 * second, float(device)) for second in range(seconds)] for metric in FOUR},
              gpu_index=device, gpu_uuid=f"GPU-{device}", **columns)
        for device in range(count)
    ]))  # fmt: skip


def test_points_of_devices() -> None:
    points = device_points(devices(2, 3), ("power_w", "util_pct"))
    assert points["metric"].unique(maintain_order=True).to_list() == ["power_w", "util_pct"]
    power = points.filter(points["metric"] == "power_w")
    assert power["name"].to_list() == ["GPU 0"] * 3 + ["GPU 1"] * 3
    assert power["x"].to_list() == [0, 1, 2] * 2 and power["y"].to_list() == [0, 0, 0, 1, 1, 1]
    several = ordered(pa.concat_tables([devices(1, 1), devices(1, 1, node="n2")]))
    assert device_points(several)["name"].unique(maintain_order=True).to_list() == ["n1 GPU 0", "n2 GPU 0"]


def test_a_long_record_is_averaged() -> None:
    values = [(1000 * second, float(second)) for second in range(10 * POINTS)]
    points = device_points(table({"power_w": values}))
    assert len(points) == POINTS and points["y"][1] == pytest.approx(15, abs=1)


def test_the_mean_of_devices() -> None:
    points = mean_points(devices(3, 2), ("power_w",), name="ours")
    assert points["name"].to_list() == ["ours", "ours"] and points["y"].to_list() == [1, 1]


def test_pods_by_name() -> None:
    source = ordered(pa.concat_tables([devices(1, 2, pod="train-1"), devices(2, 2, pod="other")]))
    assert len(device_points(source, ("power_w",), "train-*")) == 2
    with pytest.raises(InputError, match="found no readings of pods nobody, expected some of util_pct"):
        device_points(source, pod="nobody")


def test_what_cannot_be_drawn() -> None:
    with pytest.raises(ScenarioError, match="did you mean 'power_w'"):
        device_points(devices(1), ("power",))
    with pytest.raises(ScenarioError, match="no tables"):
        comparison_chart({})
    assert tuple(QUANTITIES) == OFFERED


def test_few_devices_have_lines_and_many_a_band() -> None:
    needed("altair")
    assert '"name"' in workload_chart(devices(LINES)).to_json()
    crowd = workload_chart(devices(LINES + 1), title="many").to_json()
    assert "mean of 9 GPUs" in crowd and '"many"' in crowd


@pytest.mark.long
@pytest.mark.parametrize("apart", [False, True])
def test_runs_side_by_side(apart: bool, tmp_path: Path) -> None:
    needed("altair")
    from fastsim.reports.charts.chart_files import written_chart

    drawn = comparison_chart({"a": devices(1), "b": devices(2)}, apart=apart)
    assert len(drawn.to_dict()["vconcat"]) == 2
    assert written_chart(drawn, tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")

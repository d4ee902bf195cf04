"""Names, units and labels of three generations of exporters."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim.errors import InputError, ScenarioError
from fastsim.telemetry.metric_names import FOUND_AS, LABELS, PROFILES, Labels, by_name, metrics


def test_generations_tell_the_same_quantities() -> None:
    quantities = [{metric.quantity for metric in metrics(profile)} for profile in PROFILES]
    assert (
        quantities[0] == quantities[1] == quantities[2] and {"util_pct", "memory_used_mib", "power_w"} <= quantities[0]
    )
    assert len(by_name()) == sum(map(len, quantities)) + 1  # that of instances
    for name in ("dcgm_fb_used", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_GPU_TEMP_CELSIUS"):
        assert name in by_name()
    assert {metric.type for metric in by_name().values() if metric.quantity == "energy_j"} == {"counter"}


def test_units_change_with_the_generation() -> None:
    (ratio,) = (metric for metric in metrics("dcgm4.9") if metric.quantity == "util_pct")
    assert (ratio.theirs(55.0), ratio.ours(0.55)) == (0.55, 55.0)
    (used,) = (metric for metric in metrics("dcgm4.9") if metric.quantity == "memory_used_mib")
    assert used.theirs(6994.0) == 6994 * 2**20


@given(st.sampled_from(sorted(by_name())), st.integers(0, 10**9), st.integers(0, 3))
def test_nothing_changes_there_and_back(name: str, digits: int, places: int) -> None:
    metric, value = by_name()[name], digits / 10**places
    assert metric.ours(metric.theirs(value)) == value


def test_every_column_is_found_under_the_label_it_is_written_to() -> None:
    for labels in LABELS.values():
        assert all(not label or label in FOUND_AS[column] for column, label in labels._asdict().items())
    assert set(FOUND_AS) == set(Labels._fields)


def test_a_table_of_one_s_own(tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    path.write_text("quantity,type,dcgm2,dcgm2_per\npower_w,gauge,my_watts,\nutil_pct,gauge,,\n")
    assert [metric[:4] for metric in metrics("dcgm2", path)] == [("power_w", "my_watts", "gauge", 1.0)]


@pytest.mark.parametrize(
    ("text", "found"),
    [("quantity,type\npower_w,gauge\n", "columns quantity"),
     ("quantity,type,dcgm2,dcgm2_per\na,gauge,b,much\n", "a number"),
     ("quantity,type,dcgm2,dcgm2_per\na,histogram,b,1\n", "a gauge or counter")],
)  # fmt: skip
def test_bad_tables_are_named(tmp_path: Path, text: str, found: str) -> None:
    (tmp_path / "names.csv").write_text(text)
    with pytest.raises(InputError, match=rf"names\.csv:2.*{found}"):
        metrics("dcgm2", tmp_path / "names.csv")
    with pytest.raises(InputError, match=r"none\.csv"):
        metrics("dcgm2", tmp_path / "none.csv")
    with pytest.raises(ScenarioError, match="one of dcgm1"):
        metrics("dcgm3")

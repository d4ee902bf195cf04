"""Charts of reports about readings: what is averaged, and what is drawn of which runs."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import polars as pl
import pytest

import fastsim as fs
from fastsim.reports.charts.gpu_reading_charts import (
    DEVICES,
    HIGH,
    KEYS,
    LOW,
    MEAN,
    READINGS,
    STEPS,
    _binned,
    devices,
    longest_s,
    means,
    sampled,
)
from fastsim.reports.charts.series import series_of
from fastsim.reports.report import still
from fastsim.reports.report_charts import figures
from tests.needs import needed


class Readings(NamedTuple):
    """A run of which readings are known only."""

    rows: pl.DataFrame

    def scan(self, _table: str) -> pl.LazyFrame:
        """The readings."""
        return self.rows.lazy()


ONE = "uniform?nodes=1&gpu=V100M32&gpus=1"


@cache
def detectors(policy: str, seed: int = 0) -> fs.Result:
    """Four detectors on one GPU."""
    return fs.simulate(ONE, "synth:detectors?jobs=4", policy, telemetry=1, seed=seed)


@cache
def crowd() -> fs.Result:
    """More GPUs than have a line each."""
    return fs.simulate("uniform?nodes=3&gpu=V100M32&gpus=4", "synth:detectors?jobs=20&least_s=1&most_s=3", "exclusive",
                       telemetry=5)  # fmt: skip


def test_steps_keep_the_mean_of_all_readings() -> None:
    result = detectors("exclusive")
    some = sampled(series_of([result]))
    table = result.telemetry.filter(metric="power_w").sort("ts")
    span_s = (table["ts"][-1] - table["ts"][0]).total_seconds()
    assert longest_s(some) == span_s
    found = means(some).filter(metric="power_w")
    step_s = found["x"].diff().drop_nulls().min()
    piece = ((table["ts"] - table["ts"][0]).dt.total_milliseconds() / 1000 / step_s).floor()
    plain = table.with_columns(piece=piece).group_by("piece").agg(pl.mean("value")).sort("piece")
    assert found["y"].to_list() == pytest.approx(plain["value"].to_list())
    assert found["low"].null_count() == found["high"].null_count() == len(found)  # one run has no interval


def test_means_are_the_same_in_any_order_of_the_readings() -> None:
    table = detectors("monitored").telemetry
    span_ms = tuple(int(table["ts"].cast(pl.Datetime("ms")).cast(pl.Int64).sort()[at]) for at in (0, -1))
    orders = [table, table.reverse(), table.sample(fraction=1.0, shuffle=True, seed=1)]
    forward, *others = (_binned(Readings(rows), span_ms, 20.0, ()) for rows in orders)  # type: ignore[arg-type]
    assert len(forward) > 20 and all(other.equals(forward) for other in others)


def test_seeds_of_a_series_are_averaged() -> None:
    [one] = sampled(series_of([detectors("exclusive", 0), detectors("exclusive", 1)]))
    found = means([one]).filter(metric="util_pct")
    assert ((found["low"] <= found["y"]) & (found["y"] <= found["high"])).all() and found["y"].max() == 4


def test_gpus_have_a_line_each_or_a_crowd_has_three() -> None:
    few, many = (sampled(series_of([run]))[0] for run in (detectors("gpushare"), crowd()))
    assert set(devices([("a", few)])["part"]) == {"GPU 0"}
    found = devices([("a", many)])
    assert DEVICES < 12 and found["part"].n_unique() == 3 and len(found) <= len(READINGS) * 3 * (STEPS + 1)
    wide = found.filter(metric="util_pct").pivot("part", index="x", values="y").sort("x")
    table = crowd().telemetry.filter(metric="util_pct").sort("ts")
    since_s = (table["ts"] - table["ts"][0]).dt.total_milliseconds() / 1000
    step_s = longest_s([many]) / STEPS
    gpu = table.group_by("node", "gpu_index", (since_s / step_s).floor().alias("piece")).agg(pl.mean("value"))
    for x, low, mean, high in wide.select("x", LOW, MEAN, HIGH).rows():
        ranked = sorted(gpu.filter(piece=round(x / step_s))["value"])
        last = len(ranked) - 1
        assert (low, high) == pytest.approx((ranked[round(0.05 * last)], ranked[round(0.95 * last)]), abs=1e-4)
        assert mean == pytest.approx(sum(ranked) / len(ranked), abs=1e-4)


def test_what_is_drawn() -> None:
    runs = [detectors("exclusive"), detectors("gpushare"), fs.simulate(ONE, "synth:detectors?jobs=2", "exclusive")]
    drawn = {figure.key: figure for figure in figures(series_of(runs, ["alone", "shared", "silent"]))}
    assert set(KEYS) <= set(drawn)
    assert set(drawn["util"].data["run"]) == {"alone", "shared"} and drawn["util_by_gpu"].single
    assert drawn["temperature"].spec["layer"][0]["encoding"]["y"]["scale"] == {"zero": False}
    converter = needed("vl_convert")
    for key in ("gpu_power", "copies_by_gpu"):
        assert "<svg" in converter.vegalite_to_svg(still(drawn[key]))
    [only] = figures(series_of(runs), keys=("gpu_memory",))
    assert only.key == "gpu_memory" and float(only.data["y"].max()) >= 6994  # type: ignore[arg-type]


def test_one_moment_is_no_line() -> None:
    once = fs.simulate("openb:2", "synth:openb?pods=5&seed=1", telemetry=7200)
    assert once.telemetry["ts"].n_unique() == 1
    assert not {figure.key for figure in figures(series_of([once]))} & set(KEYS)

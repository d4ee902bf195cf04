"""The generator: statistics of the openb trace, independent streams, prefixes, loads, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastsim.cluster.cluster import Cluster
from fastsim.errors import ScenarioError
from fastsim.foundation.draws.random_streams import Stream, normal_quantile, shuffled_order
from fastsim.workload import Workload
from fastsim.workload.generators.arrivals_and_durations import Mixture
from fastsim.workload.generators.openb import openb_table
from fastsim.workload.generators.requests import RequestTable, constraint_model, request_model

PODS = 200_000


@cache
def sample(**options: Any) -> pl.DataFrame:
    options = {"pods": PODS, "seed": 1, "arrivals": "poisson", **options}
    frame = pl.DataFrame(Workload.synth("openb", **options).table())
    gpus = pl.col("num_gpu").cast(pl.Int64) * pl.col("gpu_milli") / 1000
    return frame.with_columns(gpus=gpus, qos=pl.col("qos").cast(pl.String))


def distance(left: pl.Series, right: pl.Series) -> float:
    """Largest difference of the two empirical distribution functions."""
    a, b = np.sort(left.to_numpy()), np.sort(right.to_numpy())
    at = np.unique(np.concatenate((a, b)))
    gap = np.searchsorted(a, at, side="right") / len(a) - np.searchsorted(b, at, side="right") / len(b)
    return float(np.abs(gap).max())


# ------------------------------------------------------------------ requests


@pytest.mark.parametrize(
    ("column", "published"),
    [("cpu_milli", 0.0149), ("memory_mib", 0.0102), ("num_gpu", 0.0008), ("gpu_milli", 0.0010), ("gpus", 0.0010)],
)
def test_requests_are_as_far_from_the_trace_as_published(
    shared: Callable[[str], Path], column: str, published: float
) -> None:
    trace = pl.DataFrame(Workload.from_openb(shared("data/openb") / "openb_pod_list_default.parquet").table())
    trace = trace.with_columns(gpus=pl.col("num_gpu").cast(pl.Int64) * pl.col("gpu_milli") / 1000)
    # Sampling noise of the distance: runs leave about 0.6 x 200,000 independent pods, 1.36 / sqrt(120,000) = 0.0039.
    assert distance(sample()[column], trace[column]) < published + 0.0039


def test_means_and_shares_of_the_published_table() -> None:
    pods = sample()
    # Tolerances: three standard errors, 3 x sd / sqrt(120,000): cpu sd 7,300, memory sd 27,000, gpus sd 0.75.
    assert pods["cpu_milli"].mean() == pytest.approx(10_422.6, abs=65)
    assert pods["memory_mib"].mean() == pytest.approx(37_024, abs=235)
    assert pods["gpus"].mean() == pytest.approx(0.7455, abs=0.0065)
    assert pods.select(pl.corr("cpu_milli", "memory_mib", method="spearman")).item() == pytest.approx(0.841, abs=0.006)
    kind = pods.select(
        cpu=pl.col("num_gpu") == 0,
        share=(pl.col("num_gpu") == 1) & (pl.col("gpu_milli") < 1000),
        one=(pl.col("num_gpu") == 1) & (pl.col("gpu_milli") == 1000),
        multi=pl.col("num_gpu") > 1,
    )
    # Three standard errors of a share of one half: 3 x 0.5 / sqrt(120,000) = 0.0043.
    for name, share in (("cpu", 0.1335), ("share", 0.3776), ("one", 0.4798), ("multi", 0.0092)):
        assert kind[name].mean() == pytest.approx(share, abs=0.0043)
    for name, share in (("LS", 0.570), ("BE", 0.417), ("Burstable", 0.0123), ("Guaranteed", 0.0009)):
        assert (pods["qos"] == name).mean() == pytest.approx(share, abs=0.0043)


def test_ten_most_frequent_requests() -> None:
    pods = sample()
    published = ((3152, 5600, 810, 0.1284), (11300, 49152, 1000, 0.1051), (12500, 57344, 0, 0.0447))
    for cpu, memory, milli, share in published:
        same = (pods["cpu_milli"] == cpu) & (pods["memory_mib"] == memory) & (pods["gpu_milli"] == milli)
        assert same.mean() == pytest.approx(share, abs=0.004)  # four standard errors of 0.13: 4 x 0.34 / 346


def test_requests_repeat_in_runs() -> None:
    keys = sample().select("cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
    again = (keys == keys.shift(1)).select(pl.all_horizontal(pl.all())).to_series().mean()
    # Published 0.260, standard error 0.001; the fit gives 0.22 + 0.78 x 0.049 = 0.258.
    assert again == pytest.approx(0.260, abs=0.006)


def test_shipped_tables_follow_from_the_lists(shared: Callable[[str], Path]) -> None:
    folder = shared("data/openb")
    derived = request_model(Workload.from_openb(folder / "openb_pod_list_default.parquet"))
    table = openb_table()
    assert {name: table[name] for name in derived} == derived
    assert table["constraints"] == constraint_model(Workload.from_openb(folder / "openb_pod_list_gpuspec33.parquet"))


def test_models_are_named_as_often_as_asked_and_only_where_a_node_fits() -> None:
    pods = sample(gpu_spec_share=0.338)
    gpu = pods.filter(pl.col("num_gpu") > 0)
    assert gpu["gpu_models"].is_not_null().mean() == pytest.approx(0.338, abs=0.006)  # four standard errors
    assert pods.filter(pl.col("num_gpu") == 0)["gpu_models"].is_not_null().sum() == 0
    named = gpu.filter(pl.col("gpu_models").is_not_null())
    first = named["gpu_models"].list.join("|").value_counts(sort=True, normalize=True)
    # Sets that no node could serve for the pod are never named, which lifts the others a little.
    assert first.row(0) == ("T4", pytest.approx(0.54, abs=0.03))
    assert named.filter((pl.col("num_gpu") == 8) & (pl.col("gpu_models").list.join("|") == "T4")).height == 0


# ------------------------------------------------------------------ durations


def test_body_durations_match_the_published_fit() -> None:
    seconds = sample()["duration_s"]
    assert seconds.min() >= 1 and seconds.max() <= 172_800  # type: ignore[operator]
    assert 3_250 - 80 < seconds.mean() < 3_400  # type: ignore[operator] # published span, standard error 25 s
    assert seconds.median() == pytest.approx(602, abs=20)
    assert (seconds == seconds.round()).all()


def test_full_durations_differ_by_qos() -> None:
    pods = sample(durations="full")
    medians = dict(pods.group_by("qos").agg(pl.col("duration_s").median()).iter_rows())
    assert medians["LS"] == pytest.approx(896, rel=0.06) and medians["BE"] == pytest.approx(241, rel=0.06)
    assert pods["duration_s"].max() <= 12_902_960  # type: ignore[operator]


@given(st.floats(2, 12), st.floats(0.05, 2.5), st.floats(0.0, 1.0), st.floats(0.1, 6))
@settings(max_examples=40, deadline=None)
def test_mixture_mean_is_the_mean_of_its_draws(mu: float, sigma: float, share: float, over: float) -> None:
    mixture = Mixture((share, 1 - share), (mu, mu + 1), (sigma, 0.5), math.exp(mu + over * sigma))
    grid = (np.arange(20_000) + 0.5) / 20_000
    means = [mixture.at(np.full(20_000, which), grid).mean() for which in (1e-9, 1 - 1e-9)]
    below = [NormalDist(m, s).cdf(math.log(mixture.limit_s)) for m, s in ((mu, sigma), (mu + 1, 0.5))]
    mass = np.array([share, 1 - share]) * below
    if mass.min() / mass.sum() < 1e-6:
        return
    # The grid misses part of the last of 20,000 steps; with sigma 2.5 and 6 sd that is within 2 %.
    assert mixture.mean() == pytest.approx(float(np.dot(mass / mass.sum(), means)), rel=0.02)


def test_length_biased_mixture_weights_by_duration() -> None:
    mixture = Mixture((0.5, 0.5), (1.0, 5.0), (0.5, 0.5), 1e9)
    # The mean of a length-biased variable is E[X^2] / E[X].
    squares = sum(0.5 * math.exp(2 * m + 2 * 0.25) for m in (1.0, 5.0))
    assert mixture.length_biased().mean() == pytest.approx(squares / mixture.mean(), rel=1e-9)


# ------------------------------------------------------------------ arrivals


def test_poisson_rate_and_shared_instants() -> None:
    submit = sample(rate_per_hour=600.0)["submit_s"]
    gaps = submit.diff().drop_nulls()
    assert 3600 / gaps.mean() == pytest.approx(600, rel=0.01)  # type: ignore[operator] # four standard errors
    assert (gaps == 0).mean() == pytest.approx(0.025, abs=0.0015)  # the trace's ties; four standard errors


def test_seasonal_hours_and_mood() -> None:
    submit = sample(arrivals="seasonal")["submit_s"].to_numpy()
    hours = np.bincount((submit // 3600).astype(int))[:-1]
    # 20,000 hours whose mood remembers 0.6 of the last: about 5,000 independent ones, each of sd 0.7.
    assert hours.mean() == pytest.approx(10.05, rel=0.05)
    days = hours[: len(hours) // 24 * 24].reshape(-1, 24).mean(axis=0) / hours.mean()
    expected = np.array(openb_table()["arrivals"]["hour_factor"])
    assert np.abs(days / expected - 1).max() < 0.16  # 830 days: sd 0.55 / sqrt(830) = 0.02; day pattern 4.0 : 1
    # Dispersion of the counts: 1 + 10 x variance of rate; published 5.8 with a gamma mood, a lognormal one gives 6.2.
    assert 4.8 < hours.var() / hours.mean() < 7.2


def test_rate_clip_bounds_every_hour() -> None:
    submit = sample(arrivals="seasonal", rate_per_hour=1000.0, rate_clip=(0.6, 1.4))["submit_s"].to_numpy()
    hours = np.bincount((submit // 3600).astype(int))[:-1]
    assert hours.max() < 1400 + 6 * 38 and hours.min() > 600 - 6 * 25  # six standard deviations of the counts


def test_load_and_warm_start_keep_demand_at_the_capacity_from_the_first_second() -> None:
    cluster = Cluster.scaled("openb-all", nodes=300, seed=1)
    options: dict[str, Any] = {"arrivals": "poisson", "load": 0.95, "cluster": cluster, "warm_start": True}
    workload = Workload.synth("openb", pods=10_000, seed=2, **options)
    gpus = pl.col("num_gpu").cast(pl.Int64) * pl.col("gpu_milli") / 1000
    pods = pl.DataFrame(workload.table()).with_columns(gpus=gpus)
    resident = pods.filter(pl.col("submit_s") <= 0)
    assert workload.rows == pods.height
    assert resident.height == pytest.approx(0.95 * cluster.total_gpus / 0.7455, rel=0.01)
    ends = pods["submit_s"] + pods["duration_s"]
    for instant in (0, 1000, 10_000, 20_000):
        demand = pods.filter((pods["submit_s"] <= instant) & (ends > instant))["gpus"].sum()
        # 1,560 pods in service: relative sd of the demand about 1.4 / sqrt(1,560) = 0.036.
        assert demand / cluster.total_gpus == pytest.approx(0.95, abs=0.11)
    assert resident["duration_s"].mean() > 3 * pods["duration_s"].median()  # type: ignore[operator]


def test_order_only_and_for_ever() -> None:
    workload = Workload.synth("openb", pods=5, arrivals="order", durations="forever")
    assert workload.table()["submit_s"].to_pylist() == [0, 1, 2, 3, 4]
    assert "duration_s" not in workload.columns


# ------------------------------------------------------------------ seeds


def test_a_longer_trace_begins_with_the_shorter_one() -> None:
    for options in ({"gpu_spec_share": 0.2}, {"durations": "full", "arrivals": "poisson"}):
        short = Workload.synth("openb", pods=65_536 + 9, seed=3, **options)
        long = Workload.synth("openb", pods=140_000, seed=3, **options).table()
        assert Workload.from_arrow(long.slice(0, 65_536 + 9)).checksum() == short.checksum()


@pytest.mark.parametrize(
    ("change", "moved"),
    [
        ({"durations": "full"}, {"duration_s"}),
        ({"arrivals": "poisson"}, {"submit_s"}),
        ({"rate_per_hour": 99.0}, {"submit_s"}),
        ({"gpu_spec_share": 0.9}, {"gpu_models"}),
    ],
)
def test_one_knob_moves_one_concern(change: dict[str, Any], moved: set[str]) -> None:
    base: dict[str, Any] = {"pods": 3000, "seed": 4, "gpu_spec_share": 0.3}
    before, after = (Workload.synth("openb", **{**base, **extra}).table() for extra in ({}, change))
    assert {name for name in before.column_names if not before[name].equals(after[name])} == moved


def test_seeds_differ_and_repeat(tmp_path: Path) -> None:
    first, again, other = (Workload.synth("openb", pods=2000, seed=seed) for seed in (7, 7, 8))
    assert first.checksum() == again.checksum() != other.checksum()
    first.write(tmp_path / "a.parquet")
    again.write(tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert Workload.scan(tmp_path / "a.parquet").metadata["fastsim.seed"] == "7"


@given(st.integers(0, 2**40), st.lists(st.integers(0, 50), max_size=6))
@settings(max_examples=30, deadline=None)
def test_streams_do_not_depend_on_how_they_are_cut(seed: int, sizes: list[int]) -> None:
    pieces = Stream(seed, "x")
    cut = np.concatenate([pieces.uniform(size) for size in sizes] or [np.zeros(0)])
    assert cut.tolist() == Stream(seed, "x").uniform(sum(sizes)).tolist()
    assert (cut > 0).all() and (cut < 1).all()


def test_streams_of_concerns_and_the_normal_quantile() -> None:
    assert Stream(1, "a").raw(4).tolist() != Stream(1, "b").raw(4).tolist()
    assert sorted(shuffled_order(1, "x", 100)) == list(range(100))
    p = np.array([1e-9, 1e-3, 0.024, 0.025, 0.3, 0.5, 0.9, 0.98, 1 - 1e-9])
    exact = [NormalDist().inv_cdf(x) for x in p]
    assert normal_quantile(p) == pytest.approx(exact, rel=1.2e-9, abs=1e-12)  # the approximation's own bound
    below = Stream(1, "c").below(7, 10_000)
    assert below.min() == 0 and below.max() == 6


def test_table_means_agree_with_the_sample() -> None:
    # The trace's own mean, from which the shares differ by rounding to 4 decimals only.
    assert RequestTable(openb_table()).mean_gpus() == pytest.approx(0.7467, abs=0.0002)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pods": -1}, "synth.pods: found -1"),
        ({"arrivals": "never"}, "synth.arrivals: found 'never', expected one of: seasonal, poisson, order"),
        ({"durations": "short"}, "synth.durations"),
        ({"pods": 1e3}, "synth.pods: found 1000.0, expected a whole number"),
        ({"pods": "many"}, "synth.pods: found 'many', expected a whole number"),
        ({"seed": 0.5}, "synth.seed: found 0.5, expected a whole number"),
        ({"rate_per_hour": 0.0}, "synth.rate_per_hour"),
        ({"rate_per_hour": float("nan")}, "synth.rate_per_hour"),
        ({"load": 1.0}, "synth.load: found no cluster"),
        ({"load": 1.0, "cluster": "openb", "rate_per_hour": 3.0}, "one of the two"),
        ({"load": 1.0, "cluster": "openb", "arrivals": "order"}, "arrivals with a rate"),
        ({"warm_start": True, "durations": "forever"}, "'forever'"),
        ({"warm_start": True, "arrivals": "order"}, "synth.warm_start"),
        ({"gpu_spec_share": 1.5}, "synth.gpu_spec_share"),
        ({"rate_clip": (2.0, 1.0)}, "synth.rate_clip"),
        ({"cluster": "nowhere"}, "cluster.preset"),
        ({"cluster": 5, "load": 0.8}, "synth.cluster: found 5, expected a cluster or the name of a preset"),
    ],
)
def test_nonsense_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        Workload.synth("openb", **{"pods": 10, **options})


def test_no_pods_at_all() -> None:
    empty = Workload.synth("openb", pods=0)
    assert empty.table().num_rows == 0 and isinstance(empty.table(), pa.Table)


def test_every_pod_fits_some_openb_node() -> None:
    from fastsim.cluster.cluster import Cluster
    from tests.unit.workload.test_oversized_pods import oversized

    assert oversized(Cluster.preset("openb-all"), Workload.synth("openb", pods=300_000, seed=5)) == (0, "")

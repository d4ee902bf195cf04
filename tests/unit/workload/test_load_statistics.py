"""Offered load is an integral: the fast way of it against adding up second by second."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim.cluster.cluster import Cluster
from fastsim.workload import Workload
from fastsim.workload.load_statistics import Line, load_curve, mean_load_pct, trace_frame, trace_lines

CLUSTER = Cluster.mix(
    [(2, {"gpu_model": "T4", "num_gpu": 2, "cpu_milli": 64_000, "memory_mib": 131_072}),
     (1, {"gpu_model": "P100", "num_gpu": 4, "cpu_milli": 64_000, "memory_mib": 131_072})]
)  # fmt: skip
PODS = st.lists(
    st.tuples(st.integers(0, 40), st.none() | st.integers(0, 30), st.integers(0, 2), st.sampled_from([None, "T4"])),
    min_size=2, max_size=12,
).map(lambda rows: sorted(rows, key=lambda row: row[0]))  # fmt: skip


def frame(rows: list[tuple[int, int | None, int, str | None]]) -> pl.DataFrame:
    """Pods: arrival, duration, GPUs, model."""
    columns = {
        "pod_id": list(range(len(rows))), "submit_s": [float(row[0]) for row in rows],
        "cpu_milli": [1000] * len(rows), "memory_mib": [1024] * len(rows), "num_gpu": [row[2] for row in rows],
        "gpu_milli": [1000 * (row[2] > 0) for row in rows],
        "duration_s": pa.array([None if row[1] is None else float(row[1]) for row in rows], pa.float64()),
        "gpu_models": pa.array([None if row[3] is None else [row[3]] for row in rows], pa.list_(pa.string())),
    }  # fmt: skip
    return trace_frame(Workload.from_arrow(pa.table(columns)))


@given(PODS, st.integers(1, 7))
def test_offered_load_is_the_mean_of_every_second(
    rows: list[tuple[int, int | None, int, str | None]], spans: int
) -> None:
    first, last = rows[0][0], rows[-1][0]
    curve = load_curve(frame(rows), CLUSTER, spans)
    if first == last:
        assert not len(curve)
        return
    bounds = np.linspace(first, last, spans + 1)
    for label, model in (("any", None), ("T4", "T4")):
        mine = curve.filter(model=label)["gpus"].to_list()
        some = [row for row in rows if row[3] == model and row[2]]
        assert bool(mine) == bool(some)
        for k in range(len(mine)):
            low, high = bounds[k], bounds[k + 1]
            ends = [np.inf if row[1] is None else row[0] + row[1] for row in some]
            demand = sum(
                row[2] * max(0.0, min(high, end) - max(low, row[0])) for row, end in zip(some, ends, strict=True)
            )
            assert mine[k] == pytest.approx(demand / (high - low), abs=1e-9)


def test_load_in_parts_of_the_capacity() -> None:
    load = frame([(0, 100, 2, "T4"), (0, 100, 4, None), (100, 0, 0, None)])
    curve = load_curve(load, CLUSTER, 2)
    assert curve.filter(model="T4")["load_pct"].to_list() == [50.0, 50.0]
    assert curve.filter(model="any")["load_pct"].to_list() == [50.0, 50.0]
    assert mean_load_pct(load, CLUSTER) == 75.0
    assert mean_load_pct(load.with_columns(duration_s=pl.lit(None, pl.Float64)), CLUSTER) is None
    assert "load_pct" not in load_curve(load, None, 2).columns


def test_jobs_without_durations_are_counted_as_they_arrive() -> None:
    jobs = frame([(0, None, 1, None), (1800, None, 3, None), (3600, None, 2, None)])
    jobs = jobs.drop("duration_s").with_columns(workload=pl.lit("x"))
    assert load_curve(jobs, CLUSTER, 2)["gpus"].to_list() == [2.0, 10.0]
    assert mean_load_pct(jobs, CLUSTER) is None


def test_figures_of_a_trace() -> None:
    lines = {line.what: line.value for line in trace_lines(frame([(0, 60, 1, None), (3600, None, 2, "T4")]), CLUSTER)}
    assert lines["rows"] == 2 and lines["arrivals"] == 1.0 and lines["GPUs of all rows"] == 3.0
    assert lines["rows with one GPU"] == lines["rows with several GPUs"] == lines["rows that run for ever"] == 50.0
    assert lines["duration, median"] == 60.0 and lines["GPU hours of all rows"] == pytest.approx(1 / 60)
    assert trace_lines(pl.DataFrame()) == [Line("rows", 0)]

"""A pool answers what the online engine answers on one node that has all the GPUs, and refuses what it cannot say."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings

import fastsim as fs
from fastsim.errors import InputError
from fastsim.simulation.fifo_pool import MOST_GPUS, simulate_pool

GPUS = 64


def workload(rows: list[tuple[int, int | None, int]]) -> fs.Workload:
    """Pods of (gap in s, duration in s, whole GPUs)."""
    frame = pl.DataFrame(rows, schema={"gap": pl.Int64, "duration_s": pl.Float64, "num_gpu": pl.Int16}, orient="row")
    return fs.Workload.from_arrow(frame.select(
        pl.int_range(pl.len()).alias("pod_id"), pl.col("gap").cum_sum().cast(pl.Float64).alias("submit_s"),
        "duration_s", pl.lit(0, pl.Int64).alias("cpu_milli"), pl.lit(0, pl.Int64).alias("memory_mib"), "num_gpu",
        pl.when(pl.col("num_gpu") > 0).then(1000).otherwise(0).cast(pl.Int16).alias("gpu_milli"),
    ))  # fmt: skip


ROWS = st.lists(
    st.tuples(st.sampled_from((0, 0, 1, 5)), st.sampled_from((0, 1, 3, 40, 90, 7, None)),
              st.sampled_from((0, 1, 2, 8, 30, 64, 1, 1))),
    min_size=1, max_size=80,
)  # fmt: skip


@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.DurationMissing")
@given(ROWS)
@settings(max_examples=60, deadline=None)
def test_the_online_engine_starts_every_job_at_the_same_time(rows: list[tuple[int, int | None, int]]) -> None:
    pods = workload(rows)
    node = fs.Cluster.uniform(nodes=1, gpu="T4", gpus=GPUS)
    jobs = fs.simulate(node, pods, "best_fit", queue="fifo").jobs
    found = simulate_pool(pods, GPUS)
    assert found["start_s"].to_list() == jobs["start_s"].to_list()
    assert found["wait_s"].to_list() == jobs["wait_s"].to_list()
    finished = jobs["state"] == "finished"
    assert found["end_s"].filter(finished).to_list() == jobs["end_s"].filter(finished).to_list()


def test_any_table_with_three_columns() -> None:
    table = pa.table({"submit_s": [0, 0, 3], "duration_s": [5.0, 2.0, None], "num_gpu": [2, 1, 2]})
    frame = simulate_pool(table, 2)
    assert frame.to_dict(as_series=False) == {
        "start_s": [0.0, 5.0, 7.0], "end_s": [5.0, 7.0, None], "wait_s": [0.0, 5.0, 4.0]
    }  # fmt: skip
    for_ever = simulate_pool(pl.DataFrame(table).drop("duration_s"), 2)
    assert for_ever["start_s"].to_list() == [0.0, None, None]
    assert simulate_pool(table.slice(0, 0), 2).is_empty()


GOOD: dict[str, Any] = {"submit_s": [0.0, 1.0], "duration_s": [1.0, 1.0], "num_gpu": [1, 1]}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"num_gpu": [1, 5]}, "jobs: num_gpu, row 2: found 5, expected 0 to 4"),
        ({"num_gpu": [-1, 1]}, "jobs: num_gpu, row 1: found -1"),
        ({"num_gpu": [1, None]}, "jobs: num_gpu, row 2: found null"),
        ({"num_gpu": [0.5, 1.0]}, "jobs: num_gpu: found a column of double"),
        ({"num_gpu": ["1", "1"]}, "jobs: num_gpu: found a column of string"),
        ({"submit_s": [1.0, 0.0]}, "jobs: submit_s, row 2: found 0, expected a time not before"),
        ({"submit_s": [0.0, float("inf")]}, "jobs: submit_s, row 2: found inf"),
        ({"submit_s": [float("nan"), 0.0]}, "jobs: submit_s, row 1: found nan"),
        ({"duration_s": [1.0, -1.0]}, "jobs: duration_s, row 2: found -1"),
        ({"gpu_milli": [1000, 500]}, "jobs: gpu_milli, row 2: found 500, expected 1000"),
    ],
)
def test_wrong_jobs(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        simulate_pool(pa.table({**GOOD, **changes}), 4)


def test_wrong_pools_and_tables() -> None:
    for gpus in (0, -1, MOST_GPUS + 1, 2.5):
        with pytest.raises(InputError, match="gpus: found"):
            simulate_pool(pa.table(GOOD), gpus)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="jobs: found no column num_gpu"):
        simulate_pool(pa.table(GOOD).drop_columns(["num_gpu"]), 4)
    with pytest.raises(InputError, match="jobs: found list"):
        simulate_pool([1, 2], 4)


def test_frames_that_keep_their_clock_start_as_a_pool_does() -> None:
    frame = pl.DataFrame({"submit_s": [40.0, 45.0, 50.0], "num_gpu": [4, 2, 4], "duration_s": [10.0, 5.0, 3.0]})
    workload = fs.Workload.from_polars(frame, origin="keep")
    jobs = fs.simulate(fs.Cluster.uniform(nodes=1, gpu="A100", gpus=4), workload, queue="fifo").jobs.sort("pod_id")
    assert jobs["start_s"].to_list() == simulate_pool(frame, 4)["start_s"].to_list() == [40.0, 50.0, 55.0]

"""Twelve small runs worked out by hand: every engine that can play them comes to the same figures."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import fastsim as fs

# A node has one V100, 30 W idle and 300 W at work, and a CPU of 15 W while nobody asks for CPUs.
IDLE_W, BUSY_W = 45.0, 315.0

ENGINES: dict[str, dict[str, Any]] = {
    "pods": {"policy": "fgd", "queue": "fifo"},
    "shares": {"policy": "fifo", "round_s": 60.0},
    "shares by rate": {"policy": "fifo(mode=perf)", "round_s": 60.0},
    "ordered by arrival": {"policy": "fcfs", "round_s": 60.0},
    "ordered by service": {"policy": "srtf", "round_s": 60.0},
}

Jobs = list[tuple[float, int, float]]


def workload(jobs: Jobs, tenants: list[str] | None) -> fs.Workload:
    """Jobs by second of arrival, GPUs and seconds."""
    submit, gpus, seconds = (list(column) for column in zip(*jobs, strict=True))
    frame = pl.DataFrame({"pod_id": range(len(jobs)), "submit_s": submit, "num_gpu": gpus, "duration_s": seconds})
    zero = pl.lit(0, pl.Int64)
    frame = frame.with_columns(
        pl.col("submit_s", "duration_s").cast(pl.Float64), pl.col("num_gpu").cast(pl.Int16),
        cpu_milli=zero, memory_mib=zero, gpu_milli=pl.lit(1000, pl.Int16),
    )  # fmt: skip
    return fs.Workload.from_arrow(frame if tenants is None else frame.with_columns(tenant=pl.Series(tenants)))


def kwh(*watts_and_seconds: tuple[float, float]) -> float:
    return sum(watts * seconds for watts, seconds in watts_and_seconds) / 3.6e6


SCENARIOS: dict[str, tuple[str, Jobs, dict[str, Any], dict[str, Any]]] = {
    "one job": (
        "gavel:1:0:0", [(0, 1, 90)], {},
        {"makespan_s": 90, "mean_gpu_alloc_pct": 100, "gpu_hours": 90 / 3600, "energy_kwh": kwh((BUSY_W, 90)),
         "mean_power_w": BUSY_W, "jct_mean_s": 90, "wait_mean_s": 0, "slowdown_mean": 1, "active_gpus": 0,
         "pods_finished": 1, "mean_pods_pending": 0, "goodput_pct": 100, "restarts": 0, "preemptions": 0},
    ),
    "the same an hour later": (
        "gavel:1:0:0", [(3600, 1, 90)], {},
        {"makespan_s": 90, "mean_gpu_alloc_pct": 100, "gpu_hours": 90 / 3600, "energy_kwh": kwh((BUSY_W, 90)),
         "mean_power_w": BUSY_W, "jct_mean_s": 90, "wait_mean_s": 0},
    ),
    "an idle node beside it": (
        "gavel:2:0:0", [(0, 1, 90)], {},
        {"makespan_s": 90, "mean_gpu_alloc_pct": 50, "gpu_hours": 90 / 3600, "mean_power_w": BUSY_W + IDLE_W,
         "energy_kwh": kwh((BUSY_W + IDLE_W, 90))},
    ),
    "idle time between two": (
        "gavel:1:0:0", [(0, 1, 90), (9960, 1, 90)], {},
        {"makespan_s": 10_050, "mean_gpu_alloc_pct": 100 * 180 / 10_050, "gpu_hours": 180 / 3600,
         "energy_kwh": kwh((BUSY_W, 180), (IDLE_W, 9870)), "wait_mean_s": 0, "jct_mean_s": 90, "active_gpus": 0,
         "eopc_w": IDLE_W, "restarts": 0},
    ),
    "two at once on two GPUs": (
        "gavel:2:0:0", [(0, 1, 60), (0, 1, 180)], {},
        {"makespan_s": 180, "mean_gpu_alloc_pct": 100 * 240 / 360, "gpu_hours": 240 / 3600,
         "energy_kwh": kwh((2 * BUSY_W, 60), (BUSY_W + IDLE_W, 120)), "jct_mean_s": 120, "jct_p50_s": 120,
         "jct_max_s": 180},
    ),
    "one after the other on one": (
        "gavel:1:0:0", [(0, 1, 120), (0, 1, 120)], {},
        {"makespan_s": 240, "mean_gpu_alloc_pct": 100, "wait_mean_s": 60, "wait_max_s": 120, "jct_mean_s": 180,
         "mean_pods_pending": 0.5, "slowdown_mean": 1.5, "slowdown_p99": 1.99, "energy_kwh": kwh((BUSY_W, 240)),
         "restarts": 0, "paused_mean_s": 0},
    ),
    "a gang of two": (
        "gavel:2:0:0?per_server=2:1:1", [(0, 2, 100), (0, 2, 20)], {},
        {"gpu_hours": 240 / 3600, "goodput_pct": 100, "pods_finished": 2, "restarts": 0},
    ),
    "one comes while another is at work": (
        "gavel:2:0:0", [(0, 1, 240), (120, 1, 60)], {},
        {"makespan_s": 240, "mean_gpu_alloc_pct": 62.5, "wait_mean_s": 0, "jct_mean_s": 150,
         "energy_kwh": kwh((BUSY_W, 240), (BUSY_W, 60), (IDLE_W, 180))},
    ),
    "cut off at work": (
        "gavel:1:0:0", [(0, 1, 600)], {"until_s": 300.0},
        {"makespan_s": 300, "pods_running": 1, "pods_finished": 0, "active_gpus": 1, "gpu_hours": 300 / 3600,
         "mean_gpu_alloc_pct": 100, "energy_kwh": kwh((BUSY_W, 300)), "jct_mean_s": None, "slowdown_mean": None,
         "paused_mean_s": None, "eopc_w": BUSY_W},
    ),
    "cut off while one waits": (
        "gavel:1:0:0", [(0, 1, 600), (60, 1, 60)], {"until_s": 300.0},
        {"pods_running": 1, "makespan_s": 300, "gpu_hours": 300 / 3600, "mean_gpu_alloc_pct": 100},
    ),
    "tenants": (
        "gavel:2:0:0", [(0, 1, 60), (0, 1, 180)], {"tenants": ["a", "b"]},
        {"tenant_jain": 240**2 / (2 * (60**2 + 180**2)), "tenant_gini": 0.25, "gpu_hours": 240 / 3600},
    ),
    "nothing to compare": (
        "gavel:2:0:0", [(0, 1, 60), (0, 1, 180)], {},
        {"tenant_jain": None, "tenant_gini": None, "cost": None, "pods_unplaced": 0, "lost_work_s": 0},
    ),
}  # fmt: skip
"""Cluster, jobs, options, and figures of the summary."""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_engine_comes_to_the_figures_worked_out_by_hand(name: str, engine: str) -> None:
    cluster, jobs, options, expected = SCENARIOS[name]
    given: dict[str, Any] = ENGINES[engine] | {key: value for key, value in options.items() if key == "until_s"}
    row = fs.simulate(cluster, workload(jobs, options.get("tenants")), **given).summary.row(0, named=True)
    found = {figure: row[figure] for figure in expected}
    assert found == {f: value if value is None else pytest.approx(value, rel=1e-9) for f, value in expected.items()}


def test_there_are_twelve() -> None:
    assert len(SCENARIOS) == 12

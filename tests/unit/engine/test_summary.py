"""The summary row by hand: what is counted, what is a mean, and what is null because it is not known."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.engine.online.options import OnlineOptions
from fastsim.engine.online.run import run_online
from fastsim.engine.summary import Waits, frag_milli, refuse_impossible, row_frame, summary_frame
from fastsim.engine.tables import OUTCOME, ROW
from fastsim.engine.totals.job_totals import FIGURES, JobTotals
from fastsim.errors import ResultError
from fastsim.workload.typical_pods import TypicalPods
from fastsim_ext.online.loop import AREAS
from tests.unit.engine.online.test_online import FGD, pods

NO_AREA = dict.fromkeys((*AREAS, "seconds"), 0.0)


def row(**cells: float) -> Any:
    made = np.zeros((), ROW)
    for name, value in cells.items():
        made[name] = value
    return made[()]


def summed(final: Any, before: Any = None, areas: Any = None, seconds: float = 0.0, **rest: Any) -> dict[str, Any]:
    out, kept = rest.get("out", Waits()), rest.get("kept", (1, 1))
    before = row() if before is None else before
    return summary_frame(final, before, areas or NO_AREA, seconds, kept, out).row(0, named=True)


def test_what_is_not_known_is_null_among_floats() -> None:
    frame = summary_frame(row(), row(), NO_AREA, 0.0, (1, 1), Waits())
    known = frame.row(0, named=True)
    unknown = {name for name, value in known.items() if value is None}
    figures = ("mean_s", "p50_s", "p95_s", "p99_s", "max_s")
    assert unknown == {
        "gpu_alloc_pct", "cpu_alloc_pct", "memory_alloc_pct", "frag_pct", "frag_ratio_pct", "grar",
        "at_capacity_gpu_alloc_pct", "at_capacity_frag_pct", "at_capacity_grar",
        "mean_gpu_alloc_pct", "mean_cpu_alloc_pct", "mean_frag_milli", "mean_power_w", "mean_pods_pending",
        "energy_kwh", "co2_kg", "preemptions", "lost_work_s",
        *(f"wait_{f}" for f in figures), *(f"jct_{f}" for f in figures),
        *FIGURES,
    }  # fmt: skip
    whole = {"preemptions", "restarts"}
    assert {frame.schema[name] for name in unknown - whole} == {pl.Float64}
    assert {frame.schema[name] for name in whole} == {pl.Int64}
    assert known["pods"] == 0 and frame.schema["pods"] == pl.Int64


def test_totals_of_jobs_follow_the_makespan() -> None:
    frame = summary_frame(row(), row(), NO_AREA, 7.0, (1, 1), Waits(), JobTotals(restarts=3, gpu_s=7200.0))
    assert tuple(frame.columns[frame.columns.index("makespan_s") + 1 :]) == FIGURES
    assert (frame["restarts"].item(), frame["gpu_hours"].item(), frame["cost"].item()) == (3, 2.0, None)


def test_every_pod_that_arrived_is_in_one_count() -> None:
    known = summed(row(running=1, pending=2, finished=4, unplaced=8, lost=16, unplaced_gpu=500, arrived_gpu=900))
    assert known["pods"] == 31 and known["pods_lost"] == 16
    assert (known["failed_gpu_milli"], known["arrived_gpu_milli"]) == (500, 900)


def test_the_state_at_the_end_is_in_per_cent_of_what_is_present() -> None:
    final = row(gpu_alloc=1000, gpu_cap=4000, cpu_alloc=1, cpu_cap=8, mem_alloc=3, mem_cap=4, arrived_gpu=2000,
                q1_lack_both=900, q3_satisfied=5000, no_access=600, cpu_mw=1500, gpu_mw=1)  # fmt: skip
    known = summed(final, kept=(5, 5))
    assert (known["gpu_alloc_pct"], known["cpu_alloc_pct"], known["memory_alloc_pct"]) == (25.0, 12.5, 75.0)
    assert known["frag_milli"] == frag_milli(final, 5) == 300.0
    assert (known["frag_pct"], known["frag_ratio_pct"]) == (7.5, 10.0)  # of all, and of what is free
    assert (known["grar"], known["eopc_w"]) == (0.5, 1.501)


def test_at_capacity_is_another_row_with_the_typical_pods_of_then() -> None:
    before = row(gpu_alloc=3000, gpu_cap=4000, arrived_gpu=4000, q2_lack_gpu=800, gpu_mw=2000)
    known = summed(row(gpu_cap=4000, q2_lack_gpu=800), before, kept=(8, 2))
    assert (known["at_capacity_gpu_alloc_pct"], known["at_capacity_grar"]) == (75.0, 0.75)
    assert (known["at_capacity_frag_pct"], known["frag_pct"]) == (10.0, 2.5)
    assert known["at_capacity_eopc_w"] == 2.0


def test_means_are_areas_over_the_seconds_between_first_and_last_event() -> None:
    areas = NO_AREA | {
        "seconds": 4.0,
        "gpu_milli_alloc": 8000.0,
        "gpu_milli_capacity": 16_000.0,
        "frag": 60.0,
        "power_mw": 7.2e9,
        "pods_pending": 6.0,
    }
    known = summed(row(), areas=areas, seconds=3.0, kept=(99, 5))
    assert (known["mean_gpu_alloc_pct"], known["mean_frag_milli"], known["mean_pods_pending"]) == (50.0, 3.0, 1.5)
    assert (known["mean_power_w"], known["energy_kwh"], known["makespan_s"]) == (1.8e6, 2.0, 3.0)
    assert known["mean_cpu_alloc_pct"] is None  # no CPU was ever present


def test_waits_are_of_first_starts_and_completions_of_finished_pods() -> None:
    nan = float("nan")
    rows = [
        (0, 70, 1, 0, 4, 1, 0, 0.0, 2.0, 2.0, 4.0, 1, 0.5, 3.0, 0.0, 2.0, 0.5, nan),  # preempted at 4 s
        (0, 70, 1, 1, 0, 3, 0, 0.0, 2.0, 5.0, 9.0, 1, 0.5, 3.0, 1.0, 6.0, 0.5, nan),  # its second attempt waits no more
        (1, 71, 0, 0, 1, 3, 0, 0.0, 4.0, 4.0, nan, 2, 0.25, nan, 0.0, 1.0, 0.25, nan),  # still running
        (2, 72, -1, 0, 12, 3, 0, 0.0, nan, nan, nan, 0, 0.0, 1.0, nan, 0.0, 0.0, nan),  # never placed
        (3, 73, 0, 0, 0, 3, 0, 0.0, 3.0, 3.0, 3.0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, nan),  # nothing to do: no slowdown
    ]
    waits = Waits()
    waits.add(np.array(rows, OUTCOME))
    known = summed(row(), out=waits)
    assert (known["wait_mean_s"], known["wait_p50_s"], known["wait_max_s"]) == (3.0, 3.0, 4.0)
    assert (known["jct_mean_s"], known["jct_max_s"]) == (6.0, 9.0)
    assert (known["preemptions"], known["lost_work_s"]) == (3, 0.75)
    figures = waits.totals(7.5).figures()
    assert (figures["restarts"], figures["paused_mean_s"], figures["slowdown_mean"]) == (1, 0.5, 3.0)
    assert (figures["gpu_hours"], figures["goodput_pct"]) == (7.5 / 3600, 90.0)


def test_a_retarget_after_the_run_does_not_rewrite_its_means() -> None:
    cluster = Cluster.uniform(nodes=1, gpu="T4", gpus=1, cpu_milli=8000, memory_mib=0)
    load = pods({"gpu_milli": 400, "duration_s": 2.0}, {"gpu_milli": 100, "submit_s": 2.0, "duration_s": 2.0})
    whole = TypicalPods((1000,), (1000,), (1,), ((),), (2,), (1.0,))
    twin = TypicalPods((1000,), (1000,), (1,), ((),), (10,), (1.0,))  # says the same with other counts
    alone = run_online(cluster, load, FGD, whole, OnlineOptions()).summary
    after = run_online(cluster, load, FGD, whole, OnlineOptions(retarget=twin)).summary
    assert alone["mean_frag_milli"].item() == (600 * 2 + 900 * 2) / 4
    assert after.equals(alone)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -6.2e15, -1])
def test_a_figure_that_cannot_be_is_an_error_and_no_result(value: float) -> None:
    refuse_impossible(row_frame({"pods": 3, "mean_power_w": None, "energy_kwh": 0.0, "tenant_gini": -1e-17}))
    with pytest.raises(ResultError, match=r"summary: mean_power_w: found .*, expected a finite number of 0 or more"):
        refuse_impossible(row_frame({"pods": 3, "mean_power_w": value}))

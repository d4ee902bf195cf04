"""Overloaded clusters: pods of 1.5 times the capacity, so that the waiting line grows with the run."""

from __future__ import annotations

import pytest

import fastsim as fs
from bench.conftest import Timed

PODS, NODES, LOAD = 10_000, 200, 1.5
US = 10.0
"""Most microseconds of a pod on a machine whose calibration loop takes 50 ms."""

pytestmark = pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.RunWarning")


@pytest.mark.parametrize("times", [1, 2, 4])
@pytest.mark.parametrize("queue", ["fifo", "fifo_skip", "priority_skip", "easy"])
def bench_retries_of_a_growing_line(timed: Timed, part: int, queue: str, times: int) -> None:
    """A pod costs as much in a line of four times the length, also where every pod may overtake or backfill."""
    pods = times * PODS // part
    workload, cluster = f"synth:openb?pods={pods}&seed=1&load={LOAD}", f"openb:{NODES}"
    timed(
        lambda: fs.simulate(cluster, workload, policy="best_fit", queue=queue, record="summary"),
        items=pods, budget=US * times * PODS / 50_000, rounds=2,
    )  # fmt: skip

"""The strict-FIFO pool every simulator can express: 1,024 GPUs, load 0.9, and two others at the same work."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import polars as pl
import pytest

from bench.conftest import Timed
from fastsim.simulation.fifo_pool import simulate_pool
from fastsim_ext.online.fifo_pool import fifo_starts

GPUS, LOAD = 1024, 0.9
CHECKS = {100_000: (340_709, 4.46), 1_000_000: (2_727_620, 2.43)}
"""For a number of jobs: end of the last one in s, and mean wait in s to two decimals."""

Columns = tuple[Any, Any, Any]
"""Arrivals in s, durations in s, GPUs; all of them whole numbers."""


def pool_jobs(jobs: int) -> Columns:
    """Poisson arrivals, log-normal durations of a second or more and 1, 2, 4 or 8 GPUs, drawn with seed 1."""
    rng = np.random.default_rng(1)
    gpus = rng.choice(np.array([1, 2, 4, 8], np.int32), jobs, p=[0.7, 0.15, 0.1, 0.05])
    duration = np.maximum(1.0, np.rint(rng.lognormal(6.5, 1.2, jobs)))
    gap_s = (duration * gpus).mean() / (LOAD * GPUS)  # the drawn work itself, so that the load is 0.9 exactly
    return np.floor(np.cumsum(rng.exponential(gap_s, jobs))), duration, gpus


def compiled(columns: Columns) -> Any:
    """Starts by the compiled pool."""
    starts = np.empty(len(columns[0]))
    fifo_starts(*columns, GPUS, starts)
    return starts


def by_heapq(columns: Columns) -> Any:
    """Starts by a loop that a careful Python programmer would write, without a framework."""
    held: list[tuple[int, int]] = []
    starts, free, now = [], GPUS, 0
    for submit, duration, gpus in zip(*columns, strict=True):
        now = max(now, submit)
        while held and held[0][0] <= now:
            free += heapq.heappop(held)[1]
        while free < gpus:
            now, back = heapq.heappop(held)
            free += back
        starts.append(now)
        free -= gpus
        heapq.heappush(held, (now + duration, gpus))
    return starts


def by_simpy(columns: Columns) -> Any:
    """Starts by SimPy's own container, one process for each job."""
    simpy = pytest.importorskip("simpy", reason="the comparison needs SimPy (the bench extra)")
    env = simpy.Environment()
    pool = simpy.Container(env, GPUS, init=GPUS)
    starts = [0] * len(columns[0])

    def job(number: int, duration: int, gpus: int) -> Generator[Any, Any, None]:
        yield pool.get(gpus)
        starts[number] = env.now
        yield env.timeout(duration)
        yield pool.put(gpus)

    def arrivals() -> Generator[Any, Any, None]:
        for number, (submit, duration, gpus) in enumerate(zip(*columns, strict=True)):
            if submit > env.now:
                yield env.timeout(submit - env.now)
            env.process(job(number, duration, gpus))

    env.process(arrivals())
    env.run()
    return starts


def assert_known(columns: Columns, starts: Any) -> None:
    """Every program that does this work gets these figures."""
    submit, duration, _ = (np.asarray(column) for column in columns)
    found = int((np.asarray(starts) + duration).max()), round(float((np.asarray(starts) - submit).mean()), 2)
    assert found == CHECKS[len(submit)]


def bench_pool(timed: Timed) -> None:
    """A million jobs, the compiled loop alone."""
    columns = pool_jobs(1_000_000)
    starts = timed(lambda: compiled(columns), items=1_000_000, budget=7.0, rounds=5)
    assert_known(columns, starts)


def bench_pool_frame(timed: Timed) -> None:
    """A million jobs from a frame to a frame, checks included."""
    columns = pool_jobs(1_000_000)
    frame = pl.DataFrame(dict(zip(("submit_s", "duration_s", "num_gpu"), columns, strict=True)))
    found = timed(lambda: simulate_pool(frame, GPUS), items=1_000_000, budget=9.0)
    assert_known(columns, found["start_s"].to_numpy())


@pytest.mark.parametrize(("peer", "least"), [(by_heapq, 8.0), (by_simpy, 80.0)], ids=["heapq", "simpy"])
def bench_peer(peer: Callable[[Columns], Any], least: float, timed: Timed) -> None:
    """A hundred thousand jobs by other means; the compiled pool has to be ``least`` times as fast."""
    columns = pool_jobs(100_000)
    whole = tuple(column.astype(int).tolist() for column in columns)
    starts = timed(
        lambda: peer(whole), items=100_000, rounds=1, than=lambda: compiled(columns), least=least
    )  # fmt: skip
    assert_known(columns, starts)

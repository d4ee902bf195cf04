"""One way to time everything here: seconds, a rate, and the ratio to a loop that every machine can run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import fastsim as fs

PODS = 8152
"""Length of the openb pod list."""
LOAD = 1.3
"""GPU demand offered, relative to the cluster's GPUs."""

Timed = Callable[..., Any]


def calibration_loop() -> int:
    """A fixed amount of plain integer work."""
    total = 0
    for i in range(1_000_000):
        total += i & 7
    return total


clock = time.perf_counter


def no_clock() -> float:
    """The clock where benchmarks are only tried: there a busy machine must not decide."""
    raise AssertionError("timed under --benchmark-disable")


def shortest_s(work: Callable[[], Any], rounds: int) -> float:
    """Seconds of some work, best of several rounds."""
    best = float("inf")
    for _ in range(rounds):
        start = clock()
        work()
        best = min(best, clock() - start)
    return best


@pytest.fixture(autouse=True)
def clock_of_benchmarks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No clock under --benchmark-disable."""
    if request.config.getoption("benchmark_disable"):
        monkeypatch.setitem(globals(), "clock", no_clock)


@pytest.fixture
def part(request: pytest.FixtureRequest) -> int:
    """Into how many parts long work is divided, of which one is done: 8 under --benchmark-disable, else 1."""
    return 8 if request.config.getoption("benchmark_disable") else 1


@pytest.fixture
def timed(benchmark: BenchmarkFixture) -> Timed:
    """Run work several times; ``items`` is what one run does, ``budget`` the ratio it may not exceed.

    The shortest round counts: other processes can only add to it. The loop is timed before and after, because the
    machine's speed drifts. Other people's programs have no budget: they are
    timed against ours, ``than``, which has to be ``least`` times as fast.
    """

    pedantic: Callable[..., Any] = benchmark.pedantic

    def run(
        work: Callable[[], Any], *, items: int, budget: float | None = None, rounds: int = 3,
        than: Callable[[], Any] | None = None, least: float = 0.0,
    ) -> Any:  # fmt: skip
        calibration_s = 0.0 if benchmark.disabled else shortest_s(calibration_loop, 3)
        answer = pedantic(work, rounds=rounds, iterations=1, warmup_rounds=0)
        if benchmark.stats is None:  # --benchmark-disable: only whether it still runs
            return answer
        calibration_s = min(calibration_s, shortest_s(calibration_loop, 3))
        seconds = benchmark.stats.stats.min
        ratio = seconds / calibration_s
        figures = {"items": items, "per_s": round(items / seconds), "calibration_s": round(calibration_s, 5)}
        benchmark.extra_info.update(figures, ratio=float(f"{ratio:.4g}"), budget=budget)
        if than is not None:
            times = seconds / shortest_s(than, 15)
            benchmark.extra_info["ours_is_times_as_fast"] = round(times, 1)
            assert times >= least, f"ours is {times:.1f} times as fast, expected {least:g}"
        assert budget is None or ratio <= budget, f"{ratio:.2f} calibration loops, budget {budget}"
        return answer

    return run


@pytest.fixture(scope="session")
def cluster() -> fs.Cluster:
    """The 1,213 GPU nodes of openb."""
    return fs.Cluster.preset("openb")


@pytest.fixture(scope="session")
def pods() -> fs.Workload:
    """Generated pods, as many as openb lists."""
    return fs.Workload.from_arrow(fs.Workload.synth("openb", pods=PODS, seed=1).table())


@pytest.fixture(scope="session")
def offered(pods: fs.Workload, cluster: fs.Cluster) -> fs.Workload:
    """The same pods under the protocol of the FGD paper: shuffled, tuned to 1.3 times the GPUs, no departures."""
    return fs.Workload.from_arrow(pods.shuffled(1).tune(LOAD, cluster.total_gpu_milli, seed=1).table())

"""Sweeps side by side: two processes and two threads against this process alone, on the same runs of a second or more.

Efficiency is serial seconds over twice the parallel ones. What it can lose is written beside it: seconds of CPU that
workers used beyond the serial run (starting, reading the trace once each, getting in each other's way).
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from fastsim.sweep import Sweep

WORKERS, RUNS = 2, 24
PODS = 400_000
LEAST = 0.9


def sweep(pods: int, runs: int) -> Sweep:
    """Runs of FGD on the same pods, which come and go."""
    return Sweep(
        {"cluster": "openb", "workload": f"synth:openb?pods={pods}&seed=1", "policy": ["fgd", "best_fit"],
         "seed": list(range(runs // 2)), "record": "summary"}
    )  # fmt: skip


def seconds(runs: Sweep, on: str, workers: int) -> tuple[float, float]:
    """Wall and CPU seconds of a sweep, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        began_s, before_s = time.perf_counter(), _cpu_s()
        runs.run(Path(folder) / "runs", workers=workers, on=on)
        return time.perf_counter() - began_s, _cpu_s() - before_s


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@pytest.mark.parametrize("on", ["processes", "threads"])
def bench_two_workers(benchmark: BenchmarkFixture, on: str) -> None:
    """The same sweep with two workers and with none."""
    if benchmark.disabled:
        benchmark(seconds, sweep(100, 2), on, WORKERS)
        return
    runs = sweep(PODS, RUNS)
    seconds(sweep(100, 2), "serial", 1)  # what this process loads, it has loaded
    alone_s, alone_cpu_s = min(seconds(runs, "serial", 1) for _ in range(2))
    found = list[tuple[float, float]]()
    pedantic: Callable[..., Any] = benchmark.pedantic
    pedantic(lambda: found.append(seconds(runs, on, WORKERS)), rounds=2, iterations=1)
    wall_s, cpu_s = min(found)
    efficiency = alone_s / (WORKERS * wall_s)
    told = {"run_s": round(alone_s / RUNS, 2), "efficiency": round(efficiency, 3),
            "more_cpu_s": round(cpu_s - alone_cpu_s, 2)}  # fmt: skip
    benchmark.extra_info.update(told)
    print(f"\n{on}: {RUNS} runs of {alone_s / RUNS:.2f} s, {wall_s:.1f} s instead of {alone_s:.1f} s: efficiency "
          f"{efficiency:.1%}, {cpu_s - alone_cpu_s:+.1f} s of CPU")  # fmt: skip
    assert efficiency >= LEAST, f"efficiency {efficiency:.1%}, expected {LEAST:.0%}"

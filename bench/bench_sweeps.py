"""Sweeps side by side: two processes and two threads against this process alone, on the same runs of a second or more.

Efficiency is serial seconds over twice the parallel ones. What it can lose is written beside it: seconds of CPU that
workers used beyond the serial run (starting, reading the trace once each, getting in each other's way), and seconds in
which one of the two had nothing to do (starting, the end of the sweep, or somebody else on the machine).

How many pods a run of a second or more has, this machine says: a few short runs are timed first. Workers find the
bytecode of what they load, as those of an installed package do, also where Python is set to write none.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from fastsim.experiments.sweep.sweep import Sweep

WORKERS, RUNS, ROUNDS = 2, 24, 2
RUN_S = 1.2
"""CPU seconds a run should take: its size is a guess, and no run should take less than one."""
PROBE_PODS, PROBE_RUNS = 100_000, 4
LEAST = 0.9
ROOT = Path(__file__).resolve().parents[1]
LOADING = "import sys, bench.bench_sweeps as b; b.spent(b.sweep(100, 4), sys.argv[1], b.WORKERS)"


class Spent(NamedTuple):
    """Wall and CPU seconds of a sweep."""

    wall_s: float
    cpu_s: float


def sweep(pods: int, runs: int) -> Sweep:
    """Runs of FGD and best fit on the same pods, which come and go."""
    return Sweep(
        {"cluster": "openb", "workload": f"synth:openb?pods={pods}&seed=1", "policy": ["fgd", "best_fit"],
         "seed": list(range(runs // 2)), "record": "summary"}
    )  # fmt: skip


def spent(runs: Sweep, on: str, workers: int) -> Spent:
    """Wall and CPU seconds of a sweep in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        began_s, before_s = time.perf_counter(), _cpu_s()
        runs.run(Path(folder) / "runs", workers=workers, on=on)
        return Spent(time.perf_counter() - began_s, _cpu_s() - before_s)


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@pytest.fixture(scope="module")
def pods() -> int:
    """Pods of a run of ``RUN_S``; what this process loads for a sweep is loaded then."""
    runs = sweep(PROBE_PODS, PROBE_RUNS)
    one_s = min(spent(runs, "serial", 1).cpu_s for _ in range(4)) / PROBE_RUNS
    return 10_000 * round(PROBE_PODS * RUN_S / one_s / 10_000)


@pytest.fixture
def with_bytecode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytecode of all that a worker loads, in a folder of its own."""
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path))
    writes = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for on in ("serial", "processes"):
        subprocess.run([sys.executable, "-c", LOADING, on], cwd=ROOT, env=writes, check=True)


@pytest.mark.parametrize("on", ["processes", "threads"])
def bench_two_workers(benchmark: BenchmarkFixture, request: pytest.FixtureRequest, on: str) -> None:
    """The same sweep with two workers and with none, in turns."""
    if benchmark.disabled:
        benchmark(spent, sweep(100, 2), on, WORKERS)
        return
    request.getfixturevalue("with_bytecode")
    runs = sweep(request.getfixturevalue("pods"), RUNS)
    serial, parallel = list[Spent](), list[Spent]()
    pedantic: Callable[..., Any] = benchmark.pedantic
    pedantic(
        lambda: parallel.append(spent(runs, on, WORKERS)), setup=lambda: serial.append(spent(runs, "serial", 1)),
        rounds=ROUNDS,
    )  # fmt: skip
    alone, beside = min(serial), min(parallel)
    efficiency = alone.wall_s / (WORKERS * beside.wall_s)
    figures = {"run_s": round(alone.wall_s / RUNS, 2), "efficiency": round(efficiency, 3),
            "more_cpu_s": round(beside.cpu_s - alone.cpu_s, 2),
            "idle_s": round(WORKERS * beside.wall_s - beside.cpu_s, 2)}  # fmt: skip
    benchmark.extra_info.update(figures)
    print(f"\n{on}: {RUNS} runs of {figures['run_s']} s, {beside.wall_s:.1f} s instead of {alone.wall_s:.1f} s: "
          f"efficiency {efficiency:.1%}, {figures['more_cpu_s']:+} s of CPU, {figures['idle_s']} s idle")  # fmt: skip
    assert efficiency >= LEAST, f"efficiency {efficiency:.1%}, expected {LEAST:.0%}"

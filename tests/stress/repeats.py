"""Many small runs in one process: its memory stays flat, and runs in threads are those of one thread.

Figures of memory are read from ``/proc``, so this needs Linux. A trial takes minutes, as it is of every engine.
"""

from __future__ import annotations

import gc
import os
import random
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import polars as pl

import fastsim as fs
from tests.engines import RUNS
from tests.stress.ground import Ground
from tests.stress.judge import gained_kib, wrong_growth, wrong_tables

_JOBS = "synth:gavel?jobs=8&rate_per_hour=2&priorities=true&seed={seed}"
_SIA = "synth:sia?jobs=4&seed={seed}"
ENGINES: dict[str, dict[str, Any]] = {
    "pods": {**RUNS["pods"], "workload": "synth:openb?pods=60&seed={seed}"},
    "shares": {**RUNS["shares"], "workload": _JOBS},
    "orders": {**RUNS["orders"], "workload": _JOBS},
    # Decisions of pollux take long: a few of them are enough.
    "adaptive, pollux": {**RUNS["adaptive"], "workload": _SIA, "until_s": 240.0},
    "adaptive, sia": {**RUNS["adaptive"], "workload": _SIA, "policy": "sia", "until_s": 600.0},
    "monitored": {**RUNS["monitored"], "workload": "synth:detectors?jobs=4&over={seed}"},
}
"""Small runs by engine, of another workload for each seed."""
REPEATS, EVERY = 2000, 20
"""Runs of a trial of memory, and how many of them are between two readings."""
THREADS, EACH = 8, 200
"""Threads of a trial, and the runs of each of them."""


def memory(_: Ground, draw: random.Random) -> tuple[str, str]:
    """Many runs of each engine, in a fresh process; the trial, and its violations (empty: none)."""
    first, wrong = draw.randrange(1, 100_000), []
    for engine in ENGINES:
        readings = _in_a_process(resident_kib, engine, first)
        print(f"{engine}: {REPEATS:,} runs, {gained_kib(readings):+,.0f} KiB over the second half", flush=True)
        wrong.append(wrong_growth(engine, readings))
    return f"seeds from {first} on", "; ".join(filter(None, wrong))


def threads(_: Ground, draw: random.Random) -> tuple[str, str]:
    """The same runs one after the other and in each of eight threads; the trial, and its violations (empty: none)."""
    first, wrong = draw.randrange(1, 100_000), []
    for engine in ENGINES:
        wrong.append(_in_a_process(compared, engine, first))
        print(f"{engine}: {THREADS} threads of {EACH} runs, {wrong[-1] or 'all tables equal'}", flush=True)
    return f"seeds from {first} on", "; ".join(filter(None, wrong))


def resident_kib(engine: str, first: int, repeats: int = REPEATS) -> list[int]:
    """Memory of this process between the runs, KiB."""
    page_kib = os.sysconf("SC_PAGE_SIZE") // 1024
    readings = []
    for number in range(repeats):
        tables(engine, first + number)
        if number % EVERY == EVERY - 1:
            gc.collect()
            readings.append(int(Path("/proc/self/statm").read_text().split()[1]) * page_kib)
    return readings


def compared(engine: str, first: int, threads: int = THREADS, each: int = EACH) -> str:
    """Violation by runs in threads against the same runs before them; empty if there is none."""
    seeds = range(first, first + each)
    expected = {seed: tables(engine, seed) for seed in seeds}

    def played(number: int) -> dict[int, Mapping[str, str]]:
        order = random.Random(number).sample(seeds, each)  # so that different runs meet
        return {seed: tables(engine, seed) for seed in order}

    with ThreadPoolExecutor(threads) as pool:
        return wrong_tables(engine, expected, list(pool.map(played, range(threads))))


def tables(engine: str, seed: int) -> dict[str, str]:
    """Checksums of the tables of a run by their names."""
    scenario = ENGINES[engine]
    result = fs.simulate(**{**scenario, "workload": scenario["workload"].format(seed=seed)}, seed=seed)
    return {name: _checksum(result.frames[name]) for name in result.frames}


def _checksum(frame: pl.DataFrame) -> str:
    total = sha256(repr(frame.schema).encode())
    total.update(frame.rechunk().write_ipc(None, compat_level=pl.CompatLevel.oldest()).getbuffer())
    return total.hexdigest()


def _in_a_process(work: Callable[..., Any], *given: Any) -> Any:
    """What this function answers in a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=warnings.simplefilter, initargs=("ignore",)) as one:
        return one.submit(work, *given).result()

"""Executors: order, failures, and the clean end of workers."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from fastsim.errors import FastsimError, InputError, ScenarioError
from fastsim.executors import Processes, Serial, executor


def slow_square(number: int) -> tuple[int, int]:
    """The square, later for smaller numbers, and who computed it."""
    time.sleep(0.05 if number == 0 else 0.0)
    return number * number, os.getpid()


def fail_at_two(number: int) -> int:
    """Fails for one item."""
    if number == 2:
        raise InputError("pods.csv:3: gpu_milli", "-1", "1 to 1000")
    return number


def die(number: int) -> int:
    """Ends its process without a word."""
    os._exit(number)


@pytest.fixture(scope="module")
def pool() -> Any:
    with Processes(2) as opened:
        yield opened


def test_results_come_in_order_from_other_processes(pool: Processes) -> None:
    answers = list(pool.map(slow_square, range(8)))
    assert [square for square, _ in answers] == [n * n for n in range(8)]
    assert os.getpid() not in {pid for _, pid in answers}


def test_serial_is_lazy_and_in_order() -> None:
    with Serial() as serial:
        answers = serial.map(fail_at_two, [0, 1, 2])
        assert [next(answers), next(answers)] == [0, 1]


def test_an_error_of_a_worker_keeps_its_class_and_text(pool: Processes) -> None:
    answers = pool.map(fail_at_two, range(4))
    assert [next(answers), next(answers)] == [0, 1]
    with pytest.raises(InputError, match=r"pods.csv:3: gpu_milli: found -1, expected 1 to 1000"):
        next(answers)


def test_a_dead_worker_is_one_clear_error() -> None:
    with pytest.raises(FastsimError, match="worker process died"), Processes(2) as pool:
        list(pool.map(die, [1, 1]))


def test_the_number_of_workers_decides() -> None:
    assert isinstance(executor(1), Serial) and isinstance(executor(4, items=1), Serial)
    spread = executor(4, items=3)
    assert isinstance(spread, Processes) and spread.workers == 3
    wrong: Any
    for wrong in (0, -1, True, 1.5, "2", 5000):
        with pytest.raises(ScenarioError, match="workers"):
            executor(wrong)


def test_tasks_need_an_open_executor() -> None:
    with pytest.raises(FastsimError, match="with"):
        next(Processes(2).map(fail_at_two, [0]))


def test_leaving_early_ends_the_workers_at_once(tmp_path: Path) -> None:
    script = tmp_path / "early.py"
    script.write_text(
        textwrap.dedent("""
        import multiprocessing, time
        from fastsim.executors import Processes

        if __name__ == "__main__":
            start = time.monotonic()
            try:
                with Processes(2) as pool:
                    for _ in pool.map(time.sleep, [0.0, 60.0, 60.0]):
                        raise KeyboardInterrupt
            except KeyboardInterrupt:
                pass
            print(time.monotonic() - start < 30, len(multiprocessing.active_children()))
        """)
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["True", "0"] and done.stderr == ""

"""Worker processes: order, failures, deaths, and their clean end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

from fastsim.errors import FastsimError, InputError
from fastsim.experiments.executors.executor import ATTEMPTS, OutOfTime, WorkerDied
from fastsim.experiments.executors.processes import Processes
from fastsim.simulation.run_warnings import PodTooLarge
from tests.unit.experiments.executors.test_executor import fail_at_two

FOR_EVER_S = 1e6
"""Seconds of a task that never ends."""


def slow_square(number: int) -> tuple[int, int]:
    """The square, later for smaller numbers, and the process that computed it."""
    time.sleep(0.05 if number == 0 else 0.0)
    return number * number, os.getpid()


def die(number: int) -> int:
    """Ends its process without a word."""
    os._exit(number)


def die_once(path: str) -> str:
    """Is killed when it is tried for the first time."""
    flag = Path(path)
    if flag.suffix == ".dies" and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return flag.name


class Odd(RuntimeWarning):
    """Known here only."""


def warn_twice(number: int) -> int:
    """Says the same two times, and something that only this file knows."""
    for category in (PodTooLarge, PodTooLarge, Odd):
        warnings.warn("too large", category, stacklevel=1)
    return number


def unreadable(number: int) -> Any:
    """An answer that no other process can have."""
    return lambda: number


class Picky(Exception):
    """Cannot be made again from its text."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__("picky")


def raise_picky(number: int) -> None:
    """Raises what cannot be read by others."""
    raise Picky(number, number)


@pytest.fixture(scope="module")
def pool() -> Any:
    with Processes(2) as opened:
        yield opened


def test_results_come_in_order_from_other_processes(pool: Processes) -> None:
    answers = list(pool.map(slow_square, range(8)))
    assert [square for square, _ in answers] == [n * n for n in range(8)]
    assert os.getpid() not in {pid for _, pid in answers}


def test_an_error_of_a_worker_keeps_its_class_and_text(pool: Processes) -> None:
    answers = pool.map(fail_at_two, range(4))
    assert [next(answers), next(answers)] == [0, 1]
    with pytest.raises(InputError, match=r"pods.csv:3: gpu_milli: found -1, expected 1 to 1000"):
        next(answers)


def test_what_cannot_be_handed_over_is_an_error(pool: Processes) -> None:
    for task in (unreadable, raise_picky):
        (found,) = pool.completed(task, [1])
        assert isinstance(found.error, FastsimError), found


def test_a_death_takes_nothing_with_it(pool: Processes, tmp_path: Path) -> None:
    before = pool.retries
    found = sorted(pool.completed(die_once, [str(tmp_path / name) for name in ("a", "b.dies", "c", "d.dies", "e")]))
    assert [outcome.answer for outcome in found] == ["a", "b.dies", "c", "d.dies", "e"]
    assert [outcome.attempts for outcome in found] == [1, 2, 1, 2, 1] and pool.retries == before + 2


@pytest.mark.long
def test_what_always_dies_is_one_clear_error() -> None:
    with Processes(2) as pool:
        (found,) = pool.completed(die, [1])
        assert isinstance(found.error, WorkerDied) and found.attempts == ATTEMPTS
        with pytest.raises(FastsimError, match="worker process died"):
            list(pool.map(die, [1, 1]))


def test_what_takes_too_long_is_ended() -> None:
    with Processes(1, most_s=3.0) as pool:
        one, two = pool.completed(time.sleep, [FOR_EVER_S, 0.0])
    assert isinstance(one.error, OutOfTime) and two.error is None


def test_tasks_need_an_open_executor() -> None:
    with pytest.raises(FastsimError, match="with"):
        next(Processes(2).map(fail_at_two, [0]))


SCRIPT = """
import multiprocessing, sys, time
from fastsim.experiments.executors.processes import Processes
from fastsim.simulation.run_warnings import PodTooLarge

if __name__ == "__main__":
    try:
        with Processes(2) as pool:
            for _ in pool.map(time.sleep, [0.0, 1e6, 1e6]):
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    print(len(multiprocessing.active_children()))
"""


def test_leaving_early_ends_the_workers_at_once(tmp_path: Path) -> None:
    script = tmp_path / "early.py"
    script.write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0"] and done.stderr == ""


BLOCKED = """
import signal
from fastsim.experiments.executors.processes import Processes

EARLY = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())

def early(number):
    return EARLY

if __name__ == "__main__":
    with Processes(2) as pool:
        print(*pool.map(early, range(2)), EARLY)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs masks of signals")
def test_no_worker_hears_ctrl_c_while_it_starts(tmp_path: Path) -> None:
    script = tmp_path / "blocked.py"
    script.write_text(BLOCKED)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "False"] and done.stderr == ""


PRINTING = """
import gc
from fastsim.experiments.executors.processes import Processes
from fastsim.simulation.run_warnings import PodTooLarge

def said(number):
    print("said", number, gc.isenabled(), gc.get_freeze_count() > 1000)

if __name__ == "__main__":
    with Processes(1) as pool:
        list(pool.map(said, range(3)))
"""


def test_what_a_worker_prints_is_not_lost(tmp_path: Path) -> None:
    script = tmp_path / "printing.py"
    script.write_text(PRINTING)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"said {number} True True" for number in range(3)] and done.stderr == ""


def test_warnings_of_workers_are_given_here(pool: Processes, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(Warning) as heard:
        assert list(pool.map(warn_twice, [1])) == [1]
    assert [(item.category, str(item.message)) for item in heard] == [
        (PodTooLarge, "too large"), (RuntimeWarning, "too large")
    ]  # fmt: skip
    assert capfd.readouterr().err == ""

"""Ctrl-C that was swallowed is found, what it broke counts as it, and who handles it otherwise is left alone."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastsim as fs
from fastsim import interrupts
from fastsim.errors import InputError
from fastsim.policies.online.user import PythonScorer


@pytest.fixture(autouse=True)
def as_at_a_terminal() -> Iterator[None]:
    """Python's own answer to Ctrl-C, whatever this process inherited, and nothing left behind."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
    assert signal.set_wakeup_fd(-1) == -1
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()


def swallowed() -> None:
    """Ctrl-C that comes where somebody expects no such error."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        return
    raise AssertionError("Ctrl-C did nothing")


def test_what_was_swallowed_comes_again() -> None:
    with pytest.raises(KeyboardInterrupt), interrupts.noticed():
        interrupts.check()
        swallowed()
        interrupts.check()


def test_nothing_is_remembered_after_the_block() -> None:
    with interrupts.noticed():
        swallowed()
    interrupts.check()
    with interrupts.noticed():
        interrupts.check()


def test_blocks_share_one_note() -> None:
    with pytest.raises(KeyboardInterrupt), interrupts.noticed():
        with interrupts.noticed():
            swallowed()
        interrupts.check()


def broken(error: Exception) -> None:
    """Ctrl-C that comes out as another error."""
    swallowed()
    raise error


def test_an_error_that_it_turned_into_is_the_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt) as raised, interrupts.noticed():
        broken(RuntimeError("release unlocked lock"))
    assert isinstance(raised.value.__cause__, RuntimeError)
    with pytest.raises(InputError), interrupts.noticed():  # one of ours says what it means
        broken(InputError("here", "this", "that"))
    with pytest.raises(RuntimeError), interrupts.noticed():
        raise RuntimeError("without Ctrl-C")


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda *_: None])
def test_who_handles_it_otherwise_is_left_alone(handler: Any) -> None:
    signal.signal(signal.SIGINT, handler)
    with interrupts.noticed():
        signal.raise_signal(signal.SIGINT)
        interrupts.check()


def test_the_note_of_somebody_else_is_left_alone() -> None:
    read, written = os.pipe()
    os.set_blocking(written, False)
    signal.set_wakeup_fd(written)
    try:
        with interrupts.noticed():
            swallowed()
            interrupts.check()
        assert os.read(read, 9) == bytes([signal.SIGINT])
    finally:
        assert signal.set_wakeup_fd(-1) == written
        os.close(read)
        os.close(written)


def test_threads_have_nothing_to_note() -> None:
    done: list[bool] = []

    def work() -> None:
        with interrupts.noticed():
            interrupts.check()
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]


def test_what_is_held_comes_at_the_end() -> None:
    reached = False
    with pytest.raises(KeyboardInterrupt), interrupts.held():
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        reached = True
    assert reached


def test_what_must_not_be_left_half_done_is_done() -> None:
    reached: list[str] = []

    def work() -> None:
        reached.append("begun")
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(0.2)
        reached.append("done")

    with pytest.raises(KeyboardInterrupt):
        interrupts.unhurt(work)
    assert reached == ["begun", "done"]
    interrupts.unhurt(lambda: reached.append("again"))
    assert reached[2:] == ["again"]
    with pytest.raises(ZeroDivisionError):
        interrupts.unhurt(lambda: 1 // 0)


def points(nodes: Any) -> Any:
    """The most free memory."""
    return np.asarray(nodes.memory_free)


def swallowing(nodes: Any, _: Any) -> Any:
    """A scorer during which Ctrl-C is lost."""
    swallowed()
    return points(nodes)


def breaking(nodes: Any, _: Any) -> Any:
    """A scorer that Ctrl-C turns into a failure."""
    broken(RuntimeError("release unlocked lock"))
    return points(nodes)


@pytest.mark.parametrize("scorer", [swallowing, breaking])
def test_a_run_ends_though_a_library_swallows_it(scorer: Callable[..., Any], tmp_path: Path) -> None:
    pods = fs.Workload.synth("openb", pods=300, seed=1)
    with pytest.raises(KeyboardInterrupt):
        fs.simulate("openb:5", pods, PythonScorer(scorer), out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []

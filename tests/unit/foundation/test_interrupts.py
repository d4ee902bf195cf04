"""A signal is raised where work looks for it and at the end of the block, once, and nowhere else."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastsim as fs
from fastsim.errors import InputError
from fastsim.foundation import interrupts
from fastsim.policies.online.python_scorer import PythonScorer

SIGNALS = [(signal.SIGINT, KeyboardInterrupt, 130), (signal.SIGTERM, interrupts.Terminated, 143)]


@pytest.fixture(autouse=True)
def as_at_a_terminal() -> Iterator[None]:
    """The handlers that Python starts with, whatever this process inherited, and nothing left behind."""
    before = {number: signal.signal(number, usual) for number, usual in interrupts.USUAL.items()}
    yield
    for number, usual in interrupts.USUAL.items():
        assert signal.getsignal(number) == usual
        signal.signal(number, before[number])
    interrupts.check()  # the signal is cleared


@pytest.mark.parametrize("number, error, code", SIGNALS)
def test_it_is_raised_where_work_looks_for_it(number: signal.Signals, error: type[BaseException], code: int) -> None:
    reached: list[str] = []
    with pytest.raises(error) as raised, interrupts.deferred():
        interrupts.check()
        signal.raise_signal(number)
        reached.append("nothing happened yet")
        interrupts.check()
        reached.append("too far")
    assert reached == ["nothing happened yet"]
    assert interrupts.exit_code(raised.value) == code


@pytest.mark.parametrize("number, error, code", SIGNALS)
def test_the_end_of_the_block_raises_it(number: signal.Signals, error: type[BaseException], code: int) -> None:
    with pytest.raises(error), interrupts.deferred():
        signal.raise_signal(number)


def raised_without_python(number: signal.Signals) -> None:
    """Let a thread that knows nothing of Python take the signal; the GIL is kept, as to take it again runs handlers."""
    libc, thread = ctypes.PyDLL(None), ctypes.c_ulong()
    assert libc.pthread_create(ctypes.byref(thread), None, libc["raise"], ctypes.c_void_p(number)) == 0
    assert libc.pthread_join(thread, None) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="a thread of POSIX")
@pytest.mark.parametrize("number, error, code", SIGNALS)
def test_one_that_another_thread_takes_is_noted(number: signal.Signals, error: type[BaseException], code: int) -> None:
    reached: list[str] = []
    with pytest.raises(error), interrupts.deferred():
        raised_without_python(number)
        interrupts.check()
        reached.append("too far")
    with pytest.raises(error), interrupts.deferred():
        with interrupts.deferred():
            raised_without_python(number)
        reached.append("beyond the block")
    with pytest.raises(error), interrupts.deferred():
        raised_without_python(number)
        reached += ["in a callback"] * interrupts.pending()
    assert reached == ["in a callback"]


def test_cleaning_up_may_look_again() -> None:
    cleaned: list[bool] = []
    with pytest.raises(KeyboardInterrupt), interrupts.deferred():
        signal.raise_signal(signal.SIGINT)
        try:
            interrupts.check()
        finally:
            interrupts.check()
            cleaned.append(True)
    assert cleaned == [True]


def test_the_end_of_an_inner_block_raises_it() -> None:
    reached: list[str] = []
    with pytest.raises(KeyboardInterrupt), interrupts.deferred():
        with interrupts.deferred():
            signal.raise_signal(signal.SIGINT)
        reached.append("too far")
    assert reached == []


def test_an_error_of_the_block_is_its_cause() -> None:
    with pytest.raises(KeyboardInterrupt) as raised, interrupts.deferred():
        signal.raise_signal(signal.SIGINT)
        raise InputError("here", "this", "that")
    assert isinstance(raised.value.__cause__, InputError)
    with pytest.raises(InputError), interrupts.deferred():
        raise InputError("without", "a", "signal")


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda *_: None])
def test_handlers_of_others_stay(handler: Any) -> None:
    before = signal.signal(signal.SIGINT, handler)
    try:
        with interrupts.deferred():
            assert signal.getsignal(signal.SIGINT) is handler
            signal.raise_signal(signal.SIGINT)
            interrupts.check()
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_second_one_is_raised_at_once() -> None:
    reached: list[str] = []
    with pytest.raises(KeyboardInterrupt), interrupts.deferred():
        signal.raise_signal(signal.SIGINT)
        reached.append("first")
        signal.raise_signal(signal.SIGINT)
        reached.append("second")
    assert reached == ["first"]


TWICE = """
import signal
from fastsim.foundation import interrupts
interrupts.own_process()
for press in ("first", "second"):
    signal.raise_signal(signal.{number})
    print(press, flush=True)
"""


@pytest.mark.parametrize("number, error, code", SIGNALS)
def test_a_second_one_ends_a_command(number: signal.Signals, error: type[BaseException], code: int) -> None:
    root = str(Path(fs.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", TWICE.format(number=number.name)],
        env=os.environ | {"PYTHONPATH": root},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "first\n", "")


def test_threads_stop_as_well_and_install_nothing() -> None:
    events: list[str] = []

    def work() -> None:
        try:
            with interrupts.deferred():
                events.append("begun")
                interrupts.check()
        except KeyboardInterrupt:
            events.append("stopped")

    def run() -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    run()
    with pytest.raises(KeyboardInterrupt), interrupts.deferred():
        signal.raise_signal(signal.SIGINT)
        run()
        assert interrupts.pending() and events == ["begun", "begun"]
        try:
            interrupts.check()
        finally:
            run()
    assert events == ["begun", "begun", "begun", "stopped"]
    assert not interrupts.pending()


def test_readers_of_arrow_take_no_signal_for_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    monkeypatch.setattr(pa, "enable_signal_handlers", seen.append)
    with interrupts.deferred():
        assert seen == [False]
        interrupts.quieten_arrow()
    interrupts.quieten_arrow()
    assert seen == [False, False, True]


def pressing(nodes: Any, _: Any) -> Any:
    """A scorer, the most free memory, during which Ctrl-C comes."""
    if not interrupts.pending():
        signal.raise_signal(signal.SIGINT)
    return np.asarray(nodes.memory_free)


def test_a_scorer_of_the_user_is_called_no_more(tmp_path: Path) -> None:
    pods = fs.Workload.synth("openb", pods=300, seed=1)
    with pytest.raises(KeyboardInterrupt):
        fs.simulate("openb:5", pods, PythonScorer(pressing), out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []

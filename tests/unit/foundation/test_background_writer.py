"""The second thread: order, bounded memory, the first error and a clean end."""

from __future__ import annotations

import threading
import time

import pytest

from fastsim.foundation.background_writer import DEPTH, Background, Inline


def test_everything_is_done_in_order_elsewhere() -> None:
    done: list[tuple[int, int]] = []
    writer = Background()
    for k in range(50):
        writer.do(lambda number: done.append((number, threading.get_ident())), k)
    writer.close()
    assert [number for number, _ in done] == list(range(50))
    assert {thread for _, thread in done} != {threading.get_ident()}


def test_inline_does_it_here_and_at_once() -> None:
    done: list[int] = []
    writer = Inline()
    writer.do(done.append, 1)
    assert done == [1]
    writer.close()
    writer.drop()


def test_who_tells_too_much_waits() -> None:
    go = threading.Event()
    writer = Background()
    done: list[int] = []

    def tell() -> None:
        for k in range(DEPTH + 3):
            writer.do(go.wait)
            done.append(k)

    teller = threading.Thread(target=tell)
    teller.start()
    while len(done) < DEPTH + 1:
        time.sleep(0.001)
    time.sleep(0.2)  # however long: it can only show that more tasks ran
    assert len(done) <= DEPTH + 1  # one is being done, the others wait
    go.set()
    teller.join()
    writer.close()
    assert len(done) == DEPTH + 3


def fail() -> None:
    raise OSError(28, "No space left on device")


def test_the_first_error_comes_back_and_nothing_is_done_after_it() -> None:
    done: list[int] = []
    writer = Background()
    writer.do(fail)
    with pytest.raises(OSError, match="No space left"):
        while True:
            writer.do(done.append, 1)
    with pytest.raises(OSError, match="No space left"):
        writer.close()
    writer.drop()
    assert done == [] and not writer._thread.is_alive()


def test_dropping_ends_the_thread_without_the_rest() -> None:
    done: list[int] = []
    go = threading.Event()
    writer = Background()
    writer.do(go.wait)
    writer.do(done.append, 1)
    dropping = threading.Thread(target=writer.drop)
    dropping.start()
    while writer._error is None:
        time.sleep(0.001)
    go.set()
    dropping.join()
    assert done == [] and not writer._thread.is_alive()

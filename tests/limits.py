"""What one test may take: so much time, and so much memory as its process may have. More of it fails that test by name.

A pytest plugin of its own, so that tests can try it with less.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

MOST_S = 300.0
"""Seconds for each of set-up, test and clean-up: a loaded machine takes many times what an idle one does."""
LONG = 3
"""Times as many for a test that is marked as long."""
MOST_MIB = 8192
"""Memory that a process may write to, MiB: several times what any test takes, and half of a small machine."""
AGAIN_S = 30.0
"""Seconds until a test that caught the interruption is interrupted again."""
STUCK = 2
"""After so many times its seconds, a test that cannot be interrupted ends its process; all stacks are written first."""


class OutOfTime(BaseException):
    """The test took too long. Not an Exception: neither the code under test nor hypothesis may take it for one."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The two limits; 0 is none."""
    group = parser.getgroup("limits")
    group.addoption("--most-s", type=float, default=MOST_S, help="seconds for each test")
    group.addoption("--most-mib", type=int, default=MOST_MIB, help="memory of each process, on Linux")


def pytest_configure(config: pytest.Config) -> None:
    """Memory is limited once, for this process and those that it starts.

    What is only reserved does not count, so those that reserve much more than they use (browsers, stores) live with it.
    """
    most = config.getoption("--most-mib") << 20
    if most and sys.platform == "linux":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    config.stash[ERRORS] = os.dup(2)  # where it leads before output is captured


ERRORS = pytest.StashKey[int]()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close what was opened."""
    os.close(config.stash[ERRORS])


@contextmanager
def limited(item: pytest.Item) -> Iterator[None]:
    """What happens inside is interrupted once it has taken too long."""
    most_s = item.config.getoption("--most-s") * (LONG if item.get_closest_marker("long") else 1)
    if not most_s:
        yield
        return

    def out(_signal: int, _frame: FrameType | None) -> None:
        raise OutOfTime(f"{item.nodeid} took more than {most_s:g} s")

    can = hasattr(signal, "SIGALRM") and threading.current_thread() is threading.main_thread()
    faulthandler.dump_traceback_later(most_s * STUCK, exit=True, file=item.config.stash[ERRORS])
    try:
        if can:
            before = signal.signal(signal.SIGALRM, out)
            signal.setitimer(signal.ITIMER_REAL, most_s, AGAIN_S)
        yield
    finally:
        if can:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Fixtures have the time of a test."""
    with limited(item):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """The test itself."""
    with limited(item):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """And what is left to do after it."""
    with limited(item):
        yield

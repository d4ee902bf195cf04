"""Fixtures every test folder may use, and what the environment may ask of a run."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

from tests.needs import skip_without

ROOT = Path(__file__).resolve().parent.parent
LONG = bool(os.environ.get("FASTSIM_LONG"))
"""Whether every test and every case is played, whatever it takes."""
SHARED = Path(os.environ.get("FASTSIM_SHARED", ROOT.parent / "shared"))
QUICK_CASES = 1
GOLDEN_CASES = 3
"""Cases of a golden test that the whole suite plays without FASTSIM_LONG, which plays all of them."""

# A loaded machine is slow, not wrong; and a run must fail for the change, not for the day's random numbers. Who looks
# for new cases explores: fresh numbers, and what a failure needs to be drawn again.
settings.register_profile("fixed", deadline=None, derandomize=True, print_blob=True, max_examples=20)
settings.register_profile("explore", deadline=None, derandomize=False, print_blob=True)
settings.register_profile(  # a failure is all that is asked for, as by mutants
    "first_failure", settings.get_profile("fixed"), phases=(Phase.explicit, Phase.generate), report_multiple_bugs=False
)
settings.load_profile("explore" if os.environ.get("FASTSIM_EXPLORE") else "fixed")
if os.environ.get("FASTSIM_QUICK"):
    settings.register_profile("quick", settings(), max_examples=10)
    settings.load_profile("quick")


pytest_plugins = ["tests.limits"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Another order of the tests, by which one finds those that need another one before them."""
    parser.addoption("--shuffle", metavar="SEED", help="run the tests in the random order of this seed")


def pytest_configure() -> None:
    """Ctrl-C means what it means at a terminal, whoever started the tests: some shells start others deaf to it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests marked with :func:`tests.needs.needs` are skipped without the module."""
    for mark in item.iter_markers("needs"):
        skip_without(*mark.args)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """Skips for one reason are one line of the summary, however many tests they are."""
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple):
        report.longrepr = (str(ROOT / "tests"), None, report.longrepr[2])
    return report


@pytest.fixture(scope="session", autouse=True)
def power_stays() -> Iterator[None]:
    """No test cuts the power, so none has to wait for a disk; processes of their own wait as they always do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session")
def shared() -> Callable[[str], Path]:
    """A folder of the shared reference data, or a skip that says what is missing."""

    def folder(name: str) -> Path:
        path = SHARED / name
        if not path.exists():
            pytest.skip(f"reference data not found: {path} (set FASTSIM_SHARED)")
        return path

    return folder


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Who has nothing left to do takes over from others: golden tests differ a hundredfold in what they take."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what was not asked for, and put the rest into the order that was."""
    kept = list(items)
    if not LONG:
        kept = [item for item in kept if not item.get_closest_marker("long")]
    if os.environ.get("FASTSIM_QUICK") or [ROOT / name for name in config.args] == [ROOT / "tests"]:
        kept = _spread(kept)
    chosen = set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = sorted(kept, key=lambda item: item.get_closest_marker("first") is None)
    if (seed := config.getoption("--shuffle")) is not None:
        random.Random(seed).shuffle(items)


def pytest_collection_finish() -> None:
    """What was collected stays until the end: the collector of garbage need not go through it again and again.

    Nor need it look as often as it does in programs that have less memory than a test run.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def _spread(items: list[pytest.Item]) -> list[pytest.Item]:
    """Of tests with many cases some, spread evenly over all of them; who names a file or a folder gets every case."""
    cases: dict[tuple[Path, str], list[pytest.Item]] = {}
    for item in items:
        cases.setdefault((item.path, getattr(item, "originalname", item.name)), []).append(item)
    kept = set[pytest.Item]()
    for group in cases.values():
        most = min(_most_cases(group[0]), len(group))
        kept.update(group[at * len(group) // most] for at in range(most))
    return [item for item in items if item in kept]


def _most_cases(item: pytest.Item) -> int:
    """How many cases of a test are enough where not all are asked for; the checked build is slow."""
    if "golden" in item.path.parts:
        return QUICK_CASES if os.environ.get("FASTSIM_QUICK") else sys.maxsize if LONG else GOLDEN_CASES
    mark = item.get_closest_marker("spread")
    return mark.args[0] if mark else sys.maxsize

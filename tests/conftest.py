"""Fixtures every test folder may use, and what the environment may ask of a run."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.needs import skip_without

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("FASTSIM_SHARED", ROOT.parent / "shared"))
QUICK_CASES = 1

# A loaded machine is slow, not wrong; and a run must fail for the change, not for the day's random numbers. Who looks
# for new cases explores: fresh numbers, and what a failure needs to be drawn again.
examples = 100 if os.environ.get("FASTSIM_LONG") else 40
settings.register_profile("fixed", deadline=None, derandomize=True, print_blob=True, max_examples=examples)
settings.register_profile("explore", deadline=None, derandomize=False, print_blob=True)
settings.load_profile("explore" if os.environ.get("FASTSIM_EXPLORE") else "fixed")
if os.environ.get("FASTSIM_QUICK"):
    settings.register_profile("quick", settings(), max_examples=20)
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
    kept = list(_quick(items)) if os.environ.get("FASTSIM_QUICK") else items
    if not os.environ.get("FASTSIM_LONG"):
        kept = [item for item in kept if not item.get_closest_marker("long")]
    chosen = set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = kept
    if (seed := config.getoption("--shuffle")) is not None:
        random.Random(seed).shuffle(items)


def _quick(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """The first cases of each golden test: the checked build is slow."""
    seen: Counter[tuple[Path, str]] = Counter()
    for item in items:
        test = (item.path, getattr(item, "originalname", item.name))
        seen[test] += 1
        if "golden" not in item.path.parts or seen[test] <= QUICK_CASES:
            yield item

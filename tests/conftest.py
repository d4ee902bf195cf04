"""Fixtures every test folder may use, and what the environment may ask of a run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("FASTSIM_SHARED", ROOT.parent / "shared"))
QUICK_CASES = 2

# A loaded machine is slow, not wrong; and a run must fail for the change, not for the day's random numbers. Who looks
# for new cases explores: fresh numbers, and what a failure needs to be drawn again.
settings.register_profile("fixed", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("explore", deadline=None, derandomize=False, print_blob=True)
settings.load_profile("explore" if os.environ.get("FASTSIM_EXPLORE") else "fixed")
if os.environ.get("FASTSIM_QUICK"):
    settings.register_profile("quick", settings(), max_examples=20)
    settings.load_profile("quick")


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
    """With FASTSIM_QUICK set, keep the first cases of each golden test and no long test: the checked build is slow."""
    if not os.environ.get("FASTSIM_QUICK"):
        return
    seen: Counter[tuple[Path, str]] = Counter()
    kept: list[pytest.Item] = []
    dropped: list[pytest.Item] = []
    for item in items:
        test = (item.path, getattr(item, "originalname", item.name))
        seen[test] += 1
        golden = "golden" in item.path.parts and seen[test] > QUICK_CASES
        (dropped if golden or item.get_closest_marker("long") else kept).append(item)
    config.hook.pytest_deselected(items=dropped)
    items[:] = kept

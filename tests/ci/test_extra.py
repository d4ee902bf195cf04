"""Requirements of extras, as CI installs them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]


def printed(*words: str) -> list[Requirement]:
    """The requirements that the script prints."""
    done = subprocess.run(
        [sys.executable, ".ci/extra.py", *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [Requirement(line) for line in done.stdout.splitlines()]


def test_every_requirement_has_a_lowest_version_and_allows_it() -> None:
    names = ("needed", "report", "test", "k8s", "rl", "docs", "bench")
    asked, lowest = printed(*names), printed("--lowest", *names)
    assert [one.name for one in asked] == [one.name for one in lowest]
    for one, pinned in zip(asked, lowest, strict=True):
        (pin,) = pinned.specifier
        assert pin.operator == "==" and pin.version in one.specifier, str(one)

"""Tests beside a change: the mirror of a module, in a folder or not, and changed tests themselves."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.style.test_layout import modules
from tests.style.tree import ROOT


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The functions of the script."""
    monkeypatch.setattr(sys, "path", sys.path[:])
    return runpy.run_path(str(ROOT / ".ci" / "beside.py"))


def test_tests_beside_a_change(beside: dict[str, Any], tmp_path: Path) -> None:
    there = (
        "tests/unit/workload/test_row_checks.py",
        "tests/unit/engine/test_plan.py",
        "tests/unit/ext/engine/test_plan.py",
        "tests/golden/fgd/test_fgd.py",
        "tests/docs/x.py",
    )
    for name in there:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for changed, found in (
        ("fastsim/workload/row_checks.py", ["tests/unit/workload/test_row_checks.py"]),
        ("fastsim/engine/plan.py", ["tests/unit/engine/test_plan.py"]),
        ("fastsim_ext/engine/plan.pxd", ["tests/unit/ext/engine/test_plan.py"]),
        ("tests/golden/fgd/test_fgd.py", ["tests/golden/fgd/test_fgd.py"]),
        ("tests/golden/test_gone.py", []),
        ("tests/golden/fgd/fgd.py", []),
        ("README.md", ["tests/docs"]),
        ("fastsim/tables/rules.csv", []),
    ):
        assert beside["tests_beside"]([changed], tmp_path) == found, changed


def test_every_module_has_tests_beside_it(beside: dict[str, Any]) -> None:
    for module in modules():
        assert beside["tests_beside"]([module]), module


def test_sources_newer_than_what_was_compiled(beside: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "fastsim_ext"
    folder.mkdir()
    for name, age in (
        ("a.pyx", 10),
        ("a.cpython.so", 5),
        ("b.pyx", 5),
        ("b.cpython.so", 10),
        ("c.pyx", 5),
        ("d.py", 0),
    ):
        (folder / name).touch()
        os.utime(folder / name, (1000 - age, 1000 - age))
    names = [f"fastsim_ext/{path}" for path in ("a.pyx", "b.pyx", "c.pyx", "d.py", "gone.pyx")]
    assert beside["stale_modules"](names, tmp_path) == ["fastsim_ext/b.pyx", "fastsim_ext/c.pyx"]

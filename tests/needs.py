"""What a test needs and an installation may lack: the test is skipped there, for one reason at one place."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

EXTRAS = {
    "altair": "report", "vl_convert": "report", "yaml": "k8s", "gymnasium": "rl", "ray": "ray", "distributed": "dask",
    "fsspec": "dask", "cylp": "cbc", "Cython": "test",
}  # fmt: skip
"""The extra that brings each module."""
GUESTS = ("pandas",)
"""Modules that users have and no extra brings."""


def skip_without(module: str) -> None:
    """Skip a test, or what follows in a file, where the module is not installed."""
    if find_spec(module) is None:
        brought = "of no extra" if module in GUESTS else f"extra {EXTRAS[module]}"
        pytest.skip(f"{module} is not installed ({brought})", allow_module_level=True)


def needed(module: str) -> ModuleType:
    """The module, or a skip where it is not installed."""
    skip_without(module)
    return import_module(module)


def in_checkout(path: Path) -> Path:
    """The path, or a skip where only the tests were copied beside an installed wheel."""
    if not path.exists():
        pytest.skip(f"{'/'.join(path.parts[-2:])} is not here (needs a checkout)", allow_module_level=True)
    return path


def needs(module: str) -> pytest.MarkDecorator:
    """The mark of a test that is skipped where the module is not installed."""
    assert module in EXTRAS
    return pytest.mark.needs(module)

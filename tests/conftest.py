"""Fixtures every test folder may use."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("FASTSIM_SHARED", ROOT.parent / "shared"))


@pytest.fixture(scope="session")
def shared() -> Callable[[str], Path]:
    """A folder of the shared reference data, or a skip that says what is missing."""

    def folder(name: str) -> Path:
        path = SHARED / name
        if not path.exists():
            pytest.skip(f"reference data not found: {path} (set FASTSIM_SHARED)")
        return path

    return folder

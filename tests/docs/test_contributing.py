"""CONTRIBUTING.md names files that are there."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FILES = sorted(set(re.findall(r"`([\w./]+\.(?:py|pyx|csv|toml|md))`", TEXT)))
MADE_UP = re.compile(r"NAME|/a/")
"""Examples of names."""


@pytest.mark.parametrize("name", [name for name in FILES if not MADE_UP.search(name)])
def test_a_named_file_is_there(name: str) -> None:
    places = [ROOT / name, ROOT / "fastsim" / name, *ROOT.glob(f"*/**/{name}")]
    assert any(place.is_file() for place in places)

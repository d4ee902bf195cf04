"""Families of applications."""

from __future__ import annotations

import pytest

from fastsim.errors import InputError
from fastsim.performance.applications.family import Applications

APPS = Applications.default()


def test_a_family_is_looked_up_by_name() -> None:
    assert list(APPS) == sorted(APPS) and len(APPS) == len(list(APPS))
    assert "bert" in APPS and "nothing" not in APPS
    with pytest.raises(InputError, match="application: found 'nothing', expected one of bert"):
        APPS["nothing"]
    with pytest.raises(InputError, match="GPU model: found 'k80'"):
        APPS["bert"].on("k80")

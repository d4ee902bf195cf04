"""Variables that must be whole numbers: their bounds, and what is none."""

from __future__ import annotations

import pytest

from fastsim.errors import ScenarioError
from fastsim.foundation.limits.environment import BOUNDS, number_of, refuse_odd_numbers


@pytest.mark.parametrize("name", BOUNDS)
def test_a_value_stands_between_its_bounds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(name, raising=False)
    assert number_of(name) is None
    least, most = BOUNDS[name]
    for text, number in ((str(least), least), (str(most), most), ("", None), (" 2 ", 2)):
        monkeypatch.setenv(name, text)
        refuse_odd_numbers()
        assert number_of(name) == number
    for text in (str(least - 1), str(most + 1), "-1", "1.5", "1e3", "many", "٣", "9" * 5000):
        monkeypatch.setenv(name, text)
        with pytest.raises(ScenarioError, match=rf"{name}: found '.*, expected a whole number from {least} to"):
            refuse_odd_numbers()

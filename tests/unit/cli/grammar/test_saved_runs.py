"""What a changed folder makes fail is one error about the folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastsim.cli.grammar.saved_runs import reads_saved_runs
from fastsim.errors import InputError, ScenarioError


@reads_saved_runs
def verb(error: Exception, **_: Any) -> None:
    """A verb that fails."""
    raise error


@pytest.mark.parametrize("error", [KeyError("pods"), TypeError("text"), ZeroDivisionError("zero")])
def test_the_folders_are_named(error: Exception) -> None:
    with pytest.raises(InputError, match=r"^a, b: found .* expected what a run wrote"):
        verb(error, folders=(Path("a"), Path("b")))
    with pytest.raises(InputError, match=r"^a: "):
        verb(error, folder=Path("a"))


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(ScenarioError, match="option"):
        verb(ScenarioError("option", "x", "y"), folder=Path("a"))

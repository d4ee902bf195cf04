"""Suggestions: the closest name, or nothing at all."""

from __future__ import annotations

import pytest

from fastsim.spelling import suggestion


@pytest.mark.parametrize(
    ("word", "answer"),
    [
        ("fdg", "did you mean 'fgd'?"),
        ("best_fitt", "did you mean 'best_fit'?"),
        ("fgd", "did you mean 'fgd'?"),
        ("zzz", ""),
        ("", ""),
    ],
)
def test_the_closest_name_or_nothing(word: str, answer: str) -> None:
    assert suggestion(word, ("pwr", "fgd", "best_fit")) == answer


def test_names_may_come_from_anywhere_once() -> None:
    assert suggestion("openc", (name for name in ("openb", "uniform"))) == "did you mean 'openb'?"
    assert suggestion("openb", ()) == ""

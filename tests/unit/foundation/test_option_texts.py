"""Options as texts: reading a text gives back its names and numbers, whatever characters names have."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import hypothesis.strategies as st
from hypothesis import given

from fastsim.foundation.option_texts import groups_text, names_file, names_folder, numbers_text, quoted


@given(st.text())
def test_names_are_quoted_without_loss(name: str) -> None:
    assert unquote(quoted(name)) == name
    assert not set(quoted(name)) & set(",;:=")


@given(st.dictionaries(st.text(), st.floats(allow_nan=False)))
def test_numbers_are_complete(pairs: dict[str, float]) -> None:
    parts = [part.rsplit("=", 1) for part in numbers_text(pairs).split(",") if part]
    assert {unquote(name): float(number) for name, number in parts} == pairs
    assert groups_text({"a;b": pairs}) == f"a%3Bb:{numbers_text(pairs)}"


def test_texts_that_may_be_paths(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert names_file(tmp_path / "a") and names_file(str(tmp_path / "a")) and names_folder(tmp_path)
    for text in ("x" * 300, "a\0b", "", str(tmp_path / "none")):
        assert not names_file(text) and not names_folder(text)

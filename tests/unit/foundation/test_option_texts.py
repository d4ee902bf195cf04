"""Options as texts: reading a text gives back its names and numbers, whatever characters names have."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import hypothesis.strategies as st
import pytest
from hypothesis import given

import fastsim
from fastsim.errors import ScenarioError
from fastsim.foundation.option_texts import (
    called,
    groups_text,
    named,
    names_file,
    names_folder,
    numbers_text,
    parted,
    quoted,
)


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


@pytest.mark.parametrize(
    ("text", "head", "words"),
    [
        ("openb", "openb", []), (" openb?seed=3 ", "openb", ["seed=3"]), ("a?", "a", []),
        ("a?b&&c=1", "a", ["b", "c=1"]),
        ("kubernetes:p.json?nodes=n+1.json", "kubernetes:p.json", ["nodes=n+1.json"]), ("a?b=%26%20", "a", ["b=& "]),
        ("a?b=c?d", "a", ["b=c?d"]),
    ],
)  # fmt: skip
def test_a_text_is_a_head_and_words(text: str, head: str, words: list[str]) -> None:
    assert parted(text) == (head, words)


def test_the_path_of_a_file_is_no_text_with_options(tmp_path: Path) -> None:
    path = tmp_path / "pods?v=1"
    path.touch()
    assert parted(path) == (str(path), [])


@pytest.mark.parametrize("words", [["a"], ["a=1", "a=2"]])
def test_options_have_one_value_for_each_name(words: list[str]) -> None:
    with pytest.raises(ScenarioError, match=r"carbon: found option .a.*expected name=value, each name once"):
        named(words, "carbon")
    assert named(["a=1", "b=c=d"], "carbon") == {"a": "1", "b": "c=d"}


TEXTS = ("option_texts.py", "node_prices.py", "service.py")
"""Modules that may take words at an ampersand apart: this one, prices, which have no head, and addresses of HTTP."""


def test_options_that_a_maker_needs_are_named() -> None:
    def maker(nodes: int, gpus: int, *, pods: int, seed: int = 0) -> int:
        return nodes + gpus + pods + seed

    assert called("cluster 'x'", maker, {"nodes": 1, "gpus": 2, "pods": 3}) == 6
    with pytest.raises(ScenarioError, match="found no option gpus and no option pods, expected options of"):
        called("cluster 'x'", maker, {"nodes": 1})


def test_no_other_module_takes_such_texts_apart() -> None:
    for path in Path(fastsim.__file__).parent.rglob("*.py"):
        found = re.findall(r'partition\("\?"\)|split\("\?"|split\("&"\)|parse_qs', path.read_text(encoding="utf-8"))
        assert path.name in TEXTS or not found, path

"""JSON and TOML that are nested too deep are refused, however they are written."""

from __future__ import annotations

import json

import pytest

from fastsim.foundation.nested_text import DEEPEST, TOO_DEEP, json_value, refuse_deep, toml_value


def test_values_are_those_of_the_readers() -> None:
    assert json_value('{"a": [1, {"b": null}]}') == {"a": [1, {"b": None}]} == json_value(b'{"a": [1, {"b": null}]}')
    assert toml_value("a = [1, {b = 2}]") == {"a": [1, {"b": 2}]}
    assert json_value('{"a": 1}', object_pairs_hook=list) == [("a", 1)]
    wide = [[str(number)] for number in range(3 * DEEPEST)]
    assert json_value(json.dumps(wide)) == wide


@pytest.mark.parametrize("depth", [DEEPEST + 1, 900, 200_000])
def test_what_is_too_deep_is_a_value_error(depth: int) -> None:
    for text in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
        with pytest.raises(ValueError, match=TOO_DEEP):
            json_value(text)
        with pytest.raises(ValueError, match=TOO_DEEP):
            json_value(text.encode())
    for text in ("a = " + "[" * depth + "]" * depth, "a" + ".a" * depth + " = 1", f"[a{'.a' * depth}]"):
        with pytest.raises(ValueError, match=TOO_DEEP):
            toml_value(text)


def test_the_deepest_that_is_read() -> None:
    assert json_value("[" * DEEPEST + "]" * DEEPEST)
    assert toml_value("a = " + "[" * (DEEPEST - 1) + "]" * (DEEPEST - 1))


def test_a_value_inside_itself_ends() -> None:
    inner: list[object] = []
    inner.append(inner)
    with pytest.raises(ValueError, match=TOO_DEEP):
        refuse_deep(inner)


@pytest.mark.parametrize("text", [r'"\ud83d\ude00"', r'"\\ud800"', r'"\uD83D\uDE00 \\\\ud800"', '"\U0001f600"'])
def test_pairs_of_surrogates_and_escaped_backslashes_are_read(text: str) -> None:
    assert json_value(text) == json_value(text.encode()) == json.loads(text)


@pytest.mark.parametrize("text", [r'"\ud800"', r'{"\uDFFF": 1}', r'"\ude00\ud83d"', r'["\\\ud83dx"]', r'"\ud83dA"'])
def test_half_a_pair_of_surrogates_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"half a character: \\u[dD]"):
        json_value(text)
    with pytest.raises(ValueError, match="half a character"):
        json_value(text.encode())


def test_half_a_character_in_bytes_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="can't decode"):
        json_value('"\ud800"'.encode("utf-8", "surrogatepass"))

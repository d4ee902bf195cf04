"""JSON and TOML that are nested too deep are refused, however they are written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim.foundation import nested_text
from fastsim.foundation.nested_text import DEEPEST, TOO_DEEP, json_value, json_with_list, refuse_deep, toml_value


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


NESTED = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('ab"\\\\[]{},:\u00e9\n', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('a"\\\\[}{', max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(NESTED, st.integers(0, 110), st.booleans(), st.none() | st.integers(0, 2))
def test_the_depth_of_a_text_is_that_of_its_value(value: Any, around: int, ascii: bool, indent: int | None) -> None:
    """Strings with brackets, quotes and backslashes count for nothing."""
    for _ in range(around):
        value = [value]
    text = json.dumps(value, ensure_ascii=ascii, indent=indent)
    try:
        refuse_deep(value)
    except ValueError:
        with pytest.raises(ValueError, match=TOO_DEEP):
            json_value(text)
    else:
        assert json_value(text) == value


def listed(*elements: Any, indent: int | None = 1, **further: Any) -> str:
    return json.dumps(
        {"kind": "List", "items": list(elements), "metadata": {"resourceVersion": ""}, **further}, indent=indent
    )


ELEMENT = {"name": "a", "parts": [{"x": 1}, {"x": "}, {"}, [{"y": 2}, {"y": 3}]], "text": '},\n{ \\" ] \ud83d\ude00'}


@pytest.mark.parametrize("piece", [1, 7, 60, 200, 100_000])
@pytest.mark.parametrize("indent", [None, 0, 1, 4])
def test_a_list_is_read_in_pieces_as_it_is_as_a_whole(piece: int, indent: int | None) -> None:
    seen: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nested_text, "PIECE", piece)
        text = listed(*[ELEMENT | {"number": number} for number in range(20)], indent=indent)
        assert json_with_list(text, "items", seen.append) == json.loads(text)
    pieces = [element for elements in seen for element in elements]
    assert not pieces or pieces[:20] == json.loads(text)["items"] or indent == 0


@pytest.mark.parametrize(
    "text",
    [
        listed(ELEMENT, ELEMENT, other=[1]), listed(ELEMENT, 5, [ELEMENT]), listed(),
        json.dumps([ELEMENT] * 3, indent=1),
        json.dumps({"a": {"items": [ELEMENT, ELEMENT]}, "b": 1}, indent=1),
        '{"items": [\n{}], "items": [\n{"a": 1},\n{}]}', '{"x": "\\"items\\": [ {", "items": [\n{"a": 1},\n{"b": 2}]}',
    ],
)  # fmt: skip
def test_other_texts_are_read_as_a_whole(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nested_text, "PIECE", 1)
        assert json_with_list(text, "items", lambda _: None) == json.loads(text)


@pytest.mark.parametrize("depth", [DEEPEST - 2, DEEPEST - 1])
def test_elements_are_as_deep_as_in_the_text(depth: int) -> None:
    element = json.loads("[" * (depth - 1) + "]" * (depth - 1))
    text = listed({"a": 1}, {"a": element[0]}, {"a": 1})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nested_text, "PIECE", 1)
        refused = False
        try:
            json_value(text)
        except ValueError:
            refused = True
        try:
            assert json_with_list(text, "items", lambda _: None) == json.loads(text) and not refused
        except ValueError:
            assert refused


@pytest.mark.parametrize(
    "text", ['{"items": [\n{"a": 1},\n{"b" 2}]}', '{"items": [\n{}]} {"items": [\n{}]}', '{"items": [\n{']
)
def test_faults_are_at_their_place_in_the_text(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nested_text, "PIECE", 1)
        with pytest.raises(json.JSONDecodeError) as found:
            json_with_list(text, "items", lambda _: None)
    with pytest.raises(json.JSONDecodeError) as whole:
        json.loads(text)
    assert (found.value.msg, found.value.pos) == (whole.value.msg, whole.value.pos)


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

"""JSON and TOML of limited depth: deeper nesting is a ValueError, never a crash of the code that walks it.

So are texts of JSON with half a pair of surrogates, which no table and no file in UTF-8 can hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

NESTED = (list, dict)
DEEPEST = 100
"""Most lists and tables inside each other; a Kubernetes object has about a dozen."""
TOO_DEEP = f"lists or tables nested more than {DEEPEST} deep"
LONG_KEY = re.compile(rf"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{DEEPEST}}}""")
"""A key of so many parts with dots; the reader's time grows with the square of their number."""

SURROGATES = re.compile(r"\\u[dD][89a-fA-F]")
"""The beginning of an escaped half of a character."""
ESCAPE = re.compile(r"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|(u[dD][89a-fA-F]\w\w)|.)")
"""An escape of JSON, pairs of surrogates as one; the group is a half without the other."""
PIECE = 1 << 20
"""Characters of a long list that are read at a time, and of the shortest text that is read so."""
HEAD = 1 << 12
"""Characters within which such a list has to begin."""
_CURLY = bytes.maketrans(b"[]", b"{}")
_OTHERS = bytes(set(range(256)) - set(b'[]{}"'))
_STRING = re.compile(rb'"[^"]*"')


def json_value(text: str | bytes, **options: Any) -> Any:
    """The value of a JSON text; ``options`` are those of ``json.loads``."""
    if isinstance(text, bytes):  # the reader would let halves of characters pass
        text = text.decode(json.detect_encoding(text))
    # Counting is much faster than looking, and enough for most small texts.
    deep = text.count("[") + text.count("{") > DEEPEST and _is_deep(text)
    try:
        value = json.loads(text, **options)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    if SURROGATES.search(text):
        _refuse_halves(text)
    if deep:
        raise ValueError(TOO_DEEP)
    return value


def json_with_list(text: str, key: str, each: Callable[[list[Any]], None]) -> Any:
    """The value of a JSON text; of a long list under the key ``each`` sees some elements before others are read.

    So what elements have in common need not be in memory for all of them. A text of another form is read as a whole.
    """
    begin = re.compile(rf'"{key}"\s*:\s*\[(\s*\n\s*)\{{').search(text, 0, HEAD) if len(text) > PIECE else None
    if begin is None:
        return json_value(text)
    first, end = begin.start(1), text.rfind("]")
    try:
        whole = json_value(text[:first] + text[end:])
        if f'"{key}"' in text[end:] or not isinstance(whole, dict) or whole.get(key) != []:
            return json_value(text)
        for piece in _pieces(text, first, end, f"}},{begin[1]}{{"):
            # As deep as in the text.
            [elements] = json_value(f"[[{piece}]]")
            each(elements)
            whole[key] += elements
    except ValueError:
        return json_value(text)
    return whole


def _pieces(text: str, first: int, end: int, between: str) -> Iterator[str]:
    """A list without its brackets, cut between some of its elements.

    A line ends there as it does at no place within an element, or else the pieces are no JSON.
    """
    while (cut := text.find(between, first + PIECE, end)) >= 0:
        yield text[first : cut + 1]
        first = cut + 2
    yield text[first:end]


def _is_deep(text: str) -> bool:
    """Whether lists and mappings of a JSON text are nested too deep; of another text the answer means nothing."""
    if "\\" in text:
        text = text.replace("\\\\", "").replace('\\"', "")
    brackets = text.encode("utf-8", "replace").translate(_CURLY, _OTHERS).replace(b'""', b"")
    brackets = _STRING.sub(b"", brackets)
    for _ in range(DEEPEST):
        brackets = brackets.replace(b"{}", b"")
        if not brackets:
            return False
    return True


def toml_value(text: str) -> dict[str, Any]:
    """The value of a TOML text."""
    import tomllib

    if LONG_KEY.search(text):
        raise ValueError(TOO_DEEP)
    try:
        value = tomllib.loads(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    refuse_deep(value)
    return value


def refuse_deep(value: Any) -> None:
    """ValueError if lists and mappings are nested too deep; looked at level by level, so nothing recurses."""
    level = [value] if isinstance(value, NESTED) else []
    for _ in range(DEEPEST):
        level = [
            part for whole in level for part in (whole.values() if isinstance(whole, dict) else whole)
            if isinstance(part, NESTED)
        ]  # fmt: skip
        if not level:
            return
    raise ValueError(TOO_DEEP)


def _refuse_halves(text: str) -> None:
    """ValueError if a JSON text, which is known to be one, escapes half a pair of surrogates."""
    half = next((found[1] for found in ESCAPE.finditer(text) if found[1]), None)
    if half is not None:
        raise ValueError(f"half a character: \\{half} without the other half of its pair")

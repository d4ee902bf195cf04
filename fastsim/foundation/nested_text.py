"""JSON and TOML of limited depth: deeper nesting is a ValueError, never a crash of the code that walks it.

So are texts of JSON with half a pair of surrogates, which no table and no file in UTF-8 can hold.
"""

from __future__ import annotations

import json
import re
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


def json_value(text: str | bytes, **options: Any) -> Any:
    """The value of a JSON text; ``options`` are those of ``json.loads``."""
    if isinstance(text, bytes):  # the reader would let halves of characters pass
        text = text.decode(json.detect_encoding(text))
    try:
        value = json.loads(text, **options)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    if SURROGATES.search(text):
        _refuse_halves(text)
    # Counting is much faster than looking, and enough for most small texts.
    if text.count("[") + text.count("{") > DEEPEST:
        refuse_deep(value)
    return value


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

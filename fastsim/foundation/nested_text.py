"""JSON and TOML of limited depth: deeper nesting is a ValueError, never a crash of the code that walks it."""

from __future__ import annotations

import json
import re
from typing import Any

DEEPEST = 100
"""Most lists and tables inside each other; a Kubernetes object has about a dozen."""
TOO_DEEP = f"lists or tables nested more than {DEEPEST} deep"
LONG_KEY = re.compile(rf"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{DEEPEST}}}""")
"""A key of so many parts with dots; the reader's time grows with the square of their number."""


def json_value(text: str | bytes, **options: Any) -> Any:
    """The value of a JSON text; ``options`` are those of ``json.loads``."""
    try:
        value = json.loads(text, **options)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    # Counting is much faster than looking, and enough for most small texts.
    marks = text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
    if marks > DEEPEST:
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
    level = [value]
    for _ in range(DEEPEST):
        level = [part for whole in level for part in _parts(whole) if isinstance(part, list | dict)]
        if not level:
            return
    raise ValueError(TOO_DEEP)


def _parts(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()

"""Changes of inputs that keep most of their structure: of trees (JSON, YAML, TOML), of texts by words, of bytes."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Sequence
from typing import Any

WORDS = (
    "",
    "0",
    "-1",
    "-0",
    "1",
    "0.5",
    "1e308",
    "1e400",
    "-1e308",
    "1e-320",
    "NaN",
    "nan",
    "inf",
    "-inf",
    "Infinity",
    "2147483648",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "99999999999999999999",
    "8000000000000000",
    "9e11",
    "0x10",
    "1_000",
    "+5",
    "null",
    "None",
    "true",
    "x",
    "é",
    "\u202e",
    "\ud800",
    "\x00",
    "'",
    '"',
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    ",",
    ":",
    ";",
    "|",
    "\t",
    "\n",
    "\r",
    "=",
    "&",
    "?",
    "%",
    "%00",
    "..",
    "/",
    "\\",
    "*",
    "#",
    "-",
    "+",
    "!!python/object:os.system",
    "&a [*a]",
    "2024-13-40 99:99:99",
    "0001-01-01T00:00:00",
    "9999-12-31 23:59:59",
    "1" * 400,
    "a" * 300,
    "[" * 200,
    "{a:" * 150,
    "- " * 150,
    "1Ei",
    "1e30",
    "=1+1",
    "<script>",
)
"""Texts that stand in for a word of an input."""
NUMBERS = tuple(word for word in WORDS if re.fullmatch(r"[-+]?[\d.]+(?:e[-+]?\d+)?|-?[a-zA-Z]{3}|Infinity", word))
"""Those of them that stand in for a number."""
LEAVES: tuple[Any, ...] = (
    None,
    True,
    False,
    -1,
    0,
    1,
    3,
    1 << 31,
    1 << 63,
    10**30,
    1.5,
    -1.0,
    5e-324,
    1e300,
    float("nan"),
    float("inf"),
    "",
    "x",
    "0",
    "-5",
    "1e30",
    "2147483648",
    "99999999999999999999",
    "a" * 300,
    "\x00",
    "\ud800",
    "é",
    [],
    {},
    [[]],
    [None],
    [1, "x"],
    {"": None},
    {"name": 5},
)
"""Values that stand in for a part of a tree."""
_TOKENS = re.compile(r"[A-Za-z_]+|\d+(?:\.\d+)?|\s+|.", re.DOTALL)


def text(seeds: str | Sequence[str], draw: random.Random) -> str:
    """One of the texts with one to four changes."""
    tokens: list[str] = _TOKENS.findall(seeds if isinstance(seeds, str) else draw.choice(seeds))
    for _ in range(draw.choice((1, 1, 1, 2, 2, 4))):
        _change_tokens(tokens, draw)
    return "".join(tokens)


def _change_tokens(tokens: list[str], draw: random.Random) -> None:
    if not tokens:
        tokens.append(draw.choice(WORDS))
        return
    at = draw.randrange(len(tokens))
    how = draw.random()
    if how < 0.5:
        # Separators are changed less often than words: most of the structure stays.
        wordy = [place for place, token in enumerate(tokens) if token[:1].isalnum()] or [at]
        place = draw.choice(wordy)
        tokens[place] = _word(tokens, place, draw)
    elif how < 0.6:
        del tokens[at]
    elif how < 0.7:
        tokens.insert(at, draw.choice(WORDS))
    elif how < 0.8:
        other = draw.randrange(len(tokens))
        tokens[at], tokens[other] = tokens[other], tokens[at]
    elif how < 0.88:
        end = min(len(tokens), at + draw.randint(1, 30))
        tokens[at:at] = tokens[at:end] * draw.choice((1, 1, 2, 20))
    elif how < 0.95:
        del tokens[at : at + draw.randint(1, 30)]
    else:
        del tokens[at:]


def _word(tokens: list[str], place: int, draw: random.Random) -> str:
    """A word in place of this one, of its own kind in most cases."""
    how = draw.random()
    if how < 0.25:
        return draw.choice(WORDS)
    if tokens[place][:1].isdigit():
        return draw.choice(NUMBERS) if how < 0.7 else str(draw.randrange(100))
    return draw.choice([token for token in tokens if token[:1].isalpha()] or WORDS)


def _leaf(value: Any, draw: random.Random) -> Any:
    """A value in place of this one, of its own kind in most cases."""
    how = draw.random()
    if how < 0.35:
        return copy.deepcopy(draw.choice(LEAVES))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return draw.choice(
            (*(leaf for leaf in LEAVES if isinstance(leaf, int | float)), value + 1, -value, value * 1000)
        )
    if isinstance(value, str):
        return text(value, draw)
    return copy.deepcopy(draw.choice(LEAVES))


def tree(value: Any, draw: random.Random) -> Any:
    """A copy of the tree with one to four parts replaced, removed, doubled, wrapped, or exchanged for another one."""
    root = [copy.deepcopy(value)]
    for _ in range(draw.choice((1, 1, 1, 2, 2, 4))):
        places = list(_places(root))
        leaves = [(at, key) for at, key in places if not isinstance(at[key], dict | list)]
        # Near the root, most changes would leave nothing of the rest.
        at, key = draw.choice(leaves if leaves and draw.random() < 0.7 else places)
        how = draw.random()
        if how < 0.55:
            at[key] = _leaf(at[key], draw)
        elif how < 0.7 and at is not root:
            del at[key]
        elif how < 0.8:
            at[key] = draw.choice(([at[key]], {"x": at[key]}, [at[key], copy.deepcopy(at[key])]))
        elif isinstance(at[key], str):
            at[key] = text(at[key], draw)
        elif isinstance(at, dict):
            at[draw.choice((key.upper(), f"{key}x", "", draw.choice(WORDS)))] = at.pop(key)
        else:
            other, name = draw.choice(places)
            at[key] = copy.deepcopy(other[name])
    return root[0]


def _places(value: Any) -> Any:
    """Containers and keys of all parts."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def json_text(seed: Any, draw: random.Random) -> str:
    """JSON of a changed tree, or changed JSON."""
    if draw.random() < 0.15:
        return text(json.dumps(seed), draw)
    return json.dumps(tree(seed, draw))


def raw(written: str, draw: random.Random) -> bytes:
    """The bytes of a text; in a few cases some of them are others."""
    data = bytearray(written.encode("utf-8", "surrogatepass"))
    if data and draw.random() < 0.03:
        for _ in range(draw.randint(1, 8)):
            data[draw.randrange(len(data))] = draw.randrange(256)
    if draw.random() < 0.01:
        data[:0] = draw.choice((b"\xef\xbb\xbf", b"\x1f\x8b", b"\xff\xfe", b"PK\x03\x04", b"PAR1"))
    return bytes(data)

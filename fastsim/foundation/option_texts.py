"""Options as texts: names and numbers, with special characters of names escaped; texts that may be paths."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from fastsim.errors import ScenarioError, kind_of

NAMED = "name=value, each name once"


def numbers_text(pairs: Mapping[str, float]) -> str:
    """``name=number`` for each pair, with commas between; numbers keep every digit.

    >>> numbers_text({"a": 1.5, "b,c": 2})
    'a=1.5,b%2Cc=2'
    """
    return ",".join(f"{quoted(name)}={number:.17g}" for name, number in pairs.items())


def groups_text(groups: Mapping[str, Mapping[str, float]]) -> str:
    """``name:numbers`` for each group, with semicolons between.

    >>> groups_text({"team": {"cpu_milli": 4000}})
    'team:cpu_milli=4000'
    """
    return ";".join(f"{quoted(name)}:{numbers_text(pairs)}" for name, pairs in groups.items())


def quoted(name: str) -> str:
    """A name with the separators of such texts escaped."""
    return quote(name, safe="* /@.")


def elements(where: str, value: Any, expected: str, alone: tuple[type, ...] = ()) -> tuple[Any, ...]:
    """The elements of a sequence, where a value of a kind in ``alone`` is the only element.

    Other texts, mappings and values that are no sequence are a ScenarioError: nothing is read letter by letter.
    """
    if isinstance(value, alone):
        return (value,)
    if isinstance(value, str | bytes | os.PathLike | Mapping | type) or not isinstance(value, Iterable):
        raise ScenarioError(where, kind_of(value), expected)
    return tuple(value)


def path_of(where: str, value: Any, expected: str) -> Path:
    """The path that a text or path names; ScenarioError for anything else."""
    if not isinstance(value, str | os.PathLike):
        raise ScenarioError(where, kind_of(value), expected)
    return Path(value)


def parted(text: str | os.PathLike[str]) -> tuple[str, list[str]]:
    """The head of ``HEAD?word&word`` and its words, with percent escapes decoded; the path of a file is all head.

    >>> parted("kubernetes:pods.json?nodes=n+1.json&as=a%26b")
    ('kubernetes:pods.json', ['nodes=n+1.json', 'as=a&b'])
    """
    if names_file(text):
        return os.fspath(text), []
    head, _, query = os.fspath(text).strip().partition("?")
    return head, [unquote(word) for word in query.split("&") if word]


def named(words: Iterable[str], where: str, expected: str = NAMED) -> dict[str, str]:
    """Options that stand as ``name=value``; an error for other words and for a name that stands twice."""
    options: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name in options:
            raise ScenarioError(where, f"option {word!r}", expected)
        options[name] = value
    return options


def names_file(text: str | os.PathLike[str]) -> bool:
    """Whether a text is the path of a file; one that is too long or too odd for a path is none."""
    return os.path.isfile(text)  # not that of Path, to which a long text is an OSError


def names_folder(text: str | os.PathLike[str]) -> bool:
    """Whether a text is the path of a folder, in the same way."""
    return os.path.isdir(text)

"""Texts with options: names and numbers with special characters escaped, texts that may be paths, calls of makers."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from fastsim.errors import InputError, ScenarioError, kind_of, suggestion
from fastsim.foundation.limits.quantities import seconds_of

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


# ---------------------------------------------------------------------- texts of clusters and workloads


def source_parts(field: str, text: Any) -> tuple[str, dict[str, Any]]:
    """The head and the options of the text of a cluster, a workload or typical pods."""
    if not isinstance(text, str | Path):
        kind = "Cluster" if field == "cluster" else "Workload"
        raise ScenarioError(field, kind_of(text), f"a text, a path or a {kind}", _making(text, kind))
    head, words = parted(text)
    return head, settings_of(f"{field} {text!r}", words)


def _making(value: Any, kind: str) -> str:
    """How to make an object of fastsim from a table of the user's."""
    if isinstance(value, type):
        return "write the object and not its class: fs.Workload.synth(...), fs.Cluster.uniform(...)"
    library = type(value).__module__.partition(".")[0]
    if library == "pandas":
        return f"write fs.{kind}.from_pandas(frame)"
    if library == "polars":
        return f"write fs.{kind}.from_polars(frame)"
    if hasattr(value, "__arrow_c_stream__"):
        return f"write fs.{kind}.from_arrow(table)"
    if isinstance(value, Mapping | list | tuple):
        return f"write fs.{kind}.from_polars(polars.DataFrame(rows))"
    return ""


def settings_of(where: str, words: Iterable[str]) -> dict[str, Any]:
    """Options that stand as `name=value`, with numbers and true or false for what looks like them."""
    return {name: _value(name, value) for name, value in named(filter(None, words), where).items()}


def _value(name: str, text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    seconds = seconds_of(text) if name.endswith("_s") else None
    return text if seconds is None else seconds


def joined(head: str, options: Mapping[str, Any]) -> str:
    """The text of a head and its options, as `source_parts` reads it."""
    words = (f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in options.items())
    return f"{head}?{'&'.join(words)}" if options else head


def called(where: str, maker: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """The result of a maker; options that it does not have, or needs, are one clear error."""
    signature = inspect.signature(maker)
    if not any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
        refuse_options(where, options, tuple(signature.parameters))
    if lacking := _lacking(signature, options):
        raise ScenarioError(
            where, f"no option {' and no option '.join(lacking)}", f"options of ({', '.join(signature.parameters)})"
        )
    try:
        return maker(**options)
    except TypeError as error:
        raise ScenarioError(where, str(error), "values of the right kind") from None


def _lacking(signature: inspect.Signature, options: Mapping[str, Any]) -> list[str]:
    """Parameters without a default that no option is for."""
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = signature.parameters.values()
    needed = [one.name for one in parameters if one.kind in named and one.default is inspect.Parameter.empty]
    return [name for name in needed if name not in options]


def refuse_options(where: str, options: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """A ScenarioError for the first option that is not among the known ones."""
    for name in options:
        if name not in known:
            expected = f"options among {', '.join(known)}" if known else "no options"
            raise ScenarioError(where, f"unknown option {name!r}", expected, suggestion(name, known))


def unknown_name(field: str, head: str, known: Mapping[str, str]) -> InputError:
    """The error for a text that is neither a file nor a known name."""
    found = "neither a file nor a known name"
    if names_folder(head):
        found = "a folder"
    return InputError(f"{field} {head!r}", found, f"a file or one of {', '.join(known)}", suggestion(head, known))


def refuse_objects(field: str, path: str, kinds: Sequence[str]) -> None:
    """Refuse YAML and JSON, which are no tables, with the texts that name their kind."""
    if path.endswith((".yaml", ".yml", ".json", ".json.gz")):
        raise InputError(
            f"{field} {path!r}", "no table", f"its kind: {' or '.join(f'{kind}:{path}' for kind in kinds)}"
        )

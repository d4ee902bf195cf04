"""Defaults of options from a file: ``fastsim.toml``, or the table ``[tool.fastsim]`` of ``pyproject.toml``.

The nearest of the two counts, in the current folder or above it. A table has the name of a verb, its keys are options
without their dashes::

    [run]
    policy = "best_fit"
    sample-s = 60

    [sweep.run]
    workers = 4

Options of the command line come first, and with ``--scenario`` the scenario's file replaces all defaults. Paths are
relative to the current folder, as there. No text of a file may be a policy that imports code, whatever its option is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

FILE, PROJECT = "fastsim.toml", "pyproject.toml"
VARIABLE = "FASTSIM_DEFAULTS"
"""Environment variable with the path of another file; empty = no file."""
REFUSED = ("allow_code", "force")
"""Options that must be written out: a file that lies in a folder neither runs code nor replaces results."""

NO_POLICIES = (click.Path, click.Choice, *map(type, (click.INT, click.FLOAT, click.BOOL)))
"""Types of options whose values can be no policy."""


def defaults_of(commands: click.Group) -> tuple[dict[str, Any], str]:
    """The defaults as click takes them, and the file that they are from; empty without one."""
    named = os.environ.get(VARIABLE)
    if named == "":
        return {}, ""
    for path in [Path(named)] if named else _candidates(Path.cwd()):
        if named or path.is_file():
            table = _table(path)
            if table is not None:
                return _of_group(table, commands, str(path)), str(path)
    return {}, ""


def written_out(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the running verb that have a value and are not defaults of a file."""
    context = click.get_current_context()
    file = click.core.ParameterSource.DEFAULT_MAP
    return {
        name: value for name, value in options.items()
        if value is not None and value != () and context.get_parameter_source(name) is not file
    }  # fmt: skip


def _candidates(folder: Path) -> list[Path]:
    return [place / name for place in (folder, *folder.parents) for name in (FILE, PROJECT)]


def _table(path: Path) -> Mapping[str, Any] | None:
    """The content of a file; None for a project without a table for fastsim."""
    from fastsim.errors import ScenarioError
    from fastsim.foundation.nested_text import toml_value

    try:
        content: Mapping[str, Any] = toml_value(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(str(path), error.strerror or str(error), "a readable file") from None
    except ValueError as error:
        if path.name == PROJECT:  # a broken file of a project that may not use fastsim at all
            return None
        raise ScenarioError(str(path), str(error), "a TOML file") from None
    if path.name != PROJECT:
        return content
    tools = content.get("tool")
    return tools.get("fastsim") if isinstance(tools, Mapping) else None


def _of_group(table: Any, group: click.Group, where: str) -> dict[str, Any]:
    from fastsim.errors import ScenarioError, short, suggestion

    if not isinstance(table, Mapping):
        raise ScenarioError(where, short(table), "a table with the options of a verb")
    defaults = {}
    for name, value in table.items():
        verb = group.commands.get(name)
        if verb is None:
            known = ", ".join(group.commands)
            raise ScenarioError(f"{where}: {name}", "no verb of this name", f"one of {known}",
                                suggestion(name, group.commands))  # fmt: skip
        inner = f"{where}: {name}"
        defaults[name] = (
            _of_group(value, verb, inner) if isinstance(verb, click.Group) else _of_verb(value, verb, inner)
        )
    return defaults


def _of_verb(table: Any, verb: click.Command, where: str) -> dict[str, Any]:
    from fastsim.errors import ScenarioError, short, suggestion

    if not isinstance(table, Mapping):
        raise ScenarioError(where, short(table), "a table with the options of a verb")
    options = _options(verb)
    for name in table:
        if name not in options:
            known = ", ".join(options)
            raise ScenarioError(f"{where}: {name}", "no option that a file may set", f"one of {known}",
                                suggestion(name, options))  # fmt: skip
    return {str(options[name].name): _value(value, options[name], f"{where}: {name}") for name, value in table.items()}


def _options(verb: click.Command) -> dict[str, click.Option]:
    """Options that have a value for the verb, by their names without dashes."""
    options = [one for one in verb.params if isinstance(one, click.Option) and one.expose_value]
    return {
        word.removeprefix("--"): one for one in options for word in one.opts
        if word.startswith("--") and one.name not in REFUSED
    }  # fmt: skip


def _value(value: Any, option: click.Option, where: str) -> Any:
    from fastsim.errors import ScenarioError, short
    from fastsim.scenario.user_code import NO_CODE

    many = option.multiple or option.nargs != 1
    if isinstance(value, list) != many or isinstance(value, Mapping) or (option.is_flag and value not in (True, False)):
        expected = "true or false" if option.is_flag else "a list" if many else "one value"
        raise ScenarioError(where, short(value), expected)
    try:
        for one in value if many else [value]:
            option.type.convert(one, option, None)
    except click.BadParameter as error:
        raise ScenarioError(where, short(value), f"a value of --{option.name}", error.message) from None
    if not isinstance(option.type, NO_POLICIES) and any(_imports_code(one) for one in (value if many else [value])):
        raise ScenarioError(where, short(value), NO_CODE, "give it on the command line")
    return value


def _imports_code(text: Any) -> bool:
    """Whether this value of a file is the text of a policy that imports code of the user's.

    Only a parameter names a module, so that a text without a bracket, such as the name of a cluster, loads nothing.
    """
    if not isinstance(text, str) or "(" not in text:
        return False
    from fastsim.policies import registry

    return registry.imports_code(text)

"""Options of ``fastsim run`` for the fields of a scenario, and its help in groups of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from fastsim.cli.grammar.durations import DURATION
from fastsim.cli.grammar.standard_streams import READ_NAME, READ_TEXT, FileWritten
from fastsim.scenario.fields import FIELDS, GROUPS, ScenarioField

TYPES: Mapping[str, Any] = {
    "text": None, "input": READ_TEXT, "file": READ_NAME, "span": DURATION, "number": float, "whole": int, "flag": None,
    "folder": click.Path(path_type=Path), "csv": FileWritten(".csv"),
}  # fmt: skip
"""What reads the word after an option, by the kind of its field."""
BY_NAME = {field.name: field for field in FIELDS}


def option_of(field: ScenarioField) -> Callable[[Any], Any]:
    """The option of a field; one that is not given leaves the field out."""
    kind = click.Choice(field.choices) if field.choices else TYPES[field.kind]
    spellings = field.flags or (f"--{field.name.replace('_', '-')}",)
    more: dict[str, Any] = {"is_flag": True, "default": None} if field.kind == "flag" else {}
    return click.option(
        *spellings, field.name, type=kind, metavar=field.metavar, multiple=field.multiple, help=field.option, **more
    )


def scenario_options(command: Any) -> Any:
    """A command with the option of every field that has one."""
    for field in reversed(FIELDS):
        if field.option:
            command = option_of(field)(command)
    return command


class GroupedOptions(click.Command):
    """A command whose help shows the options of fields in their groups, before its own."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options."""
        sections: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (*GROUPS.values(), "Other options")}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            field = BY_NAME.get(option.name or "")
            if record is not None:
                sections[GROUPS[field.group] if field else "Other options"].append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)

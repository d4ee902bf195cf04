"""Options of ``fastsim run`` come from the table of fields, and its help shows them by group."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from fastsim.cli.grammar.scenario_options import BY_NAME, TYPES, GroupedOptions
from fastsim.cli.run import run
from fastsim.scenario.fields import FIELDS, GROUPS, ScenarioField

WITHOUT = {"retarget", "name"}
"""Fields that only Python and files give."""


def test_every_field_has_an_option_or_is_listed_without_one() -> None:
    options = {option.name for option in run.params}
    assert {field.name for field in FIELDS} - options == WITHOUT
    assert {field.kind for field in FIELDS} <= {*TYPES}
    assert isinstance(run, GroupedOptions)


@pytest.mark.parametrize("field", [field for field in FIELDS if field.option], ids=lambda field: field.name)
def test_the_help_shows_each_option_under_the_heading_of_its_group(field: ScenarioField) -> None:
    shown = CliRunner().invoke(run, ["--help"], terminal_width=200, max_content_width=200).output
    name = field.name
    option = next(one for one in run.params if isinstance(one, click.Option) and one.name == name)
    section = shown.split(f"{GROUPS[BY_NAME[name].group]}:\n")[1].split("\n\n")[0]
    assert option.opts[-1] in section


def test_an_option_that_is_not_given_leaves_its_field_out() -> None:
    context = run.make_context("run", [])
    given = {name: value for name, value in context.params.items() if name in BY_NAME and value not in (None, ())}
    assert given == {}

"""The help of all verbs."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import pytest

from fastsim.cli.grammar.sections import CODES, EXAMPLES, SECTIONS
from fastsim.cli.main import commands
from tests.cli.terminal import fastsim_here
from tests.cli.test_grammar import VERBS


def test_every_verb_is_in_one_section() -> None:
    assert sorted(name for names in SECTIONS.values() for name in names) == sorted(commands.commands)


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_an_example_that_it_understands(name: str) -> None:
    assert name in EXAMPLES and f"fastsim {name} {EXAMPLES[name]}" in (VERBS[name].epilog or "")
    VERBS[name].make_context(name, shlex.split(EXAMPLES[name])).close()


def test_the_help_names_sections_examples_and_exit_codes(tmp_path: Path) -> None:
    text = " ".join(fastsim_here("--help", cwd=tmp_path).out.split())
    for title, names in SECTIONS.items():
        assert f"{title}:" in text and f"Example: fastsim {names[0]} {EXAMPLES[names[0]]}" in text
    for code, meaning in CODES:
        assert f"{code} {meaning}" in text


def test_groups_show_their_example(tmp_path: Path) -> None:
    groups = [name for name, verb in commands.commands.items() if isinstance(verb, click.Group)]
    for name in groups:
        assert f"Example: fastsim {name} " in fastsim_here(name, "--help", cwd=tmp_path).out

"""One grammar for all verbs: what is read is positional, what is written is `-o`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from fastsim.cli.main import commands
from tests.cli.terminal import fastsim_here


def verbs(group: click.Group = commands, above: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every verb with its full name."""
    for name, verb in group.commands.items():
        if isinstance(verb, click.Group):
            yield from verbs(verb, f"{above}{name} ")
        else:
            yield f"{above}{name}", verb


VERBS = dict(verbs())


@pytest.mark.parametrize("name", VERBS)
def test_what_is_written_is_o(name: str) -> None:
    options = [{*one.opts} for one in VERBS[name].params if isinstance(one, click.Option)]
    assert not [one for one in options if "--output" in one]
    assert all(("-o" in one) == ("--out" in one) for one in options)


@pytest.mark.parametrize("name", VERBS)
def test_only_arguments_name_what_was_saved(name: str) -> None:
    read = {"--dir", "--run", "--folder", "--result", "--input", "--in"}
    assert not read & {word for one in VERBS[name].params for word in one.opts}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["explain", "runs"], "neither POD nor --sample"),
        (["explain", "runs", "1", "--sample", "2"], "both POD and --sample 2"),
    ],
)
def test_refusals_name_what_was_found(words: list[str], found: str, tmp_path: Path) -> None:
    outcome = fastsim_here(*words, cwd=tmp_path)
    assert outcome.code == 2 and f"found {found}" in outcome.line

"""Options that are lengths of time: every one takes units, and says what it expects."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from fastsim.cli.grammar.durations import DURATION, Duration
from fastsim.cli.main import commands

OTHERS = {("monitor import", "step"), ("monitor export", "slice_s"), ("profile synergy", "disk_mb_s")}
"""Options in whole seconds, and one in MB/s."""


def options(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Option]]:
    """Every option of a command and its verbs."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            verb = command.get_command(context, name)
            assert verb is not None
            yield from options(verb, (*words, name))
    yield from ((" ".join(words), item) for item in command.params if isinstance(item, click.Option))


def test_every_option_of_seconds_takes_units() -> None:
    numbers = (click.types.FloatParamType, click.types.IntParamType, Duration)
    found = {
        (verb, str(item.name)): item.type
        for verb, item in options(commands)
        if isinstance(item.type, numbers) and (str(item.name).endswith("_s") or item.metavar == "S")
    }
    assert len(found) > 10 and {key for key, kind in found.items() if not isinstance(kind, Duration)} == OTHERS


def test_seconds_and_units() -> None:
    given = ("90", "-1", "1e-3", "1h", "1d12h")
    assert [DURATION.convert(text, None, None) for text in given] == [90.0, -1.0, 0.001, 3600.0, 129_600.0]
    with pytest.raises(
        click.BadParameter, match="'1 m' is no such length of time: expected seconds, or a length of time"
    ):
        DURATION.convert("1 m", None, None)
    with pytest.raises(click.BadParameter, match="expected seconds above 0"):
        Duration("above 0").convert("0s", None, None)

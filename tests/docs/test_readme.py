"""README.md is executed: sessions with their output, scripts, and the options of its commands."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    """The fenced blocks of one kind, in order."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", README, re.M | re.S)


def ran(script: str, folder: Path, *arguments: str) -> str:
    """Standard output of a script run in an empty folder, where every warning is an error."""
    path = folder / "script.py"
    path.write_text(script)
    command = [sys.executable, "-W", "error", str(path), *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_page_begins_with_an_example() -> None:
    assert README.splitlines().index("```pycon") < 30


def test_sessions_print_what_they_show() -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for number, block in enumerate(blocks("pycon")):
        runner.run(doctest.DocTestParser().get_doctest(block, {}, f"README session {number}", "README.md", 0))
    assert runner.tries > 0
    assert runner.failures == 0


@pytest.mark.parametrize("script", [b for b in blocks("python") if "sys.argv" not in b])
def test_scripts_run(script: str, tmp_path: Path) -> None:
    assert ran(script, tmp_path).count("\n") == 2


def test_the_script_on_the_real_trace(shared: Callable[[str], Path], tmp_path: Path) -> None:
    (script,) = (b for b in blocks("python") if "sys.argv" in b)
    assert len(script.splitlines()) <= 25
    printed = ran(script, tmp_path, str(shared("data/openb/native")))
    assert "weng2023fgd" in printed
    assert (tmp_path / "openb.html").stat().st_size > 100_000
    assert (tmp_path / "fragmentation.svg").read_text().startswith("<svg")


def shown_commands() -> list[list[str]]:
    """The words of every ``fastsim`` command on the page."""
    lines = re.findall(r"^\$ (.*)$", "".join(blocks("console")), re.M)
    commands = [part.strip() for line in lines for part in line.split("&&")]
    return [shlex.split(command) for command in commands if command.startswith("fastsim ")]


@pytest.mark.parametrize("words", shown_commands(), ids=" ".join)
def test_commands_and_their_options_exist(words: list[str]) -> None:
    import click

    from fastsim.cli.main import commands

    found: click.Command = commands
    for word in words[1:]:
        if isinstance(found, click.Group):
            found = found.commands.get(word) or found.commands["run"]  # a sweep file stands where a verb may
    known = {option for parameter in found.params for option in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= known

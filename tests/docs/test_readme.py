"""What README and guides show is run: sessions with their output, scripts, and commands."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from fastsim.cli.main import commands as verbs
from fastsim.cli.main import exit_code
from fastsim.experiments.capacity_plan import ENOUGH
from tests.docs.pages import PAGES, ROOT, all_blocks, commands, files, outputs_of_scripts, shown
from tests.needs import needed

SCRIPTS = [(page, block) for page, block in all_blocks("python") if "sys.argv" not in block]
TRAINING = "sb3_contrib"
"""Imported by the script that trains for most of a minute."""
FIRST_SCREEN = 150
"""Lines of README.md: what is longer belongs to a guide."""


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
    lines = PAGES["README"].splitlines()
    assert lines.index("```pycon") < 25 and len(lines) <= FIRST_SCREEN


def test_the_comparison_from_the_command_line_is_that_of_python() -> None:
    page = PAGES["README"]
    session, console = page[page.index(">>> cluster") :].split("The same comparison from the command line")
    preset, pods, seed = (
        re.search(text, session) for text in (r'preset\("(.*?)"\)', r'pods = "(.*?)"', r", seed=(\d+)")
    )
    assert preset and pods and seed
    runs = [line for line in console.splitlines() if line.startswith("$ fastsim run")][:2]
    for line in runs:
        words = shlex.split(line)
        options = dict(zip(words[3::2], words[4::2], strict=True))
        assert options["--policy"] in session and (options["--cluster"], options["--workload"], options["--seed"]) == (
            preset[1], pods[1], seed[1])  # fmt: skip
    shares = re.findall(r"(\S+) % of GPU allocated", session)
    assert len(runs) == 2 and len(set(shares)) == len(shares)  # policies differ, as they do where GPUs are scarce


@pytest.mark.spread(5)
@pytest.mark.parametrize("session", [pytest.param(block, id=page) for page, block in all_blocks("pycon")])
def test_each_session_alone_prints_what_it_shows(session: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader pastes one block, into an empty folder."""
    monkeypatch.chdir(tmp_path)
    if "decisions.agents" in session:
        pytest.importorskip("gymnasium", reason="gymnasium is not installed (extra rl)")
    if ".plot(" in session:
        pytest.importorskip("altair", reason="altair is not installed (extra report)")
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(doctest.DocTestParser().get_doctest(session, {}, "page", "page.md", 0))
    assert runner.tries > 0
    assert runner.failures == 0


@pytest.mark.parametrize("block", [pytest.param(block, id=page) for page, block in all_blocks("sh")])
def test_commands_that_need_more_say_so_before(block: str) -> None:
    assert block.startswith("# needs ")


@pytest.mark.spread(1)
@pytest.mark.parametrize(
    "script",
    [pytest.param(block, marks=[pytest.mark.long] * (TRAINING in block), id=page) for page, block in SCRIPTS],
)
def test_scripts_run(script: str, tmp_path: Path) -> None:
    outputs = dict(outputs_of_scripts())
    if "to_pictures" in script:
        needed("vl_convert")
    if TRAINING in script:
        pytest.importorskip(TRAINING, reason="sb3-contrib, which needs PyTorch, is not installed")
    printed = ran(script, tmp_path)
    shown = outputs.get(script)
    assert printed == shown if shown else printed.count("\n") == (3 if TRAINING in script else 2)


@pytest.mark.long
def test_the_script_on_the_real_trace(shared: Callable[[str], Path], tmp_path: Path) -> None:
    (script,) = (block for _, block in all_blocks("python") if "sys.argv" in block)
    assert len(script.splitlines()) <= 25
    printed = ran(script, tmp_path, str(shared("data/openb/native")))
    assert "weng2023fgd" in printed
    assert (tmp_path / "openb.html").stat().st_size > 100_000
    assert (tmp_path / "fragmentation.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    "words", [words for page in PAGES for kind in ("console", "sh") for words in commands(page, kind)], ids=" ".join
)
def test_commands_and_their_options_exist(words: list[str]) -> None:
    found: click.Command = verbs
    for word in words[1:]:
        if isinstance(found, click.Group):
            found = found.commands.get(word) or found.commands["run"]  # a sweep file stands where a verb may
    known = {option for parameter in found.params for option in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= known


def test_the_week_with_a_cluster_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines that are shown are lines of the output, in order; blanks at their ends do not count."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for name, text in files("kubernetes"):
        Path(name).write_text(text)
    for words, lines in shown("kubernetes"):
        assert exit_code(words[1:]) == 0, words
        printed = iter(line.rstrip() for line in capsys.readouterr().out.splitlines())
        missing = [line for line in lines if line not in printed]
        assert missing == [], words


@pytest.mark.spread(5)
@pytest.mark.parametrize("page", [page for page in PAGES if commands(page, "console")])
def test_commands_run_one_after_the_other(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``console`` blocks need nothing but the package; those that need files or servers of the reader are ``sh``.

    Plans find nodes to add: an example that has enough of them shows nothing.
    """
    if "report" in {words[1] for words in commands(page, "console")}:
        pytest.importorskip("altair", reason="altair is not installed (extra report)")
    folder = tmp_path / "reader"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name, text in files(page):
        Path(name).write_text(text)
    for words in commands(page, "console"):
        if words != ["fastsim", "demo"]:  # CI runs it as it stands
            assert exit_code(words[1:]) in expected_codes(words), words
            assert words[1] != "plan" or ENOUGH not in capsys.readouterr().out, words
    assert [*tmp_path.iterdir()] == [folder], "a command wrote outside its folder"
    shutil.rmtree(folder)


def expected_codes(words: list[str]) -> set[int]:
    """Exit codes of a command that is fine: ``trace lint`` says 1 where it found something."""
    return {0, 1} if words[1:3] == ["trace", "lint"] else {0}

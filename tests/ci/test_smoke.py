"""The verbs that the smoke asks for help are those that a page of help lists."""

from __future__ import annotations

import runpy
from pathlib import Path

from fastsim.cli.main import VERBS
from tests.cli.terminal import fastsim_here
from tests.style.tree import ROOT

PAGE = """Usage: fastsim [OPTIONS]

Options:
  --version  Show it.

Commands:
  run        Place pods.
  new-policy Write one,
             with a test.
"""


def test_verbs_of_a_page() -> None:
    listed = runpy.run_path(str(ROOT / ".ci" / "smoke.py"))["listed_verbs"]
    assert [*listed(PAGE)] == ["run", "new-policy"]
    assert [*listed("Usage: fastsim run\n")] == []


def test_every_verb_of_the_command_line(tmp_path: Path) -> None:
    listed = runpy.run_path(str(ROOT / ".ci" / "smoke.py"))["listed_verbs"]
    page = fastsim_here("--help", cwd=tmp_path).out
    assert {*listed(page)} == {verb.name for verb in VERBS}

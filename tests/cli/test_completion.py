"""Shells complete verbs, options and choices: their completion functions are run as they would run them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import environment

BASH = r"""
eval "$(_FASTSIM_COMPLETE=bash_source fastsim)"
COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _fastsim_completion fastsim
printf '%%s\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """An environment in which ``fastsim`` is this installation's command."""
    command = tmp_path / "fastsim"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m fastsim.cli.main "$@"\n')
    command.chmod(0o755)
    found = environment()
    return found | {"PATH": f"{tmp_path}{os.pathsep}{found['PATH']}"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [("fastsim rep", ["report", "reproduce"]), ("fastsim run --gpu-p", ["--gpu-pick"]),
     ("fastsim run --gpu-pick dot", ["dot_product"])],
)  # fmt: skip
def test_bash_completes(shell: dict[str, str], words: str, expected: list[str]) -> None:
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    done = subprocess.run(["bash", "-c", BASH % words], env=shell, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr, done.stdout.split()) == (0, "", expected)


@pytest.mark.parametrize(("name", "separator"), [("zsh", "\n"), ("fish", ",")])
def test_zsh_and_fish_get_what_they_ask_for(shell: dict[str, str], name: str, separator: str) -> None:
    asked = shell | {"COMP_WORDS": "fastsim rep", "COMP_CWORD": "rep" if name == "fish" else "1"}
    function, found = (
        subprocess.run(
            ["fastsim"],
            env=asked | {"_FASTSIM_COMPLETE": f"{name}_{what}"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        for what in ("source", "complete")
    )
    assert (function.returncode, found.returncode, function.stderr + found.stderr) == (0, 0, "")
    assert f"_FASTSIM_COMPLETE={name}_complete" in function.stdout
    assert f"plain{separator}report" in found.stdout and f"plain{separator}run" not in found.stdout

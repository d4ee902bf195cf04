"""The options -q, -v and --debug."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminal import fastsim_here
from tests.cli.test_grammar import VERBS

DROPS = ("run", "--cluster", "openb:3", "--workload", "synth:openb?pods=200")


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_them(name: str) -> None:
    words = {word for one in VERBS[name].params for word in one.opts}
    assert {"-q", "--quiet", "--debug"} <= words and ({"-v", "--verbose"} <= words or name == "sweep init")


def test_quiet_leaves_results_and_errors(tmp_path: Path) -> None:
    loud, quiet = fastsim_here(*DROPS, cwd=tmp_path), fastsim_here(*DROPS, "-q", cwd=tmp_path)
    assert "--queue fifo" in loud.err and not quiet.err and quiet.out.startswith("pods ")
    assert "no such policy" in fastsim_here("-q", *DROPS, "--policy", "no such policy", cwd=tmp_path).line


def test_verbose_says_what_it_took(tmp_path: Path) -> None:
    (tmp_path / "fastsim.toml").write_text("[list]\njson = true\n")
    said = fastsim_here("list", "policies", "-v", cwd=tmp_path)
    assert (said.code == 0 and said.out.startswith("{")) or said.out.startswith("[")
    assert said.line.startswith(f"fastsim: defaults of {tmp_path / 'fastsim.toml'}; took ") and "MiB" in said.line


@pytest.mark.parametrize("words", [("--debug", "describe", "fgd"), ("describe", "--debug", "fgd")])
def test_debug_stands_before_or_after_the_verb(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(name: str) -> None:
        raise ZeroDivisionError("nothing to divide")

    monkeypatch.setattr("fastsim.policies.registry.describe", broken)
    with pytest.raises(ZeroDivisionError):
        fastsim_here(*words, cwd=tmp_path)

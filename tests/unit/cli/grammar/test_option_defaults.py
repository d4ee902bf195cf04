"""Defaults of options from fastsim.toml and pyproject.toml."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import fastsim_here

RUN = ("run", "--cluster", "openb:3", "--workload", "synth:openb?pods=3", "--json")


def scenario(tmp_path: Path, *words: object) -> dict[str, Any]:
    """The scenario of a run with these options."""
    ran = fastsim_here(*RUN, *words, cwd=tmp_path)
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)["provenance"]["scenario"]
    return found


def test_the_nearest_file_holds_and_the_command_line_comes_first(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[tool.fastsim.run]\npolicy = "best_fit"\nseed = 3\n')
    assert {name: scenario(inner)[name] for name in ("policy", "seed")} == {"policy": "best_fit", "seed": 3}
    (inner.parent / "fastsim.toml").write_text('[run]\nsample-s = 60\ndeschedule = ["cos_sim:0.1"]\n')
    found = scenario(inner, "--policy", "pwr")
    assert (found["policy"], found["sample_s"], found["deschedule"], found.get("seed", 0)) == (
        "pwr",
        60.0,
        ["cos_sim:0.1"],
        0,
    )


def test_a_project_without_a_table_or_without_sense_is_passed_over(tmp_path: Path) -> None:
    inner = tmp_path / "a"
    inner.mkdir()
    (inner / "pyproject.toml").write_text("[project]\nname = ")
    (tmp_path / "fastsim.toml").write_text("[run]\nseed = 5\n")
    assert scenario(inner)["seed"] == 5


def test_a_scenario_file_comes_before_defaults(tmp_path: Path) -> None:
    (tmp_path / "fastsim.toml").write_text('[run]\npolicy = "best_fit"\n')
    (tmp_path / "s.toml").write_text('policy = "pwr"\n')
    assert scenario(tmp_path, "--scenario", "s.toml")["policy"] == "pwr"


def test_the_variable_names_another_file_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fastsim.toml").write_text("[run]\nseed = 5\n")
    (tmp_path / "other.toml").write_text("[run]\nseed = 6\n")
    monkeypatch.setenv("FASTSIM_DEFAULTS", str(tmp_path / "other.toml"))
    assert scenario(tmp_path)["seed"] == 6
    monkeypatch.setenv("FASTSIM_DEFAULTS", "")
    assert "seed" not in scenario(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[runs]\nseed = 1", "fastsim.toml: runs: found no verb of this name"),
        ("[run]\nseeds = 1", "run: seeds: found no option that a file may set"),
        ("[run]\nallow-code = true", "run: allow-code: found no option that a file may set"),
        ("[run]\nforce = true", "run: force: found no option that a file may set"),
        ("[run]\nseed = 'x'", "run: seed: found 'x'"),
        ("[run]\nseed = [1]", "run: seed: found [1], expected one value"),
        ("[run]\ndeschedule = 'x'", "run: deschedule: found 'x', expected a list"),
        ("[run]\njson = 'yes'", "run: json: found 'yes', expected true or false"),
        ("run = 3", "run: found 3, expected a table"),
        ("[run", "fastsim.toml: found "),
    ],
)
def test_what_means_nothing_is_one_error(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "fastsim.toml").write_text(text + "\n")
    refused = fastsim_here(*RUN, cwd=tmp_path)
    assert refused.code == 2 and message in refused.line

"""A new policy works at once: its own test is green, and as a plugin it is found by name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fastsim as fs
from fastsim.cli.list import POLICY_KINDS
from fastsim.cli.main import exit_code
from fastsim.policies.template import KINDS, new_policy


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python in a process of its own that sees the folder."""
    root = str(Path(fs.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), root])}
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.long
def test_its_test_is_green_and_a_plugin_is_found(tmp_path: Path) -> None:
    files = new_policy("tight_fit", tmp_path)
    assert [path.name for path in files] == ["tight_fit_policy.py", "test_tight_fit_policy.py", "pyproject.toml"]
    # What pip writes for an installed plugin, as far as entry points go.
    known = tmp_path / "tight_fit_policy-0.1.dist-info"
    known.mkdir()
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: tight-fit-policy\nVersion: 0.1\n")
    (known / "entry_points.txt").write_text("[fastsim.policies]\ntight_fit = tight_fit_policy:TightFit\n")
    tested = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", files[1].name)
    assert tested.returncode == 0 and "3 passed" in tested.stdout, tested.stdout + tested.stderr
    listed = run(tmp_path, "-m", "fastsim.cli.main", "describe", "tight_fit")
    assert "cpu_weight=0.01 [points]" in listed.stdout, listed.stderr
    arguments = (
        "--cluster",
        "openb:10",
        "--workload",
        "synth:openb?pods=20&seed=1",
        "--policy",
        "tight_fit(cpu_weight=0)",
    )
    assert run(tmp_path, "-m", "fastsim.cli.main", "run", *arguments).returncode == 0


@pytest.mark.long
def test_the_tests_of_policies_for_jobs_are_green(tmp_path: Path) -> None:
    kinds = [kind for kind in KINDS if kind != "placement"]
    names = [new_policy(f"my_{kind}", tmp_path / kind, kind)[1].relative_to(tmp_path).as_posix() for kind in kinds]
    tested = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", *names)
    assert tested.returncode == 0 and f"{3 * len(kinds)} passed" in tested.stdout, tested.stdout + tested.stderr


def test_an_unknown_kind_is_named(tmp_path: Path) -> None:
    with pytest.raises(fs.ScenarioError, match="did you mean 'order'"):
        new_policy("mine", tmp_path, "ordr")
    assert tuple(KINDS) == POLICY_KINDS


def test_the_project_declares_the_entry_point(tmp_path: Path) -> None:
    import tomllib

    project = tomllib.loads(new_policy("mine", tmp_path)[2].read_text())
    assert project["project"]["entry-points"]["fastsim.policies"] == {"mine": "mine_policy:Mine"}


@pytest.mark.parametrize(("name", "told"), [("fgd", "no policy has"), ("My", "letters"), ("class", "letters")])
def test_names_that_cannot_be(name: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(fs.ScenarioError, match=told):
        new_policy(name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_nothing_is_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["new-policy", "mine", "--out", str(tmp_path / "new")]) == 0
    assert "pip install -e ." in capsys.readouterr().out
    assert exit_code(["new-policy", "mine", "--out", str(tmp_path / "new")]) == 2
    assert "a file that is there" in capsys.readouterr().err

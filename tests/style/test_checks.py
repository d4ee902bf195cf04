"""The commands that check the project: pins that agree, no address of a machine, and a page that names them."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from tests.needs import needed
from tests.style.tree import ROOT

PIN = re.compile(r"[\w.-]+==[\w.]+ ; python_version == \"3\.\d+\"")


def pins() -> list[str]:
    """The lines of the constraints, without remarks."""
    lines = (ROOT / ".ci" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def test_constraints_are_pins_and_nothing_else() -> None:
    assert [line for line in pins() if not PIN.fullmatch(line)] == []


def test_constraints_agree_with_the_pins_of_the_project() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    pinned = {text for texts in extras.values() for text in texts if "==" in text}
    assert pinned and pinned <= {line.partition(" ;")[0] for line in pins()}


def test_the_page_names_the_commands() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for command in ("python -m pytest -n 2", "bash .ci/run --quick", "bash .ci/run", "python -m tests.stress"):
        assert f"\n$ {command}" in page, command


def test_the_landing_asks_for_the_long_tests_once() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert sum(line.startswith("FASTSIM_LONG=1 ") for line in lines) == 1


def workflow(name: str) -> dict[str, Any]:
    """A workflow of the forge, read as data."""
    text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
    return dict(needed("yaml").safe_load(text))


def test_workflows_run_the_landing_and_the_commands_of_the_page() -> None:
    jobs = workflow("tests")["jobs"]
    commands = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs.items()}
    assert commands["landing"] == ["bash .ci/run"]
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    install, tests = [line[2:] for line in page.splitlines() if line.startswith("$ ")][:2]
    assert commands["suite"] == [*install.split(" && "), tests]


def test_wheels_are_made_for_every_platform_and_sent_by_a_release_alone() -> None:
    jobs = workflow("wheels")["jobs"]
    names = {entry["name"] for entry in jobs["wheels"]["strategy"]["matrix"]["include"]}
    assert names == {"linux-x86_64", "linux-aarch64", "macos-arm64"}
    assert jobs["publish"]["if"] == "github.event_name == 'release'"


def test_every_switch_of_the_tests_is_explained() -> None:
    explained = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")]
    switches = {name for text in texts for name in re.findall(r'environ\.get\("(FASTSIM_\w+)"', text)}
    assert "FASTSIM_LONG" in switches and {name for name in switches if name not in explained} == set()

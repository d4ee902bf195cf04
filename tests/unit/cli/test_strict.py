"""What is not honoured of Kubernetes objects: listed once by each command, and refused with --strict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastsim.cli.main import exit_code
from tests.objects import node, pod, written

SPREAD = "pods: topologySpreadConstraints with Sometimes: 2"
BARE = "nodes: without allocatable CPU or memory, which offer none: 1"


@pytest.fixture
def objects(tmp_path: Path) -> Path:
    """Nodes and pods of which not everything is honoured."""
    bare = {**node("bare"), "status": {}}
    spread = [{"whenUnsatisfiable": "Sometimes"}]
    pods = [pod(name, {"cpu": 1}, topologySpreadConstraints=spread) for name in ("a", "b")]
    return written(tmp_path / "objects.json", node(), bare, *pods, {"kind": "NodePool", "metadata": {"name": "s"}})


def told(capsys: pytest.CaptureFixture[str], code: int, *words: object) -> str:
    """What a command says on standard error."""
    capsys.readouterr()
    assert exit_code([str(word) for word in words]) == code
    return capsys.readouterr().err


def commands(objects: Path, folder: Path) -> dict[str, list[Any]]:
    both = ["--cluster", f"kubernetes:{objects}", "--workload", f"kubernetes:{objects}", "--policy", "best_fit"]
    return {
        "run": ["run", *both, "--out", folder / "run"], "plan": ["plan", *both, "--add", "node:n1"],
        "import": ["import", "kubernetes", objects, "-o", folder / "pods.parquet"],
        "explain": ["explain", folder / "made", "0"],
    }  # fmt: skip


@pytest.mark.parametrize("verb", ["run", "plan", "import", "explain"])
def test_listed_once_and_refused_if_wanted(
    objects: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    words = commands(objects, tmp_path)[verb]
    if verb == "explain":
        assert exit_code([*map(str, commands(objects, tmp_path)["run"][:-1]), str(tmp_path / "made")]) == 0
    refusal = told(capsys, 2, *words, "--strict")
    assert refusal.count("\n") == 1 and refusal.startswith("fastsim: --strict: found ")
    assert all(refusal.count(text) == 1 for text in (SPREAD, BARE, "objects of kind NodePool: 1"))
    assert not (tmp_path / "run").exists() and not (tmp_path / "pods.parquet").exists()
    listed = told(capsys, 0, *words)
    assert all(listed.count(text) == 1 for text in (SPREAD, BARE, "objects of kind NodePool: 1"))


def test_nodes_that_two_texts_read_are_told_once(
    objects: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pods = written(tmp_path / "p.json", pod("a", {"cpu": 1}))
    words = ["--cluster", f"kubernetes:{objects}", "--workload", f"kubernetes:{pods}?nodes={objects}"]
    assert told(capsys, 0, "run", *words).count(BARE) == 1


def test_what_is_honoured_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "a.json", node(), pod("a", {"cpu": 1}))
    assert exit_code([*map(str, commands(path, tmp_path)["run"]), "--strict"]) == 0
    assert told(capsys, 0, *commands(path, tmp_path)["import"], "--strict") == ""
    assert exit_code(["run", "--cluster", "openb:2", "--workload", "synth:openb?pods=5", "--strict"]) == 0

"""The verb consolidate: text, JSON, evictions and moved pods as files, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fastsim.cli.main import exit_code
from fastsim.kubernetes.objects import manifests
from tests.objects import node, written
from tests.unit.decisions.what_if.test_consolidation import runs


@pytest.fixture
def now(tmp_path: Path) -> str:
    """Two nodes that one could replace."""
    pods = [runs("a", "n1", {"cpu": 1}), runs("b", "n2", {"cpu": 4})]
    return f"kubernetes:{written(tmp_path / 'now.json', node('n1'), node('n2'), *pods)}"


def test_nodes_moves_and_evictions_are_written(now: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / "evictions.json", tmp_path / "moved.json"]
    words = ["consolidate", "--cluster", now, "--node-prices", "cpu=2", "-o", str(files[0]), "--moved", str(files[1])]
    assert exit_code(words) == 0
    printed = capsys.readouterr().out
    assert "n1    default/a" in printed and "1 of 2 nodes can be emptied by 1 moves" in printed
    assert "2 $ an hour; no set of nodes is worth more" in printed
    [evicted], [moved] = (manifests(file) for file in files)
    assert (evicted.kind, evicted.name, evicted.body["apiVersion"]) == ("Eviction", "a", "policy/v1")
    assert moved.part("spec")["nodeName"] == "n2"
    assert exit_code([*words[:3], "--json"]) == 0
    record: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert [one["node"] for one in record["nodes"]] == ["n1"] and record["optimal"] is True


def test_exit_code_1_if_no_node_can_be_emptied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path / "full.json", node("n1"), runs("a", "n1", {"cpu": 8}), {"kind": "NodePool"})
    assert exit_code(["consolidate", "--cluster", f"kubernetes:{file}"]) == 1
    printed = capsys.readouterr()
    assert "stays: n1: its pods find no room elsewhere" in printed.out
    assert printed.err == "not honoured: objects of kind NodePool (1)\n"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--cluster", "openb:2"], "--cluster: found 'openb:2', expected kubernetes:PATH"),
        (["--cluster", "kubernetes:none.json"], "none.json: found no such file or folder"),
        (["--node-prices", "g2=1"], "node prices: found none of n1 or cpu"),
        (["--node-prices", "cpu=x"], "node prices: cpu: found 'x'"),
        (["--evict", "all"], "'all' is not one of"),
        (["-o", "x.txt"], "x.txt: found a name that ends in .txt"),
    ],
)  # fmt: skip
def test_bad_input(now: str, words: list[str], found: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = words if "--cluster" in words else ["--cluster", now, *words]
    assert exit_code(["consolidate", *given]) == 2
    line = capsys.readouterr().err
    assert found in line and "Traceback" not in line

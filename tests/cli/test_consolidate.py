"""The verb consolidate: text, JSON, evictions and moved pods as files, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import fastsim as fs
from fastsim.cli.main import exit_code
from fastsim.kubernetes.objects import manifests
from tests.cli.terminal import fastsim_here
from tests.objects import node, written
from tests.unit.decisions.what_if.test_consolidation import Twin, runs


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


@pytest.mark.parametrize("ending", ["yaml", "json"])
@pytest.mark.parametrize("seed", range(100, 112))
def test_the_written_evictions_applied_to_the_dump_empty_the_nodes(seed: int, ending: str, tmp_path: Path) -> None:
    """The dump without evicted pods, with the moved ones and with emptied nodes cordoned, is read again."""
    objects, files = Twin(seed).objects(), [tmp_path / f"{name}.{ending}" for name in ("evictions", "moved")]
    now = f"kubernetes:{written(tmp_path / 'now.json', *objects)}"
    words = ["consolidate", "--cluster", now, "--json", "-o", files[0], "--moved", files[1]]
    outcome = fastsim_here(*words, cwd=tmp_path)
    if outcome.code == 1:
        return
    record = json.loads(outcome.out)
    evicted, moved = (manifests(file) if any(one["moves"] for one in record["nodes"]) else [] for file in files)
    assert {item.kind for item in evicted} <= {"Eviction"}
    assert sorted(item.name for item in evicted) == sorted(item.name for item in moved)
    gone = {("Pod", item.name) for item in evicted}
    emptied = {one["node"] for one in record["nodes"]}
    kept = [item for item in objects if (item["kind"], item["metadata"]["name"]) not in gone]
    for item in kept:
        item["spec"] |= {"unschedulable": True} if item["metadata"]["name"] in emptied else {}
    after = f"kubernetes:{written(tmp_path / 'after.json', *kept, *(dict(item.body) for item in moved))}"
    found = fs.simulate(after, after, "best_fit").placements
    nodes = found["node"].to_list()
    assert len(nodes) == sum(item["kind"] == "Pod" for item in objects)
    assert None not in nodes and not emptied & set(nodes)
    again = fastsim_here("consolidate", "--cluster", after, "--json", cwd=tmp_path)
    # The emptied nodes are idle then, and no other node can be emptied.
    assert {one["node"]: one["moves"] for one in json.loads(again.out)["nodes"]} == {name: [] for name in emptied}


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

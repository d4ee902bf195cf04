"""The verb plan: what to add, as a table and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fastsim.cli.main import exit_code
from tests.objects import node, pod, written

WORDS = ["plan", "--cluster", "openb:3", "--workload", "synth:openb?pods=200", "--add", "g2"]


def test_what_to_add(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code([*WORDS, "--add", "t4", "--most", "4"]) == 0
    printed = capsys.readouterr().out
    assert "g2" in printed and "t4" in printed and "additions" in printed
    assert exit_code([*WORDS, "--queue", "fifo", "--p95-wait-s", "1e9", "--json"]) == 0
    [row] = json.loads(capsys.readouterr().out)
    assert row["add"] == "g2" and row["outcome"] in ("found", "enough already") and row["wait_p95_s"] is not None


def test_alternatives_with_prices_and_emissions(capsys: pytest.CaptureFixture[str]) -> None:
    words = [*WORDS, "--add", "t4", "--node-prices", "g2=10&t4=2", "--carbon", "400?pue=1.3", "--objective", "cost"]
    assert exit_code([*words, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    found = [row["price_per_h"] for row in rows if row["price_per_h"] is not None]
    assert found == sorted(found) and all(row["tariff"] == "price" for row in rows)
    assert all(row["co2_kg"] == pytest.approx(row["energy_kwh"] * 1.3 * 0.4) for row in rows if row["co2_kg"])
    assert exit_code(words) == 0
    printed = capsys.readouterr().out
    assert "$/h" in printed and "need the last addition" in printed


def test_what_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for more, found in ((["--add", "g22"], "unknown node type"), (["--p95-wait-s", "-1"], "more than 0 s")):
        assert exit_code([*WORDS, *more]) == 2
        output = capsys.readouterr()
        assert found in output.err and len(output.err.splitlines()) == 1 and not output.out


def test_each_warning_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    service = {"kind": "NodePool", "metadata": {"name": "s"}}
    path = written(tmp_path / "now.json", node("n1"), node("n2"), pod("p", {"cpu": 1}), service)
    objects = ["--cluster", f"kubernetes:{path}", "--workload", f"kubernetes:{path}"]
    assert exit_code(["plan", *objects, "--add", "node:n1", "--add", "node:n2"]) == 0
    assert capsys.readouterr().err == f"fastsim: warning: {path}: objects of kind NodePool: 1, such as s\n"


def test_what_is_said_of_nodes_is_said_of_the_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    now = written(tmp_path / "now.json", node("n1", amounts={"nvidia.com/gpu": 1, "nvidia.com/gpu.shared": 2}))
    more = written(tmp_path / "more.json", pod("p", {"cpu": 1}))
    objects = ["--cluster", f"kubernetes:{now}", "--workload", f"kubernetes:{more}?nodes={now}"]
    assert exit_code(["plan", *objects, "--add", "node:n1"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines and all(line.startswith(f"fastsim: warning: {now}: nodes: ") for line in lines)


def test_assumed_durations_are_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mate = {"phase": "Succeeded", "startTime": "2026-01-01T00:00:00Z", "containerStatuses": [
        {"state": {"terminated": {"finishedAt": "2026-01-01T00:10:00Z"}}}]}  # fmt: skip
    meta = {"ownerReferences": [{"kind": "Job", "name": "etl"}]}
    pods = pod("o", {"cpu": 1}, status=mate, meta=meta, nodeName="n1"), pod("p", {"cpu": 1}, meta=meta)
    path = written(tmp_path / "now.json", node("n1"), *pods, pod("q", {"cpu": 1}))
    words = ["plan", "--cluster", f"kubernetes:{path}", "--workload", f"kubernetes:{path}", "--add", "node:n1"]
    old = f"kubernetes:{path}?as=trace"
    for durations, told in (("own", "by tenant in these pods"), (old, f"by tenant in {old}")):
        assert exit_code([*words, "--durations", durations, "--p95-wait-s", "1h"]) == 0
        line = f"fastsim: warning: plan: durations of 2 of 2 pods are assumed: 1 by owner, 1 {told}\n"
        assert capsys.readouterr().err == line
    assert exit_code([*words, "--durations", "kubernetes:absent.json"]) == 2
    assert "absent.json" in capsys.readouterr().err


def test_no_answer_is_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code([*WORDS[:-1], "cpu32m64", "--most", "1"]) == 1
    output = capsys.readouterr()
    assert "cpu32m64" in output.out and "internal" not in output.err
    assert exit_code([*WORDS, "--add", "cpu32m64", "--most", "4"]) == 0  # one of the two has an answer


def test_what_is_no_node_type_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code([*WORDS[:-1], "3 times g2!"]) == 2
    assert capsys.readouterr().err.startswith("fastsim: --add: found '3 times g2!', expected a node type such as g2")

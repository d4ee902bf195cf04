"""The verb plan: what to add, as a table and as JSON."""

from __future__ import annotations

import json

import pytest

from fastsim.cli import exit_code

WORDS = ["plan", "--cluster", "openb:3", "--workload", "synth:openb?pods=200", "--add", "g2"]


def test_what_to_add(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code([*WORDS, "--add", "t4", "--most", "4"]) == 0
    told = capsys.readouterr().out
    assert "g2" in told and "t4" in told and "additions" in told
    assert exit_code([*WORDS, "--queue", "fifo", "--p95-wait-s", "1e9", "--json"]) == 0
    [row] = json.loads(capsys.readouterr().out)
    assert row["add"] == "g2" and row["outcome"] in ("found", "enough already") and row["wait_p95_s"] is not None


def test_what_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for more, found in ((["--add", "g22"], "unknown node type"), (["--p95-wait-s", "-1"], "more than 0 s")):
        assert exit_code([*WORDS, *more]) == 2
        told = capsys.readouterr()
        assert found in told.err and len(told.err.splitlines()) == 1 and not told.out

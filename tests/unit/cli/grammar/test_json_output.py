"""Results as JSON on standard output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fastsim.cli.grammar.json_output import print_json


def test_what_json_cannot_say_is_a_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"runs": 2, "folder": Path("runs/a")})
    assert json.loads(capsys.readouterr().out) == {"runs": 2, "folder": "runs/a"}

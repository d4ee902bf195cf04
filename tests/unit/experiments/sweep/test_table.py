"""The table of a sweep, looked at again."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastsim.errors import ResultError
from fastsim.experiments.statistics import winners
from fastsim.experiments.sweep.sweep import Sweep
from fastsim.experiments.sweep.table import sweep_table, winners_text


def test_a_sweep_is_read_back_and_told(tmp_path: Path) -> None:
    Sweep({"cluster": "gavel:2:2:2", "policy": ["fifo", "isolated"], "jobs": 6, "seed": [0, 1, 2]}).run(tmp_path)
    rows, axes = sweep_table(tmp_path)
    assert axes == ("policy", "seed") and len(rows) == 6
    text = winners_text(winners(rows, "jct_mean_s"), "jct_mean_s", ["policy"])
    lines = text.splitlines()
    assert "policy" in lines[1] and "verdict" in lines[1] and len(lines) == 5
    assert lines[3].split()[1] == "3" and lines[3].split()[-1] == "best"


def test_no_sweep_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match=r"found no sweep\.parquet, expected the folder of a sweep"):
        sweep_table(tmp_path)

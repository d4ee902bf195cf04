"""The verb profile: from measurements to a table that a run can use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fastsim.cli.main import exit_code
from fastsim.performance.sensitivity import Sensitivity

DATA = ("--dataset-gb", "100", "--disk-mb-s", "102.4", "--samples", "1600", "--batch-size", "16", "--workload", "net")


def called(path: Path, *words: object) -> int:
    path.write_text("cpus,iteration_s,memory_gb_s\n2,8,10\n4,4,10\n8,2,10\n")
    return exit_code(["profile", "synergy", str(path), *DATA, *map(str, words)])


def test_measurements_become_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("s.csv", "s.parquet"):
        words = ("-o", tmp_path / name, "--server", "4:16:200", "--json", tmp_path / "p.json", "--slack", 0)
        assert called(tmp_path / "m.csv", *words) == 0
        assert "34 rows; a GPU asks for 8 CPUs, 90 GB and 53.6 MB/s" in capsys.readouterr().out
        found = Sensitivity.from_file(tmp_path / name, 4).profile("net")
        assert (found.cpu, found.speedup, found.task) == (8, 505 / 200, "net")
    assert json.loads((tmp_path / "p.json").read_text())[0] == {"2": 8, "4": 4, "8": 2}


@pytest.mark.parametrize("server", ["4", "4:x:3", "0:1:1", "1:2:3:4:5:6", "4:16:-1"])
def test_a_wrong_server_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], server: str) -> None:
    assert called(tmp_path / "m.csv", "-o", tmp_path / "s.csv", "--server", server) == 2
    assert "expected GPUS:CPUS:GB" in capsys.readouterr().err
    assert not (tmp_path / "s.csv").exists()

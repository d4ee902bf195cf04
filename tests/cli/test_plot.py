"""The verb plot: pictures of saved runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fastsim.cli.main import exit_code
from tests.needs import needed


def test_saved_runs_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needed("altair")
    jobs = "synth:gavel?jobs=9&rate_per_hour=4&seed=1"
    run = ["run", "--cluster", "gavel:1:1:1", "--workload", jobs, "--policy", "fifo", "--out", str(tmp_path / "a")]
    assert exit_code(run) == 0
    for chart, suffix, first in (("jct_cdf", "png", b"\x89PNG"), ("wait", "pdf", b"%PDF"), ("shares", "svg", b"<svg")):
        assert exit_code(["plot", chart, str(tmp_path / "a"), "-o", str(tmp_path / f"{chart}.{suffix}")]) == 0
        assert (tmp_path / f"{chart}.{suffix}").read_bytes().startswith(first)
    capsys.readouterr()
    for words, message in (
        (["jct_over_load", "--load", "1", "--load", "2"], "one for each result"),
        (["waiting"], "one of allocation, "),
        (["wait", "--load", "1"], "jct_over_load"),
    ):
        assert exit_code(["plot", *words, str(tmp_path / "a"), "-o", str(tmp_path / "b.png")]) == 2
        assert message in capsys.readouterr().err and not (tmp_path / "b.png").exists()


def test_the_folder_of_a_sweep_is_all_of_its_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needed("altair")
    (tmp_path / "s.toml").write_text(
        'cluster = "gavel:1:1:1"\npolicy = ["fifo", "isolated"]\nrate_per_hour = [2.0, 4.0]\nseed = [0, 1]\njobs = 5\n'
    )
    assert exit_code(["sweep", str(tmp_path / "s.toml"), "--out", str(tmp_path / "runs")]) == 0
    capsys.readouterr()
    assert exit_code(["plot", "jct_over_load", str(tmp_path / "runs"), "-o", str(tmp_path / "load.json")]) == 0
    assert "8 runs" in capsys.readouterr().out and '"errorbar"' in (tmp_path / "load.json").read_text()
    assert exit_code(["plot", "jct_cdf", str(tmp_path / "runs"), "-o", str(tmp_path / "cdf.json")]) == 0
    [names] = {tuple(layer["encoding"]["color"]["scale"]["domain"])
               for layer in json.loads((tmp_path / "cdf.json").read_text())["layer"]}  # fmt: skip
    assert names == tuple(f"{policy}, {load} jobs/h" for policy in ("fifo", "isolated") for load in (2, 4))
    capsys.readouterr()
    assert exit_code(["compare", str(tmp_path / "runs"), "--json"]) == 0
    assert capsys.readouterr().out.count('"name"') == 8

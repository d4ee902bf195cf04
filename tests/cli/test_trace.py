"""``fastsim trace`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.terminal import fastsim_here
from tests.needs import needed

HEAD = "name,time,application,num_replicas,batch_size\n"


def test_a_good_trace_of_pods(tmp_path: Path) -> None:
    words = ("synth:openb?pods=200", "--cluster", "openb")
    done = fastsim_here("trace", "lint", *words, cwd=tmp_path)
    assert (done.code, done.err) == (0, "") and "nothing to say against it" in done.out
    needed("altair")
    done = fastsim_here("trace", "stats", *words, "-o", "a.png", cwd=tmp_path)
    assert done.code == 0 and "GPU load offered while rows arrive" in done.out
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_findings_end_with_code_1(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(f"{HEAD}cifar10-0,1700000000,cifar10,900,128\n")
    done = fastsim_here("trace", "lint", "sia:jobs.csv", "--cluster", "sia:6:2:3", "--json", cwd=tmp_path)
    found = json.loads(done.out)
    assert done.code == 1 and [(one["level"], one["column"]) for one in found] == [
        ("error", "num_gpu"), ("warning", "submit_s"), ("note", "num_gpu"),
    ]  # fmt: skip
    text = fastsim_here("trace", "lint", "sia:jobs.csv", cwd=tmp_path)
    assert text.code == 1 and "sia:jobs.csv: 1 warning" in text.out and "dates" in text.out


def test_figures_as_json(tmp_path: Path) -> None:
    done = fastsim_here("trace", "stats", "synth:gavel?jobs=50&rate_per_hour=6", "--json", cwd=tmp_path)
    content = json.loads(done.out)
    assert content["figures"][0] == {"what": "rows", "value": 50, "unit": ""}
    assert {"time_s", "model", "gpus"} == set(content["offered_load"][0])


def test_no_such_trace(tmp_path: Path) -> None:
    done = fastsim_here("trace", "lint", "nowhere.parquet", cwd=tmp_path)
    assert done.code == 2 and "nowhere.parquet" in done.line

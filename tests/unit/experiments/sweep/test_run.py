"""Running sweeps: what fails fails alone, what takes too long is given up, and URLs do as well as folders."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.errors import ResultError, ScenarioError
from fastsim.experiments.sweep.sweep import FAILED, PLAN, TABLE, State, Sweep, SweepFailed, Where, sweep_of, swept
from fastsim.experiments.sweep.table import sweep_table
from fastsim.foundation.folder_lock import held
from tests.needs import needs

BASE: dict[str, Any] = {"cluster": "gavel:2:2:2", "policy": ["fifo", "isolated"], "jobs": 6, "seed": [0, 1]}
SCORER = """
import time

def points(nodes, pod):
    time.sleep(0.025)
    return nodes.memory_free

def broken(nodes, pod):
    raise ValueError("broken on purpose")
"""


@pytest.fixture
def scorers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module with a slow scorer and a broken one."""
    name = f"scorers_{uuid.uuid4().hex}"
    (tmp_path / f"{name}.py").write_text(SCORER)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def with_scorer(name: str) -> Sweep:
    """Two runs, one with this scorer."""
    policies = ["fgd", f"python(scorer='{name}')"]
    return Sweep({"cluster": "openb:20", "workload": "synth:openb?pods=800", "policy": policies})


def test_what_fails_fails_alone_and_is_tried_again(scorers: str, tmp_path: Path) -> None:
    sweep = with_scorer(f"{scorers}:broken")
    with pytest.raises(SweepFailed, match=r"1 of 2 runs failed, see .*failed\.json; policy=python") as raised:
        sweep.run(tmp_path / "runs", on="serial")
    (name,) = raised.value.failures
    assert raised.value.table is not None and raised.value.table["policy"].to_list() == ["fgd"]
    assert json.loads((tmp_path / "runs" / FAILED).read_text()).keys() == {name}
    assert not (tmp_path / "runs" / name).exists() and (tmp_path / "runs" / "policy=fgd" / "run.json").exists()
    (tmp_path / f"{scorers}.py").write_text("def broken(nodes, pod):\n    return nodes.memory_free\n")
    import sys

    del sys.modules[scorers]
    states: list[tuple[int, int]] = []
    table = sweep.run(tmp_path / "runs", on="serial", watch=lambda state: states.append((state.kept, state.done)))
    assert len(table) == 2 and states == [(1, 0), (1, 1)] and not (tmp_path / "runs" / FAILED).exists()


@pytest.mark.parametrize("on", ["serial", "threads"])
def test_what_takes_too_long_is_given_up(scorers: str, tmp_path: Path, on: str) -> None:
    with pytest.raises(SweepFailed, match=r"took more than 4 s"):
        with_scorer(f"{scorers}:points").run(tmp_path / "runs", on=on, timeout_s=4, workers=2)
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == [FAILED, "policy=fgd", PLAN, TABLE]
    with pytest.raises(ScenarioError, match="timeout_s: found 0, expected seconds above 0"):
        with_scorer(f"{scorers}:points").run(tmp_path / "others", timeout_s=0)


def test_the_folders_are_one_dataset(tmp_path: Path) -> None:
    table = Sweep(BASE).run(tmp_path)
    scanned = pl.scan_parquet(tmp_path / "policy=*" / "seed=*" / "jobs.parquet", hive_partitioning=True).collect()
    assert scanned.group_by("policy", "seed").len().sort("policy", "seed")["len"].to_list() == [6] * 4
    means = scanned.group_by("policy", "seed").agg(pl.col("jct_s").mean()).sort("policy", "seed")["jct_s"]
    assert means.to_list() == pytest.approx(table["jct_mean_s"].to_list())
    rows, axes = sweep_table(tmp_path)
    assert rows.equals(table) and axes == ("policy", "seed")


def test_a_folder_is_for_one_kind_of_sweep(tmp_path: Path) -> None:
    Sweep(BASE).run(tmp_path)
    with pytest.raises(ResultError, match="found runs by policy, seed, expected by jobs; choose another folder"):
        Sweep({**BASE, "policy": "fifo", "seed": 0, "jobs": [5]}).run(tmp_path)
    (tmp_path / PLAN).write_text("{")
    with pytest.raises(ResultError, match="no readable list of axes"):
        Sweep(BASE).run(tmp_path)


@needs("fsspec")
def test_an_object_store_does_as_well(tmp_path: Path) -> None:
    url = f"memory://{uuid.uuid4().hex}/runs"
    plain = Sweep(BASE).run(tmp_path)
    first = Sweep({**BASE, "seed": [0]}).run(url, on="serial")
    told: list[State] = []
    table = Sweep(BASE).run(url, on="threads", workers=2, watch=told.append)
    assert table.equals(plain) and told[-1].kept == 2 and len(first) == 2
    rows, _ = sweep_table(url)
    assert rows.equals(plain)
    import fsspec

    files, root = fsspec.core.url_to_fs(url)
    names = [path for path in files.find(root) if path.endswith("jobs.parquet")]
    found = {path.removeprefix(f"{root}/"): files.cat_file(path) for path in names}
    ours = {path.relative_to(tmp_path).as_posix(): path.read_bytes() for path in tmp_path.rglob("jobs.parquet")}
    assert found == ours and len(found) == 4


def test_lists_that_go_together_are_columns(tmp_path: Path) -> None:
    sweep = Sweep({"zip": [{"cluster": ["gavel:1:1:1", "gavel:2:2:2"], "jobs": [3, 5]}], "policy": "fifo"})
    assert [run.name for run in sweep.runs] == ["cluster=gavel%3A1%3A1%3A1/jobs=3", "cluster=gavel%3A2%3A2%3A2/jobs=5"]
    table = swept(sweep.runs, tmp_path, where=Where("threads", 2))
    assert table["cluster"].to_list() == ["gavel:1:1:1", "gavel:2:2:2"] and table["pods"].to_list() == [3, 5]
    assert fs.Sweep is Sweep


def test_a_folder_has_one_sweep_at_a_time(tmp_path: Path) -> None:
    runs = sweep_of(BASE | {"seed": [0, 1]})
    with (
        held(tmp_path / "runs", overwrite=True),
        pytest.raises(ResultError, match=r"runs: found process \d+ at work on it"),
    ):
        swept(runs, tmp_path / "runs")
    assert list(tmp_path.iterdir()) == []
    assert len(swept(runs, tmp_path / "runs")) == 4

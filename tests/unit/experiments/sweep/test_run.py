"""Running sweeps: what fails fails alone, what takes too long is given up, and URLs do as well as folders."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastsim as fs
from fastsim.errors import ResultError, ScenarioError
from fastsim.experiments.statistics.ranking import winners
from fastsim.experiments.sweep.run import LongestFirst, sweep_table
from fastsim.experiments.sweep.sweep import FAILED, PLAN, TABLE, State, Sweep, SweepFailed, Where, sweep_of, swept
from fastsim.experiments.sweep.winners_text import winners_text
from fastsim.foundation.folder_lock import held
from fastsim.reports.report import RunsFailed
from fastsim.scenario.scenario import Scenario
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
    rows, _ = sweep_table(tmp_path / "runs")
    assert rows.select("run", "policy", pl.col("error").str.contains("broken on purpose")).rows() == [
        ("policy=fgd", "fgd", None),
        (name, f"python(scorer='{scorers}:broken')", True),
    ]
    ranking = winners(rows, "gpu_alloc_pct", pairs="run")
    assert ranking.select("n", "failed", "verdict").rows() == [(1, 0, "best"), (0, 1, "failed")]
    assert "1 run has no gpu_alloc_pct and count in no mean" in winners_text(ranking, "gpu_alloc_pct", ["policy"])
    for read in (
        fs.compare,
        fs.report,
        partial(fs.stats, metric="gpu_alloc_pct"),
        partial(fs.paired_jobs, b=tmp_path / "runs" / "policy=fgd"),
    ):
        with pytest.warns(RunsFailed, match=f"^1 run of {tmp_path / 'runs'} failed, see .*{FAILED}; no mean has them"):
            read(tmp_path / "runs")
    with pytest.warns(RunsFailed):
        ranked = fs.stats(tmp_path / "runs", "gpu_alloc_pct").select("run", "n", "failed").rows()
    assert ranked == [("fgd", 1, 0), (f"python(scorer='{scorers}:broken')", 0, 1)]
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
    states: list[State] = []
    table = Sweep(BASE).run(url, on="threads", workers=2, watch=states.append)
    assert table.equals(plain) and states[-1].kept == 2 and len(first) == 2
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
        held(tmp_path / "runs", overwrite=True, grows=True),
        pytest.raises(ResultError, match=r"runs: found process \d+ at work on it"),
    ):
        swept(runs, tmp_path / "runs")
    assert list(tmp_path.iterdir()) == []
    assert len(swept(runs, tmp_path / "runs")) == 4


def runs(*kinds: tuple[str, int]) -> list[Scenario]:
    """A scenario for each policy and number of pods."""
    return [Scenario(cluster="openb", workload=f"synth:openb?pods={pods}", policy=policy) for policy, pods in kinds]


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        """The seconds now."""
        return self.now_s


def end_of_sweep(scenarios: Sequence[Scenario], seconds: Sequence[float], workers: int) -> tuple[float, list[int]]:
    """When the last run ends, and the order in which they began."""
    clock = Clock()
    order, running = LongestFirst(scenarios, clock), list[tuple[float, int]]()
    while True:
        while len(running) < workers and (at := next(order, None)) is not None:
            running.append((clock.now_s + seconds[at], at))
        if not running:
            return clock.now_s, order.order
        clock.now_s, at = min(running)
        running.remove((clock.now_s, at))
        order.note_end(at)


def test_more_pods_go_first_where_nothing_is_known() -> None:
    found = LongestFirst(runs(("fgd", 10), ("fgd", 30), ("fgd", 20), ("fgd", 30)))
    assert list(found) == found.order == [1, 3, 2, 0]


def test_a_higher_load_goes_first_where_as_much_is_offered() -> None:
    texts = [f"synth:gavel?jobs=10&rate_per_hour={rate}" for rate in (2.0, 4.0, 1.0)]
    found = LongestFirst([Scenario(cluster="gavel:1:1:1", workload=text, policy="fifo") for text in texts])
    assert list(found) == [1, 0, 2]


def test_every_policy_is_tried_and_then_the_slowest_goes_first() -> None:
    listed = runs(*[("fgd", 100)] * 4, *[("random", 100)] * 4, *[("pwr", 100)] * 4)
    end_s, order = end_of_sweep(listed, [1.0] * 4 + [2.0] * 4 + [5.0] * 4, 1)
    assert order == [0, 4, 8, 9, 10, 11, 5, 6, 7, 1, 2, 3] and end_s == 32.0


def test_nothing_long_is_left_to_the_end() -> None:
    listed, seconds = runs(*[("fgd", 100)] * 10, *[("pwr", 100)] * 3), [1.0] * 10 + [5.0] * 3
    assert end_of_sweep(listed, seconds, 2)[0] == 13.0, "in their order it would be 15"


def test_seconds_of_small_runs_tell_of_large_ones() -> None:
    listed = runs(("fgd", 100), ("pwr", 400), ("fgd", 1000), ("pwr", 300), ("pwr", 200))
    _, order = end_of_sweep(listed, [1.0, 40.0, 10.0, 30.0, 20.0], 1)
    assert order == [2, 1, 3, 4, 0]


@given(
    st.lists(st.tuples(st.sampled_from(["fgd", "pwr", "random"]), st.integers(0, 3)), max_size=20), st.integers(1, 4)
)
def test_every_run_begins_once(kinds: list[tuple[str, int]], workers: int) -> None:
    listed = runs(*kinds)
    seconds = [1.0 + pods for _, pods in kinds]
    end_s, order = end_of_sweep(listed, seconds, workers)
    assert sorted(order) == list(range(len(kinds)))
    assert end_s <= sum(seconds) / workers + max(seconds, default=0.0)


def test_a_sweep_is_read_back_and_told(tmp_path: Path) -> None:
    Sweep({"cluster": "gavel:2:2:2", "policy": ["fifo", "isolated"], "jobs": 6, "seed": [0, 1, 2]}).run(tmp_path)
    rows, axes = sweep_table(tmp_path)
    assert axes == ("policy", "seed") and len(rows) == 6
    text = winners_text(winners(rows, "jct_mean_s"), "jct_mean_s", ["policy"])
    lines = text.splitlines()
    assert "policy" in lines[1] and "verdict" in lines[1] and len(lines) == 7
    assert lines[5] == "jct_mean_s: in s, less is better"
    assert lines[3].split()[1] == "3" and lines[3].split()[-1] == "best"
    assert lines[6].startswith("cannot tell: too few pairs, or too different ones; about ")


def test_no_sweep_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match=r"found no sweep\.parquet, expected the folder of a sweep"):
        sweep_table(tmp_path)

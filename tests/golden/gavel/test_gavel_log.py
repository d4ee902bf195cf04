"""Logs of recorded runs, read as notebooks read them, say what was recorded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fastsim.engine.shares.gavel_log import write_gavel_log
from tests.golden.gavel import gavel
from tests.golden.gavel.gavel_runs import SOLVED, Recorded, runs

pytestmark = pytest.mark.skipif(not gavel.GAVEL.exists(), reason="reference data not found (set FASTSIM_SHARED)")


def chosen() -> list[Recorded]:
    """The shortest runs without a solver: of each policy, and of each kind of jobs."""
    shortest: dict[Any, Recorded] = {}
    for run in sorted(runs(), key=lambda run: run.row["n_rounds"]):
        row = run.row
        kind = bool(row["window"]), row["multi_gpu"], row["multi_priority"], row["trace"] is None, row["n_failed"] > 0
        for key in (run.policy, kind) if not run.policy.startswith(SOLVED) else ():
            shortest.setdefault(key, run)
    return list({run.id: run for run in shortest.values()}.values())


def number(text: str, pattern: str) -> float:
    found = re.search(pattern, text)
    assert found, pattern
    return float(found[1])


@pytest.mark.long
@pytest.mark.parametrize("run", chosen(), ids=lambda run: run.id)
def test_notebooks_find_what_was_recorded(run: Recorded, tmp_path: Path) -> None:
    plan = run.plan()
    write_gavel_log(tmp_path / "x.log", run.played(plan, record_tasks=True), pairs=plan.pairs)
    text, row = (tmp_path / "x.log").read_text(), run.row
    times = {int(job): jct for job, jct in re.findall(r"Job (\d+): (\d+\.\d+)", text)}
    expected = run.jobs().filter(pl.col("jct").is_not_null())
    if run.options.window is not None:  # completion times are printed of its jobs only
        expected = expected.filter(pl.col("job_id").is_between(*run.options.window, closed="left"))
    assert times == {job: f"{jct:.3f}" for job, jct in expected.select("job_id", "jct").rows()}
    # Means are printed with three digits.
    assert number(text, r"Average job completion time: (\S+) seconds") == pytest.approx(row["average_jct"], abs=6e-4)
    assert number(text, r"Total duration: (\S+) seconds") == pytest.approx(row["makespan"], abs=6e-4)
    assert number(text, r"Cluster utilization: (\S+)") == pytest.approx(row["utilization"], abs=6e-4)
    for word, column in (("low", "avg_jct_low"), ("high", "avg_jct_high")):
        if row[column] is not None:
            found = number(text, rf"Average job completion time \({word} priority\): (\S+) seconds")
            assert found == pytest.approx(row[column], abs=6e-4)
    assert_events(run, text)


def assert_events(run: Recorded, text: str) -> None:
    """Every task is scheduled once, every job dispatched before it first runs, and it ends as was recorded."""
    lines = [line.split("\t") for line in text.splitlines() if line.startswith("scheduler:INFO")]
    events = [(*re.findall(r"\[([^]]*)\]", first), *rest) for first, *rest in lines]
    named: dict[str, list[tuple[float, str]]] = {}
    for time, name, job, *_ in events:
        named.setdefault(name, []).append((float(time), job.removeprefix("Job ID: ")))
    jobs = run.jobs()
    scheduled = named["Micro-task scheduled"]
    assert scheduled == sorted(scheduled, key=lambda task: task[0])
    assert sum(1 + ("," in job) for _, job in scheduled) == jobs["rounds"].sum()
    ends = jobs.filter(pl.col("jct").is_not_null()).select("completion", pl.col("job_id").cast(pl.String))
    assert sorted(named["Job succeeded"]) == sorted(ends.rows())
    assert len(named.get("Job failed", [])) == run.row["n_failed"]
    came = {int(job): time for time, job in named["Job dispatched"]}
    assert list(came) == jobs["job_id"].to_list()
    assert all(came[job] <= began for job, began in jobs.select("job_id", "first_scheduled").rows())

"""Tables that a run recorded, for every engine and ``record``, in memory and in a folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.engine.originals.adaptive_log import write_log
from fastsim.engine.result import FRAMES, LATER
from fastsim.errors import ResultError
from fastsim.experiments.exported_tables import saved_table
from fastsim.reports.charts.chrome_trace import written_trace
from fastsim.reports.charts.job_charts import completion_hours
from fastsim.reports.kubernetes.export import bound_pods
from fastsim.scenario.scenario import RECORDS
from tests.engines import RUNS, small_run

PLACED, TIMED = {"placements", "all"}, {"timeline", "all"}
KEPT: dict[str, dict[str, set[str]]] = {
    engine: {
        "summary": set(RECORDS), "stages": set(RECORDS), "timeline": TIMED, "placements": PLACED, "telemetry": set(),
        "jobs": PLACED if engine in ("pods", "monitored") else set(RECORDS),
    }
    for engine in RUNS
}  # fmt: skip
"""Values of ``record`` with which a run of each engine has each table; readings need ``telemetry=``."""
EMPTY = fs.Workload.from_polars(pl.DataFrame({"submit_s": [0.0], "num_gpu": [1], "duration_s": [1.0]})[:0])

Reader = Callable[[fs.Result, Path], Any]


def _exported(name: str, _: fs.Result, folder: Path) -> pl.DataFrame:
    return saved_table(folder, name)


READERS: dict[str, tuple[str, Reader]] = {
    "audit": ("placements", lambda run, _: run.audit()),
    "trace": ("placements", lambda run, folder: written_trace(run, folder / "trace.json")),
    "pods of Kubernetes": ("placements", lambda run, _: next(bound_pods(run, EMPTY))),
    "curve": ("timeline", lambda run, _: fs.Comparison((run,), ("one",)).curve()),
    "plot": ("jobs", lambda run, _: run.plot("jct")),
    "completion times": ("jobs", lambda run, _: completion_hours(run)),
    "log": ("jobs", lambda run, folder: write_log(run, folder / "log")),
    **{f"export {name}": (name, partial(_exported, name)) for name in (*FRAMES, *LATER)},
}
"""The table without which each reader refuses a run."""


def test_every_table_has_an_entry() -> None:
    for engine, tables in KEPT.items():
        assert set(tables) == {*FRAMES, *LATER}, engine


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("engine", RUNS)
def test_a_table_that_was_not_recorded_is_refused_with_its_name(engine: str, record: str, tmp_path: Path) -> None:
    run = small_run(engine, record=record)
    for result in (run, fs.Result.load(run.save(tmp_path / "run"))):
        for name, records in KEPT[engine].items():
            if record in records:
                assert getattr(result, name).equals(result.scan(name).collect())
                assert result.recorded(name) and (name == "stages" or len(getattr(result, name)))
                continue
            assert not result.recorded(name)
            with pytest.raises(ResultError, match=_expected(name, record)):
                getattr(result, name)
            with pytest.raises(ResultError, match=_expected(name, record)):
                result.scan(name)


def _expected(name: str, record: str) -> str:
    if name == "telemetry":
        return "^result: found no telemetry, expected a run with telemetry=$"
    wanted = "timeline" if name == "timeline" else "placements"
    return f"^result: found no {name} in a run with record='{record}', expected one with record='{wanted}' or 'all'$"


@pytest.mark.parametrize("engine", RUNS)
def test_readers_say_which_record_they_need(engine: str, tmp_path: Path) -> None:
    run = small_run(engine, record="summary")
    run.save(tmp_path / "run")
    for table, read in READERS.values():
        if "summary" not in KEPT[engine][table]:
            refusal = _expected(table, "summary").removeprefix("^result")
            with pytest.raises(ResultError, match=rf"{refusal}|^plot: found nothing .* a run with record='all'$"):
                read(run, tmp_path / "run")


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("engine", ["pods", "shares", "orders", "monitored"])
def test_a_recorded_table_without_rows_is_an_empty_frame(engine: str, record: str) -> None:
    scenario = {**RUNS[engine], "workload": EMPTY, "record": record, "telemetry": 60.0}
    run = fs.simulate(**scenario)
    for name in ("placements", "jobs"):
        if record in KEPT[engine][name]:
            assert getattr(run, name).is_empty()
        else:
            with pytest.raises(ResultError, match="record="):
                getattr(run, name)
    assert run.telemetry.width == 10

"""Flat tables of applications: there and back, a run by a file of one's own, errors with row and column."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

import fastsim as fs
from fastsim.performance.applications.family import Applications


@pytest.fixture(scope="module")
def flat() -> pl.DataFrame:
    family = Applications.default()
    return pl.DataFrame(Applications({name: family[name] for name in list(family)[:2]}).flat())


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_there_and_back(flat: pl.DataFrame, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"mine.{ending}"
    if ending == "csv":
        flat.write_csv(path)
    else:
        pq.write_table(flat.to_arrow(), path)
    assert Applications.from_file(path).table().equals(Applications.default().table().slice(0, 2))


def test_jobs_are_drawn_from_a_file_and_run_by_it(flat: pl.DataFrame, tmp_path: Path) -> None:
    whole = pl.DataFrame(Applications.default().flat())
    whole.write_csv(tmp_path / "mine.csv")
    jobs = "synth:sia?jobs=4&seed=1"
    shipped = fs.simulate("sia:6:2:3", jobs, "sia").jobs
    mine = fs.simulate(
        "sia:6:2:3", f"{jobs}&applications={tmp_path / 'mine.csv'}", "sia", rates=str(tmp_path / "mine.csv")
    )
    assert mine.jobs.equals(shipped)


def test_what_may_be_left_out(flat: pl.DataFrame, tmp_path: Path) -> None:
    flat.drop("believed_restart_s", "slowdown", "stages").write_csv(tmp_path / "mine.csv")
    for app in Applications.from_file(tmp_path / "mine.csv").values():
        assert app.believed_restart_s == app.restart_s and app.slowdown == 1.0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [(",application,", ",aplication,", r"mine\.csv:2: record: found 'aplication', expected one of application, limits"),
     (",limits,", ",step,", r"mine\.csv:\d+: num_nodes: found nothing, expected a value in step rows"),
     ("record", "kind", r"mine\.csv:1: kind: found an unknown column"),
     (",application,", ",application,x", r"mine\.csv:2: restart_s: found 'x")],
)  # fmt: skip
def test_errors_name_row_and_column(flat: pl.DataFrame, old: str, new: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(flat.write_csv().replace(old, new, 1))
    with pytest.raises(fs.InputError, match=message):
        Applications.from_file(tmp_path / "mine.csv")


def test_an_application_has_one_row_of_its_own(flat: pl.DataFrame, tmp_path: Path) -> None:
    own = flat.filter(pl.col("record") == "application")
    pl.concat([flat, own[:1]]).write_csv(tmp_path / "twice.csv")
    with pytest.raises(fs.InputError, match="a second application row"):
        Applications.from_file(tmp_path / "twice.csv")
    flat.filter(pl.col("record") != "application").write_csv(tmp_path / "none.csv")
    with pytest.raises(fs.InputError, match="no application row"):
        Applications.from_file(tmp_path / "none.csv")

"""Folders of saved runs that were edited by hand: every verb answers with one clear error, or as before."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.errors import FastsimError
from tests.cli.terminal import fastsim_here
from tests.engines import RUNS
from tests.needs import needs

VERBS: dict[str, tuple[str, ...]] = {
    "compare": ("compare", "{run}"),
    "explain": ("explain", "{run}", "--sample", "2"),
    "report": ("report", "{run}", "--markdown", "{out}.md"),
    "html": ("report", "{run}", "--html", "{out}.html", "--trace", "{out}.json"),
    "audit": ("audit", "{run}"),
    "plot": ("plot", "jct_cdf", "{run}", "-o", "{out}.json"),
    "export": ("export", "{run}", "-o", "{out}.yaml"),
}
DRAWING = ("html", "plot")
"""Verbs that need the extra with charts."""
KINDS = ("pods", "shares")
TABLES = ("summary", "timeline", "placements", "jobs", "stages")
FAILED = (
    "no readable run.json",
    "when repeated",
    "objects in memory",
    "found no jobs",
    "found no placements",
    "found no stay",
)
"""Reasons of a ResultError: the folder is no run, or one from which the verb cannot do its work."""
Edit = Callable[[Path], Any]


def of_file(name: str, text: bytes | None = None, keep: int | None = None) -> Edit:
    """The file with another content, cut, or (neither) taken away."""

    def edit(run: Path) -> None:
        path = run / name
        if text is None and keep is None:
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:keep] if text is None else text)

    return edit


def of_record(*path: str, value: Any = ...) -> Edit:
    """The entry of ``run.json`` with another value, or taken away."""

    def edit(run: Path) -> None:
        record = json.loads((run / "run.json").read_text())
        at = record
        for key in path[:-1]:
            at = at[key]
        if value is ...:
            at.pop(path[-1], None)
        else:
            at[path[-1]] = value
        (run / "run.json").write_text(json.dumps(record))

    return edit


def of_table(name: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Edit:
    """The table, changed."""

    def edit(run: Path) -> None:
        path = run / f"{name}.parquet"
        change(pl.read_parquet(path)).write_parquet(path)

    return edit


def edits() -> dict[str, Edit]:
    found: dict[str, Edit] = {}
    for name in ("run.json", *(f"{table}.parquet" for table in TABLES)):
        found |= {f"{name} gone": of_file(name), f"{name} empty": of_file(name, b""),
                  f"{name} cut": of_file(name, keep=40), f"{name} other": of_file(name, b"[1, 2]")}  # fmt: skip
    values: tuple[Any, ...] = (None, 5, "x", [], {}, [5], {"a": "b"})
    for key in ("provenance", "timing", "citations"):
        found |= {f"{key} {value!r}": of_record(key, value=value) for value in values}
        found[f"{key} gone"] = of_record(key)
    for key in ("scenario", "cluster", "workload", "options", "policy", "versions", "build", "typical_pods", "plan"):
        for value in (*values, {"sha256": 5}, {"nodes": "x"}):
            found[f"provenance.{key} {value!r}"] = of_record("provenance", key, value=value)
        found[f"provenance.{key} gone"] = of_record("provenance", key)
    for key in ("cluster", "workload", "policy", "window", "seed", "deschedule", "name", "record", "until_s"):
        for value in (*values, -1e300):
            found[f"scenario.{key} {value!r}"] = of_record("provenance", "scenario", key, value=value)
    for table in TABLES:
        found[f"{table} without columns"] = of_table(table, lambda frame: frame.select([]))
        found[f"{table} without rows"] = of_table(table, lambda frame: frame.clear())
        found[f"{table} twice"] = of_table(table, lambda frame: pl.concat([frame, frame]))
        for column in columns(table):
            found |= of_column(table, column)
    return found


def columns(table: str) -> list[str]:
    from fastsim.engine.tables import base_columns

    return list(base_columns(table))[:: 1 if table in ("placements", "summary") else 4]


def of_column(table: str, column: str) -> dict[str, Edit]:
    changes: dict[str, pl.Expr] = {
        "text": pl.lit("x"), "null": pl.lit(None), "negative": pl.lit(-5), "huge": pl.lit(1 << 62),
        "nan": pl.lit(float("nan")), "list": pl.lit([[1]]).first(),
    }  # fmt: skip
    found: dict[str, Edit] = {f"{table}.{column} gone": of_table(table, lambda frame: frame.drop(column))}
    for name, value in changes.items():
        found[f"{table}.{column} {name}"] = of_table(table, partial(replaced, column=column, value=value))
        found[f"{table}.{column} {name}, same type"] = of_table(table, partial(cast, column=column, value=value))
    return found


def replaced(frame: pl.DataFrame, column: str, value: pl.Expr) -> pl.DataFrame:
    """The value in every row of the column."""
    return frame.with_columns(value.alias(column))


def cast(frame: pl.DataFrame, column: str, value: pl.Expr) -> pl.DataFrame:
    """The value in the type of the column; as it was if that has none."""
    try:
        return frame.with_columns(value.cast(frame.schema[column]).alias(column))
    except pl.exceptions.PolarsError:
        return frame


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("saved")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in KINDS:
            fs.simulate(**RUNS[kind], out=base / kind)
    return base


@pytest.mark.spread(4)
@pytest.mark.parametrize("verb", [
    pytest.param(verb, marks=needs("altair")) if verb in DRAWING else verb for verb in VERBS
])  # fmt: skip
@pytest.mark.parametrize("kind", KINDS)
def test_an_edited_run_is_one_clear_error(saved: Path, tmp_path: Path, verb: str, kind: str) -> None:
    run, wrong = tmp_path / "run", []
    # Together, the verbs try a third of all edits, every edit once in the long suite, all of them all when it explores.
    first, parts = [(v, k) for v in VERBS for k in KINDS].index((verb, kind)), len(VERBS) * len(KINDS)
    parts = 1 if os.environ.get("FASTSIM_EXPLORE") else parts if os.environ.get("FASTSIM_LONG") else 3 * parts
    for name, edit in list(edits().items())[first % parts :: parts]:
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(saved / kind, run)
        edit(run)
        done = fastsim_here(*(word.format(run=run, out=tmp_path / "out") for word in VERBS[verb]), cwd=tmp_path)
        errors = [line for line in done.err.splitlines() if "warning:" not in line]
        harmless = done.code == 0 or (verb == "audit" and done.code == 1 and not errors)
        codes = (1, 2) if any(reason in str(errors) for reason in FAILED) else (2,)
        if not harmless and (done.code not in codes or len(errors) != 1 or "internal error" in errors[0]):
            wrong.append((name, done.code, errors))
    assert not wrong, "\n".join(map(str, wrong))


@needs("altair")
def test_a_run_of_objects_in_memory_has_no_scenario(saved: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(saved / "pods", run)
    of_record("provenance", "scenario", value=None)(run)
    assert fastsim_here("compare", run, cwd=tmp_path).code == fastsim_here("report", run, cwd=tmp_path).code == 0
    assert fastsim_here("report", run, "--html", tmp_path / "page.html", cwd=tmp_path).code == 0


def test_edited_tables_are_refused_where_they_are_read(saved: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(saved / "pods", run)
    of_table("jobs", lambda frame: frame.drop("submit_s"))(run)
    with pytest.raises(FastsimError, match=r"jobs\.parquet: found no column submit_s, expected a table that a run"):
        _ = fs.Result.load(run).jobs

"""Stores: a folder and a URL keep the same runs, complete or not at all."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.errors import FastsimError, ResultError
from fastsim.experiments.sweep.store import Bucket, Folder, store_at
from tests.needs import needs

needs_fsspec = needs("fsspec")


@pytest.fixture(params=["folder", pytest.param("memory", marks=needs_fsspec)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty place."""
    return str(tmp_path / "runs") if request.param == "folder" else f"memory://{uuid.uuid4().hex}/runs"


def played(folder: Path) -> str:
    """A small run."""
    fs.simulate("openb:5", "synth:openb?pods=20", "fgd", out=folder)
    return "done"


def test_a_run_is_kept(place: str) -> None:
    store = store_at(place)
    name = "policy=fgd/seed=0"
    assert store.record(name) is None
    assert store.write_run(name, played) == "done"
    known = store.record(name)
    assert known is not None and known["policy"] == "fgd"
    assert len(store.frame(name, "jobs")) == 20
    assert store.path(name) == f"{place}/{name}"


def test_a_run_that_fails_leaves_nothing(place: str) -> None:
    def broken(folder: Path) -> None:
        played(folder.with_name("elsewhere"))
        raise FastsimError("no")

    store = store_at(place)
    with pytest.raises(FastsimError, match="no"):
        store.write_run("seed=0", broken)
    assert store.record("seed=0") is None


def test_texts_and_tables_about_all(place: str) -> None:
    store, table = store_at(place), pl.DataFrame({"a": [1, 2]})
    assert store.text("plan.json") is None and store.whole("t.parquet") is None
    store.write_text("plan.json", "{}")
    store.write_frame("t.parquet", table)
    assert store.text("plan.json") == "{}"
    found = store.whole("t.parquet")
    assert found is not None and found.equals(table)
    store.write_text("plan.json", None)
    store.write_text("plan.json", None)
    assert store.text("plan.json") is None


@needs_fsspec
def test_what_is_half_there_is_no_run(tmp_path: Path) -> None:
    import fsspec

    store = store_at(f"memory://{uuid.uuid4().hex}")
    assert isinstance(store, Bucket)
    files, root = fsspec.core.url_to_fs(store.url)
    files.pipe_file(f"{root}/seed=0/jobs.parquet", b"half")
    assert store.record("seed=0") is None
    files.pipe_file(f"{root}/seed=0/run.json", b"{")
    with pytest.raises(ResultError, match=r"no readable run\.json"):
        store.record("seed=0")
    with pytest.raises(KeyError):
        store.frame("seed=0", "nothing")


def test_mistakes(tmp_path: Path) -> None:
    wrong: Any = {"key": "x"}
    with pytest.raises(ResultError, match="storage options"):
        store_at(tmp_path, wrong)
    assert isinstance(store_at(tmp_path), Folder)


@needs_fsspec
def test_an_unknown_kind_of_url() -> None:
    with pytest.raises(ResultError, match="cannot be opened"):
        store_at("moon://bucket").text("x")

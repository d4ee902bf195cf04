"""What is opened once: kept for one purpose, forgotten for the next, and never a difference."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import fastsim as fs
from fastsim.foundation.object_cache import OBJECTS, ObjectCache
from fastsim.workload import texts
from fastsim.workload.texts import in_memory


def test_nothing_is_kept_without_a_purpose() -> None:
    shelf, made = ObjectCache(), iter(range(9))
    assert [shelf.kept("a", lambda: next(made)) for _ in range(2)] == [0, 1]
    shelf.cache_for("x")
    assert [shelf.kept("a", lambda: next(made)) for _ in range(2)] == [2, 2]
    shelf.cache_for("x")
    assert shelf.kept("a", lambda: next(made)) == 2
    shelf.cache_for("y")
    assert shelf.kept("a", lambda: next(made)) == 3
    shelf.cache_for(None)
    assert not shelf.keeps and len(shelf) == 0


def test_the_least_used_goes_first() -> None:
    shelf = ObjectCache(2)
    shelf.cache_for("x")
    for key in ("a", "b", "a", "c"):
        shelf.kept(key, partial(str.upper, key))
    assert shelf.kept("a", lambda: "new") == "A" and shelf.kept("b", lambda: "new") == "new"


def test_only_so_many_rows_are_kept_and_the_last_ones_always() -> None:
    pods = fs.Workload.synth("openb", pods=50, seed=1)
    held, longer = in_memory(pods), in_memory(fs.Workload.synth("openb", pods=200, seed=1))
    shelf = ObjectCache(most_rows=100)
    shelf.cache_for("x")
    for key, made in (("a", held), ("b", held), ("stream", pods)):
        shelf.kept(key, partial(lambda made: made, made))
    assert len(shelf) == 3, "what is streamed takes no room"
    shelf.kept("c", lambda: held)
    assert len(shelf) == 3 and shelf.kept("a", lambda: None) is None
    shelf.kept("d", lambda: longer)
    assert len(shelf) == 1 and shelf.kept("d", lambda: None) is longer


def test_texts_are_opened_once_and_runs_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "pods.parquet"
    fs.Workload.synth("openb", pods=200, seed=1).write(path)
    given = ("openb:30?shuffle=3", f"{path}?tune=1.2&tune_seed=4", "fgd")
    plain = fs.simulate(*given)
    OBJECTS.cache_for("test")
    try:
        assert texts.cluster_from(given[0]) is texts.cluster_from(given[0])
        cluster = texts.cluster_from(given[0])
        assert texts.workload_from(given[1], cluster)[0] is texts.workload_from(given[1], cluster)[0]
        again = [fs.simulate(*given) for _ in range(2)]
    finally:
        OBJECTS.cache_for(None)
    for result in again:
        assert result.jobs.equals(plain.jobs) and result.summary.equals(plain.summary)
        assert result.provenance == plain.provenance

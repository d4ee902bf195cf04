"""Objects that are opened once: cached for one purpose, dropped for the next, with equal results."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

import fastsim as fs
from fastsim.cluster.cluster import Cluster
from fastsim.foundation.object_cache import OBJECTS, ObjectCache
from fastsim.scenario import run_inputs
from fastsim.workload.texts import in_memory


def test_nothing_is_kept_without_a_purpose() -> None:
    cache, numbers = ObjectCache(), iter(range(9))
    assert [cache.cached("a", lambda: next(numbers)) for _ in range(2)] == [0, 1]
    cache.cache_for("x")
    assert [cache.cached("a", lambda: next(numbers)) for _ in range(2)] == [2, 2]
    cache.cache_for("x")
    assert cache.cached("a", lambda: next(numbers)) == 2
    cache.cache_for("y")
    assert cache.cached("a", lambda: next(numbers)) == 3
    cache.cache_for(None)
    assert not cache.caching and len(cache) == 0


def test_a_run_opens_a_text_once_and_a_run_inside_it_its_own() -> None:
    cache, numbers = ObjectCache(), iter(range(9))
    opened = partial(cache.cached, "a", lambda: next(numbers))
    with cache.during_run():
        assert [opened(), opened()] == [0, 0]
        with cache.during_run():
            assert [opened(), opened()] == [1, 1]
        assert opened() == 0 and not cache.caching
    assert [opened(), opened()] == [2, 3]


def test_simulate_reads_a_file_of_nodes_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, reader = tmp_path / "nodes.csv", Mock(wraps=fs.Cluster.from_csv)
    monkeypatch.setattr(fs.Cluster, "from_csv", reader)
    path.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_model\na,96000,393216,8,V100M32\n")
    fs.simulate(str(path), "synth:openb?pods=5&seed=1")
    reader.assert_called_once_with(data=str(path))


def test_the_least_used_goes_first() -> None:
    cache = ObjectCache(2)
    cache.cache_for("x")
    for key in ("a", "b", "a", "c"):
        cache.cached(key, partial(str.upper, key))
    assert cache.cached("a", lambda: "new") == "A" and cache.cached("b", lambda: "new") == "new"


def test_only_so_many_rows_are_kept_and_the_last_ones_always() -> None:
    pods = fs.Workload.synth("openb", pods=50, seed=1)
    held, longer = in_memory(pods), in_memory(fs.Workload.synth("openb", pods=200, seed=1))
    cache = ObjectCache(most_rows=100)
    cache.cache_for("x")
    for key, workload in (("a", held), ("b", held), ("stream", pods)):
        cache.cached(key, partial(lambda workload: workload, workload))
    assert len(cache) == 3, "what is streamed takes no room"
    cache.cached("c", lambda: held)
    assert len(cache) == 3 and cache.cached("a", lambda: None) is None
    cache.cached("d", lambda: longer)
    assert len(cache) == 1 and cache.cached("d", lambda: None) is longer


def test_texts_are_opened_once_and_runs_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "pods.parquet"
    fs.Workload.synth("openb", pods=200, seed=1).write(path)
    texts_of_run = ("openb:30?shuffle=3", f"{path}?tune=1.2&tune_seed=4", "fgd")
    plain = fs.simulate(*texts_of_run)
    OBJECTS.cache_for("test")
    try:
        assert Cluster.from_text(texts_of_run[0]) is Cluster.from_text(texts_of_run[0])
        cluster = Cluster.from_text(texts_of_run[0])
        first, second = (run_inputs.workload_from(texts_of_run[1], cluster).workload for _ in range(2))
        assert first.source is second.source
        again = [fs.simulate(*texts_of_run) for _ in range(2)]
    finally:
        OBJECTS.cache_for(None)
    for result in again:
        assert result.jobs.equals(plain.jobs) and result.summary.equals(plain.summary)
        assert result.provenance == plain.provenance

"""Tasks on a real Ray cluster of this machine: a worker is killed, and nothing is lost."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from fastsim.errors import FastsimError
from fastsim.experiments.executors.distributed import DaskTasks, RayTasks
from tests.clusters import spread_over
from tests.needs import needs

needs_ray = needs("ray")
needs_dask = needs("distributed")


@needs_ray
def test_a_worker_that_is_killed_takes_nothing_with_it(tmp_path: Path) -> None:
    found = json.loads(spread_over("ray", tmp_path))
    assert found["places"] == list(range(8)) and found["errors"] == ["5: five"]
    assert found["workers"] >= 1 and (tmp_path / "3").exists()


@pytest.mark.skipif(find_spec("ray") is not None, reason="ray is installed")
def test_without_the_extra_it_says_which() -> None:
    with pytest.raises(FastsimError, match="needs the ray extra"):
        RayTasks(2).open()


def test_tasks_need_an_open_executor() -> None:
    with pytest.raises(FastsimError, match="with"):
        next(RayTasks(2).map(abs, [0]))


@needs_dask
def test_a_worker_that_is_killed_takes_nothing_with_it_of_dask(tmp_path: Path) -> None:
    found = json.loads(spread_over("dask", tmp_path))
    assert found["places"] == list(range(8)) and found["errors"] == ["5: five"]
    assert found["workers"] >= 1 and (tmp_path / "3").exists()


@pytest.mark.skipif(find_spec("distributed") is not None, reason="distributed is installed")
def test_without_the_extra_it_says_which_of_dask() -> None:
    with pytest.raises(FastsimError, match="needs the dask extra"):
        DaskTasks(2).open()


def test_tasks_need_an_open_executor_of_dask() -> None:
    with pytest.raises(FastsimError, match="with"):
        next(DaskTasks(2).map(abs, [0]))


def test_a_local_cluster_of_dask_that_is_slow_to_end_fails_no_run() -> None:
    class Slow:
        closed = 0

        def close(self) -> None:
            self.closed += 1
            raise TimeoutError("a nanny waits for its worker")

    tasks, client, cluster = DaskTasks(2), Slow(), Slow()
    tasks._client, tasks._cluster = client, cluster
    tasks.close()
    assert (client.closed, cluster.closed) == (1, 1) and tasks._client is None

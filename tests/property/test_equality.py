"""Equality of public objects: copies are equal where it is by content, changed objects differ, and nothing fails."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from tests.engines import small_run

PODS = pl.DataFrame({"submit_s": [0.0], "num_gpu": [1], "duration_s": [1.0]})
PAIRS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "Catalog": lambda: (fs.Catalog.default(), fs.Catalog(fs.Catalog.default().gpu, {})),
    "Cluster": lambda: (fs.Cluster.uniform(nodes=2), fs.Cluster.uniform(nodes=3)),
    "Comparison": lambda: (fs.Comparison((small_run("pods"),), ("a",)), fs.Comparison((small_run("pods"),), ("b",))),
    "Deschedule": lambda: (fs.Deschedule(_policy(), 0.5), fs.Deschedule(_policy(), 0.4)),
    "Oracle": lambda: (fs.Oracle.default(), copy.deepcopy(fs.Oracle.default())),
    "Prices": lambda: (fs.Prices.fixed({"V100": 1.0}), fs.Prices.fixed({"V100": 2.0})),
    "PairedJobs": lambda: tuple(fs.paired_jobs(small_run("pods"), small_run("pods"), (one, "b")) for one in "ac"),
    "Report": lambda: (fs.report([small_run("pods")]), fs.report([small_run("pods", seed=7)])),
    "Result": lambda: (small_run("pods"), small_run("pods", seed=7)),
    "Scenario": lambda: (fs.Scenario("openb:5", "synth:openb?pods=3", "fgd"), fs.Scenario("openb:6", "x", "fgd")),
    "Sensitivity": lambda: (fs.Sensitivity.default(), fs.Sensitivity.default(4)),
    "Sweep": lambda: tuple(
        fs.Sweep({"cluster": "gavel:2:2:2", "policy": ["fifo"], "jobs": 6, "seed": [seed]}) for seed in (0, 1)
    ),
    "Telemetry": lambda: (fs.Telemetry(30.0), fs.Telemetry(15.0)),
    "TypicalPods": lambda: tuple(fs.TypicalPods((1,), (1,), (1,), ((),), (n,), (1.0,)) for n in (1, 2)),
    "Workload": lambda: tuple(fs.Workload.from_polars(PODS) for _ in range(2)),
}  # fmt: skip
"""An object of each public class, and another one that is not equal to it."""
IDENTITY = {"Oracle", "PairedJobs", "Sensitivity", "Workload"}
"""Classes of large tables, whose objects are equal to themselves alone."""
UNHASHABLE = {"Sweep", "Telemetry"}
"""Classes with mappings, compared by them; they have no hash."""


def _policy() -> Any:
    from fastsim.policies.deschedule import FragOnePod

    return FragOnePod()


def test_every_public_class_has_an_entry() -> None:
    public = (name for name in fs.__all__ if inspect.isclass(getattr(fs, name)))
    assert {name for name in public if not issubclass(getattr(fs, name), Exception)} == {*PAIRS}


@pytest.mark.parametrize("name", PAIRS)
def test_copies_are_equal_where_content_decides(name: str) -> None:
    one, other = PAIRS[name]()
    same = one
    assert bool(one == same) and not bool(one != same) and bool(one != other) and bool(one != 3)
    for again in (copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        if name in IDENTITY:
            assert isinstance(again == one, bool)
            continue
        assert again == one and again != other
        if name not in UNHASHABLE:
            assert hash(again) == hash(one)

"""States of nodes as one array: their sums over nodes are what the audit finds node by node."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

import fastsim as fs
from fastsim.engine.audit.inputs import evidence
from fastsim.engine.audit.node_series import node_series
from fastsim.engine.audit.nodes import states
from fastsim.engine.audit.timeline import derived_columns
from tests import reports


def _queued() -> fs.Result:
    return fs.simulate("openb:12", "synth:openb?pods=60&seed=3", "fgd", queue="fifo", record="all")


@pytest.mark.parametrize("made", [reports.passing, reports.jobs, _queued])
def test_sums_over_nodes_are_those_of_the_audit(made: Callable[[], fs.Result]) -> None:
    run = evidence(made())
    series = node_series(run)
    assert (series["end_s"] > series["begin_s"]).all() and series["node_id"].n_unique() == len(run.nodes)
    expected = states(run)[0].with_columns(derived_columns(run)).filter(pl.col("t_s") < np.inf)
    names = ["frag_milli", "power_w"]
    change = [pl.col(name) - pl.col(name).shift(1).over("node_id").fill_null(0.0) for name in names]
    summed = series.with_columns(change).group_by(t_s="begin_s").agg(pl.col(names).sum()).sort("t_s")
    summed = summed.with_columns(pl.col(names).cum_sum())
    assert summed["t_s"].equals(expected["t_s"])
    for name in names:
        # Thousands of additions of differences of floating-point numbers below 1e6.
        assert summed[name].to_numpy() == pytest.approx(expected[name].to_numpy(), abs=1e-6), name

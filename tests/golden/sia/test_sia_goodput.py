"""The recorded goodput of the Sia simulator: evaluated, and at its best."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fastsim.performance.goodput import BatchLimits
from tests.golden.sia.sia import models, recorded

RELATIVE = 1e-12
"""The recordings' own bar."""


def test_evaluated(shared: Callable[[str], Path]) -> None:
    rows = recorded(shared("golden/sia/functions") / "goodput_eval.csv")
    for model, _, part in models(rows):
        found = model.evaluated(part["num_nodes"], part["num_replicas"], part["atomic_bsz"], part["accum_steps"])
        for name, column in {**found._asdict(), "goodput": found.goodput}.items():
            np.testing.assert_allclose(column, part[name].to_numpy(), rtol=RELATIVE, err_msg=name)


@pytest.mark.parametrize("kind", ["scalar", "f64", "f32"])
def test_best_batch_sizes(kind: str, shared: Callable[[str], Path]) -> None:
    rows = recorded(shared("golden/sia/functions") / "goodput_optimize.parquet").filter(pl.col("input_dtype") == kind)
    texts = ("max_batch_size", "min_local_bsz", "max_local_bsz", "tune_bsz")
    count = 0
    for model, (most, low, high, tuned), part in models(rows, *texts):
        limits = BatchLimits(most, low, high, tuned=tuned, float32=kind == "f32")
        found = model.best(part["num_nodes"], part["num_replicas"], limits)
        # The recordings let a few single-precision choices differ; ours are all the same.
        assert found.atomic.tolist() == part["atomic_bsz"].to_list()
        assert found.accum.tolist() == part["accum_steps"].to_list()
        np.testing.assert_allclose(found.goodput, part["goodput"].to_numpy(), rtol=RELATIVE)
        count += len(part)
    assert count == len(rows) > 0

"""Typical pods equal those of the original simulator, frequencies bit for bit."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from fastsim.workload.typical_pods import TypicalPods
from tests.conftest import SHARED
from tests.golden.fgd.fgd import PodTable, raw_trace

FILES = sorted(SHARED.glob("golden/fgd/inputs/*/typical_pods.csv"))


@pytest.mark.parametrize("path", FILES, ids=[path.parent.name for path in FILES])
def test_typical_pods_and_frequencies_are_identical(shared: Callable[[str], Path], path: Path) -> None:
    trace = path.parent.name.rpartition("-seed")[0]
    typical = TypicalPods.of(PodTable(raw_trace(shared("golden/fgd"), trace)))
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert list(typical.cpu_milli) == [int(row["cpu_milli"]) for row in rows]
    assert list(typical.gpu_milli) == [int(row["gpu_milli"]) for row in rows]
    assert list(typical.num_gpu) == [int(row["num_gpu"]) for row in rows]
    assert ["|".join(models) for models in typical.gpu_models] == [row["gpu_spec"] for row in rows]
    assert list(typical.frequency) == [float(row["frequency"]) for row in rows]


def test_there_is_something_to_compare(shared: Callable[[str], Path]) -> None:
    shared("golden/fgd")
    assert FILES

"""Names in the source: right for every row, and forgotten once their pod has left."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fastsim.engine.online.native_ids import NativeIds
from fastsim.engine.tables import INTERVAL, OUTCOME, POD


def rows(*ends: tuple[int, int]) -> Any:
    """Outcome rows from (arrival number, closes)."""
    out = np.zeros(len(ends), OUTCOME)
    for k, (seq, closes) in enumerate(ends):
        out["seq"][k], out["closes"][k] = seq, closes
    return out


def batch(first: int, count: int) -> pa.RecordBatch:
    names = [None if k % 5 == 0 else f"pod-{k}" for k in range(first, first + count)]
    return pa.record_batch({"native_id": pa.array(names, pa.string())})


def test_without_the_column_there_are_no_names() -> None:
    names = NativeIds(False)
    names.add(pa.record_batch({"pod_id": [1]}))
    assert names.of(rows((0, INTERVAL | POD))) is None


@pytest.mark.parametrize("seed", range(4))
def test_names_follow_their_pods_through_any_order(seed: int) -> None:
    names, chance = NativeIds(True), random.Random(seed)
    for first in range(0, 60, 12):
        names.add(batch(first, 12))
    waiting = list(range(60))
    while waiting:
        picked = chance.sample(waiting, min(len(waiting), chance.randint(1, 9)))
        ends = [(k, chance.choice((INTERVAL, INTERVAL | POD, POD))) for k in picked]
        found = names.of(rows(*ends))
        assert found is not None
        assert found.to_list() == [None if k % 5 == 0 else f"pod-{k}" for k in picked]
        waiting = [k for k in waiting if not any(seq == k and closes & POD for seq, closes in ends)]
    assert len(names._batches) == 0


def test_memory_follows_the_pods_that_are_left() -> None:
    names = NativeIds(True)
    for first in range(0, 1000, 100):
        names.add(batch(first, 100))
        names.of(rows(*((k, INTERVAL | POD) for k in range(first, first + 99))))
    assert sum(len(held.names) for held in names._batches) == 10
    last = names.of(rows((99, INTERVAL | POD), (999, INTERVAL)))
    assert last is not None and last.to_list() == ["pod-99", "pod-999"]

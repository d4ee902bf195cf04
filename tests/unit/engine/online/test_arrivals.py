"""Batches for the loop: cut where asked, every row once, absent columns as what they stand for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from fastsim.engine.online.arrivals import NO_ARRIVALS, arrivals, arrived_by, bound, pieces, with_last
from fastsim.errors import InputError


def batches(*sizes: int) -> list[pa.RecordBatch]:
    """Batches of these sizes whose only column counts the rows."""
    ends = np.cumsum(sizes)
    return [pa.record_batch({"row": np.arange(end - size, end)}) for size, end in zip(sizes, ends, strict=True)]


@pytest.mark.parametrize(
    ("every", "at", "ends"),
    [
        (0, 0, [5, 5, 12]),
        (4, 0, [4, 5, 5, 8, 12]),
        (0, 7, [5, 5, 7, 12]),
        (6, 7, [5, 5, 6, 7, 12]),
        (100, 5, [5, 5, 12]),
    ],
)
def test_batches_are_cut_where_asked_and_no_row_is_lost(every: int, at: int, ends: list[int]) -> None:
    found = list(pieces(iter(batches(5, 0, 7)), every, at))
    rows = [piece["row"].to_pylist() for piece in found]
    assert [row[-1] + 1 for row in rows] == sorted(set(ends))
    assert [number for row in rows for number in row] == list(range(12))


@pytest.mark.parametrize(("time_s", "count"), [(-1.0, 0), (0.0, 1), (4.0, 5), (4.5, 5), (5.0, 7), (99.0, 9)])
def test_batches_end_with_the_last_row_that_has_arrived(time_s: float, count: int) -> None:
    times = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 8.0, 9.0]
    parts = [pa.record_batch({"submit_s": times[:5]}), pa.record_batch({"submit_s": times[5:]})]
    found = [row for batch in arrived_by(iter(parts), time_s) for row in batch["submit_s"].to_pylist()]
    assert found == times[:count]


def test_the_last_batch_is_known_as_such() -> None:
    assert list(with_last(iter("abc"))) == [("a", False), ("b", False), ("c", True)]
    assert list(with_last(iter(""))) == []


def test_absent_columns_and_nulls_are_for_ever_and_of_priority_zero() -> None:
    plain = pa.record_batch({"pod_id": [7, 8], "submit_s": [0.0, 1.0]})
    found = arrivals(plain, np.array([3, 3], np.int32), np.array([0, -1], np.int32), {})
    assert found.pod_id.tolist() == [7, 8] and found.cls.tolist() == [3, 3] and found.submit_s.tolist() == [0.0, 1.0]
    assert np.isnan(found.duration_s).all() and found.priority.tolist() == [0, 0]
    full = plain.append_column("duration_s", pa.array([None, 2.0]))
    full = full.append_column("priority", pa.array([5, None], pa.int32()))
    found = arrivals(full, np.zeros(2, np.int32), np.zeros(2, np.int32), {})
    assert np.isnan(found.duration_s[0]) and found.duration_s[1] == 2.0 and found.priority.tolist() == [5, 0]
    told = [column.dtype for column in found if column is not None]
    assert told == [column.dtype for column in NO_ARRIVALS if column is not None] and found.node is None


def test_nodes_that_pods_are_on_are_positions_and_devices_are_bits() -> None:
    names = pa.array(["b", None, "a"])
    plain = pa.record_batch({"pod_id": [7, 8, 9], "submit_s": [0.0, 1.0, 2.0], "bound_node": names})
    node, gpus = bound(plain, {"a": 0, "b": 1})
    assert node.tolist() == [1, -1, 0] and gpus.tolist() == [0, 0, 0]
    told = plain.append_column("bound_gpus", pa.array([[0, 63], None, [1]], pa.list_(pa.int16())))
    assert bound(told, {"a": 0, "b": 1})[1].tolist() == [(1 << 63) + 1, 0, 2]
    assert bound(plain.slice(1, 1), {}) == (None, None)
    with pytest.raises(InputError, match="workload: pod 7: bound_node: found 'b', expected a node of the cluster"):
        bound(plain, {"a": 0})

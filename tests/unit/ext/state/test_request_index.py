"""The compiled index of requests: every field counts, ids are dense, and growth loses no request."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastsim.workload.pod_classes import REQUEST
from fastsim_ext.state.request_index import RequestIndex

KINDS = (np.int64, np.int64, np.int16, np.int16, np.int32)


def interned(index: RequestIndex, *rows: tuple[int, int, int, int, int]) -> list[int]:
    """Class ids of rows of (CPU, memory, devices, milli, number of models)."""
    columns = [np.array([row[k] for row in rows], kind) for k, kind in enumerate(KINDS)]
    out = np.full(len(rows), -1, np.int32)
    index.intern(columns[0], columns[1], columns[2], columns[3], columns[4], out)
    return out.tolist()


@pytest.mark.parametrize("field", range(5))
def test_requests_that_differ_in_one_field_are_two_classes(field: int) -> None:
    index = RequestIndex()
    one, two = [5, 6, 1, 500, 2], [5, 6, 1, 500, 2]
    two[field] += 1
    assert interned(index, tuple(one), tuple(two), tuple(one)) == [0, 1, 0]  # type: ignore[arg-type]
    assert index.verify() == 0


def test_an_empty_index_has_no_rows() -> None:
    index = RequestIndex()
    assert (index.count, index.rows(0), index.verify(), interned(index)) == (0, b"", 0, [])


def test_many_requests_are_found_again_past_every_growth() -> None:
    index = RequestIndex()
    rng = np.random.default_rng(1)
    rows = [(int(cpu), int(mem), 0, 0, 0) for cpu, mem in zip(*rng.integers(0, 90, (2, 20_000)), strict=True)]
    first: dict[Any, int] = {}
    expected = [first.setdefault(row, len(first)) for row in rows]
    assert interned(index, *rows) == expected
    assert index.count == len(first) > 4096 and index.verify() == 0
    assert [tuple(row)[:2] for row in np.frombuffer(index.rows(0), REQUEST).tolist()] == [row[:2] for row in first]
    assert interned(index, *rows[::-1]) == expected[::-1]


def test_wrong_columns_and_unknown_classes_are_refused() -> None:
    index = RequestIndex()
    interned(index, (1, 1, 0, 0, 0))
    with pytest.raises(ValueError, match="different lengths"):
        long, short = np.zeros(2, np.int64), np.zeros(1, np.int64)
        index.intern(long, short, short.astype(np.int16), short.astype(np.int16), short.astype(np.int32),
                     np.zeros(1, np.int32))  # fmt: skip
    for call, number in ((index.rows, 2), (index.rows, -1), (index.row, 1), (index.row, -1)):
        with pytest.raises(IndexError, match=f"no pod class {number}"):
            call(number)

"""Checksums see the content of every cell, and only that."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fastsim.foundation.columns.checksum import content_checksum
from tests.unit.foundation.test_parquet import ROWS, SCHEMA, batch


def checksum(*batches: pa.RecordBatch) -> str:
    return content_checksum(batches, SCHEMA)


def test_the_checksum_ignores_how_rows_are_held() -> None:
    assert checksum(batch()) == checksum(batch().slice(0, 2), batch().slice(2))
    no_t = batch(ROWS | {"t": [None] * 4})
    without = pa.schema([f for f in SCHEMA if f.name != "t"])
    assert content_checksum([no_t], SCHEMA) == content_checksum([no_t.select(without.names)], without)
    assert checksum(batch(ROWS | {"t": [-0.0, 1.5, None, 3.0]})) == checksum(batch())


@pytest.mark.parametrize(
    "change",
    [
        {"pod_id": [0, 1, 2, 4]},
        {"t": [0.0, 1.5, 0.0, 3.0]},  # null is not zero
        {"q": ["b", "a", "", "b"]},  # nor the empty text
        {"q": ["b", "ab", None, ""]},
        {"models": [["x", "y"], [], [], ["x"]]},  # nor the empty list
        {"models": [["x"], None, [], ["y", "x"]]},
        {"models": [["xy"], None, [], ["x"]]},
        {"cpu": [5, 6, 0, 8]},
    ],
)
def test_the_checksum_sees_every_cell(change: dict[str, list[Any]]) -> None:
    assert checksum(batch(ROWS | change)) != checksum(batch())


def test_the_checksum_is_of_these_bytes() -> None:
    # Spelled out once, because checksums of runs and checkpoints are compared over time.
    table = pa.record_batch(
        {
            "b": pa.array([True, None, False]), "f": pa.array([1.5, None, -0.0], pa.float32()),
            "i": pa.array([7, -1, None], pa.int16()), "u": pa.array([7, 1, 2], pa.uint32()),
            "t": pa.array(["x", None, "yz"]), "d": pa.array(["q", "q", None]).dictionary_encode(),
        }
    )  # fmt: skip
    valid = {"b": [1, 0, 1], "f": [1, 0, 1], "i": [1, 1, 0], "u": [1, 1, 1], "t": [1, 0, 1], "d": [1, 1, 0]}
    parts = {f"{name}/valid": np.array(bits, np.uint8).tobytes() for name, bits in valid.items()}
    parts |= {"b/value": np.array([1, 0, 0], np.int64).tobytes(), "f/value": np.array([1.5, 0, 0]).tobytes()}
    parts |= {"i/value": np.array([7, -1, 0], np.int64).tobytes(), "u/value": np.array([7, 1, 2], np.int64).tobytes()}
    parts |= {"t/length": np.array([1, 0, 2], np.int64).tobytes(), "t/bytes": b"xyz"}
    parts |= {"d/length": np.array([1, 1, 0], np.int64).tobytes(), "d/bytes": b"qq"}
    lines = "".join(f"{path}={hashlib.sha256(parts[path]).hexdigest()}\n" for path in sorted(parts))
    expected = hashlib.sha256(lines.encode()).hexdigest()
    assert content_checksum([table], table.schema) == expected
    assert content_checksum([table.slice(0, 1), table.slice(1)], table.schema) == expected

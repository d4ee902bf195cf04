"""Readings of GPUs for tests."""

from __future__ import annotations

import pyarrow as pa

from fastsim.telemetry.readings_table import SCHEMA, ordered

UUID = "GPU-1"


def table(values: dict[str, list[tuple[int, float]]], **device: object) -> pa.Table:
    """Readings, (milliseconds, value), by quantity; columns of the device may be replaced."""
    row = {"node": "n1", "gpu_uuid": UUID, "gpu_index": 0, "model": "V100", "namespace": "ns", "pod": "p",
           "container": "c", **device}  # fmt: skip
    rows = [
        {"ts": ts, "metric": metric, "value": value, **row} for metric, found in values.items() for ts, value in found
    ]
    return ordered(pa.Table.from_pylist(rows, schema=SCHEMA))

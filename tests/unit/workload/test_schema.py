"""The pod schema: one constant a column, required columns first, and parts of it in canonical order."""

from __future__ import annotations

import pyarrow as pa

from fastsim.workload import schema
from fastsim.workload.schema import OPTIONAL, POD_SCHEMA, REQUIRED, SORTED_BY, pod_schema


def test_every_constant_is_a_column_and_every_column_has_a_constant() -> None:
    named = {
        value: name
        for name, value in vars(schema).items()
        if isinstance(value, str) and name.isupper() and name[0] != "_" and name != "SCHEMA_VERSION"
    }
    assert {value: name.lower() for value, name in named.items()} == {name: name for name in POD_SCHEMA.names}


def test_required_columns_come_first_and_only_they_forbid_null() -> None:
    assert POD_SCHEMA.names == [*REQUIRED, *OPTIONAL]
    assert [f.name for f in POD_SCHEMA if not f.nullable] == list(REQUIRED)
    assert set(SORTED_BY) <= set(REQUIRED)


def test_times_are_float_seconds_and_amounts_are_integers() -> None:
    kinds = {f.name: f.type for f in POD_SCHEMA}
    assert {kind for name, kind in kinds.items() if name.endswith("_s")} == {pa.float64()}
    assert all(pa.types.is_integer(kind) for name, kind in kinds.items() if name.endswith(("_milli", "_mib", "_id"))
               and not name.startswith("native_"))  # fmt: skip


def test_a_part_keeps_the_order_and_forgets_strange_names() -> None:
    assert pod_schema(["priority", "colour", "pod_id"]).names == ["pod_id", "priority"]
    assert pod_schema({"pod_id": 1}).field("pod_id").nullable is False
    assert pod_schema(name for name in POD_SCHEMA.names).equals(POD_SCHEMA)
    assert pod_schema(()).names == []

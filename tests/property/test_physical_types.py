"""Every column of every table of users has cases in every physical type that Arrow has; `test_fuzz` plays them."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from tests.fuzz.physical_forms import FORMS
from tests.fuzz.physical_types import TABLES, choices_of, plain

NOT_BUILT = {"EXTENSION", "INTERVAL_MONTHS", "INTERVAL_DAY_TIME"}
"""Types that pyarrow names, but makes only as something else or not at all."""
VALUES: list[tuple[list[object], pa.DataType]] = [
    ([1, 0, None], pa.int64()), ([1.0, 2.0], pa.float64()), ([True, None], pa.bool_()), (["a", None], pa.string()),
    ([None, None], pa.string()), ([1000, 2000], pa.timestamp("ms", "UTC")), ([[1], [2], None], pa.list_(pa.int16())),
    ([[("a", 1)], None], pa.map_(pa.string(), pa.int64())), ([{"key": "a"}], pa.struct([("key", pa.string())])),
]  # fmt: skip


def test_every_physical_type_has_a_form() -> None:
    built: set[int] = set()
    for seed, (values, kind) in enumerate(VALUES * 8):
        forms = [build(values, kind, random.Random(seed)) for build in FORMS.values()]
        built |= {form.column.type.id for form in forms if form is not None}
    known = {name[5:]: getattr(pa.lib, name) for name in dir(pa.lib) if name.startswith("Type_")}
    assert {name for name, number in known.items() if number not in built} - NOT_BUILT == set()


@pytest.mark.parametrize("name", TABLES)
def test_every_column_has_values_and_cases(name: str) -> None:
    table = TABLES[name]
    rows = table.rows()
    assert set(rows) == set(table.schema.names)
    assert {choice[0] for choice in choices_of(name)} == set(rows)
    for field in table.schema:
        made = pa.array(rows[field.name], plain(field.type))
        assert field.nullable or not made.null_count

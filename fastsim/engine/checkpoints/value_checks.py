"""Checks of stored values before a compiled loop works on them: ranges, types, records.

Each function raises ValueError naming the first wrong value and its position.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

MOST = 1 << 62
"""More than any count or amount in a state."""
LARGEST_INTEGER = 2**63 - 1
"""The largest number of 64 bits."""
LATEST = 1e300
"""Later than any time in a state, seconds."""
COUNT, SPAN, TIME = (0, MOST), (0.0, LATEST), (-LATEST, LATEST)
"""Ranges of counts, of seconds, and of times."""


def check_range(values: Any, low: Any, high: Any, name: str, *, missing: bool = False) -> None:
    """ValueError naming the first of the values that is not from ``low`` to ``high``, and its position.

    NaN is within no range, but passes if values may be ``missing``.
    """
    values = np.asarray(values)
    wrong = ~((values >= low) & (values <= high))
    if missing:
        wrong &= ~np.isnan(values)
    if wrong.any():
        at = tuple(int(k) for k in np.argwhere(wrong)[0])
        least, most = (np.broadcast_to(bound, values.shape)[at] for bound in (low, high))
        where = f"[{', '.join(map(str, at))}]" if at else ""
        raise ValueError(f"{name}{where} = {values[at]} (allowed: {least} to {most})")


def check_records(records: Any, ranges: Mapping[str, tuple[Any, ...]], name: str) -> None:
    """:func:`check_range` for fields of records, whose ranges may end with True: values may be missing."""
    for field, limits in ranges.items():
        low, high = limits[:2]
        check_range(records[field], low, high, f"{name}.{field}", missing=limits[2:] == (True,))


def check_rows(rows: Any, kinds: int, pods: int | None, name: str) -> None:
    """:func:`check_records` for rows of a timeline about so many pods or jobs, numbered from 0; -1 is none of them.

    Any number stands for a pod if ``pods`` is None: it is an id of the user's.
    """
    ranges = dict.fromkeys(rows.dtype.names, COUNT) | {"t": TIME, "kind": (0, kinds - 1)}
    ids = (-LARGEST_INTEGER, LARGEST_INTEGER) if pods is None else (-1, pods - 1)
    check_records(rows, ranges | {"pod": ids}, name)


def check_numbers(numbers: Any, ranges: Mapping[str, tuple[Any, ...]], name: str) -> None:
    """ValueError unless ``numbers`` has a number within the range of each name, whole where both ends are."""
    if not isinstance(numbers, Mapping):
        raise ValueError(f"{name} of type {type(numbers).__name__}")
    for key, (low, high, *missing) in ranges.items():
        value, whole = numbers.get(key), isinstance(low, int) and isinstance(high, int)
        if not isinstance(value, int if whole else int | float) or (not whole and isinstance(value, bool)):
            raise ValueError(f"{name}.{key} of type {type(value).__name__}")
        if not low <= value <= high and not (missing and value != value):
            raise ValueError(f"{name}.{key} = {value} (allowed: {low} to {high})")


def records_of(arrays: Mapping[str, Any], name: str, kind: np.dtype[Any], count: int | None = None) -> Any:
    """An array of bytes as records of this type; ValueError if it is none, or has another ``count`` of them."""
    part = arrays[name]
    if part.dtype != np.uint8 or part.ndim != 1 or part.nbytes % kind.itemsize:
        raise ValueError(f"{name} of {part.dtype} and shape {part.shape}, no bytes of records")
    records = part.view(kind)
    if count is not None and len(records) != count:
        raise ValueError(f"{len(records)} records of {name}, expected {count}")
    return records

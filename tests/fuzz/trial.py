"""A trial: one case is made, used, and either valid or refused by one clear error; everything else is a finding."""

from __future__ import annotations

import atexit
import math
import random
import shutil
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

import fastsim as fs
from fastsim.errors import FastsimError

Trial = Callable[[int], str]
"""Tries the case of a seed; answers what happened in a word, and raises where something is wrong."""
LONGEST_MESSAGE = 6000
"""Most characters of a message; lists of known names are its longest parts."""
SIGNED = ("submit_s", "orig_", "deadline_s", "priority", "slo", "add_s", "remove_s", "job_id", "pod_id")
"""Beginnings of the names of columns that may be negative: times by another clock, ranks, names."""


def of(case: Callable[[random.Random], Any], use: Callable[[Any], object]) -> Trial:
    """The trial that uses what ``case`` draws."""
    return partial(_tried, case, use)


def _tried(case: Callable[[random.Random], Any], use: Callable[[Any], object], seed: int) -> str:
    value = case(random.Random(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            use(value)
        except FastsimError as error:
            refuse_unclear(str(error))
            return f"refused: {error}"
    return "valid"


def refuse_unclear(message: str) -> None:
    """AssertionError unless a message is one line of bounded length."""
    assert len(message) <= LONGEST_MESSAGE, f"a message of {len(message)} characters: {message[:300]}"
    assert message.isprintable(), f"unprintable: {message[:300]!r}"
    assert "internal error" not in message and "Traceback" not in message, message


def folder(name: str) -> Path:
    """A folder of this process for files of cases."""
    path = Path(tempfile.mkdtemp(prefix=f"fuzz-{name}-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def require_sound(frame: Any, signed: tuple[str, ...] = SIGNED) -> None:
    """AssertionError if a number of a table is no number, infinite or, where it must not be, negative."""
    table = pl.DataFrame(frame)
    for name, kind in table.schema.items():
        if not kind.is_numeric():
            continue
        column = table[name].drop_nulls()
        assert not kind.is_float() or column.is_finite().all(), f"{name}: {column.to_list()[:9]}"
        low = None if name.startswith(signed) else column.cast(pl.Float64).min()
        assert not isinstance(low, float) or low >= 0, f"{name}: {low:g}"


def require_sound_run(cluster: Any, workload: Any, **options: Any) -> None:
    """Simulates; AssertionError if the summary has a figure that is no number, infinite or negative."""
    # An end keeps what never ends from being a finding.
    scenario = {"policy": "best_fit", "record": "summary", "until_s": 1e6, **options}
    result = fs.simulate(cluster=cluster, workload=workload, **scenario)
    for name, value in result.summary.row(0, named=True).items():
        assert not isinstance(value, int | float) or -1e-6 < value < math.inf, f"{name}: {value}"

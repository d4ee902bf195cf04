"""One run of an original simulator: its figures, jobs and events under the names of our tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, NoReturn

import polars as pl

from fastsim.errors import InputError, reading
from fastsim.foundation.limits.packed_file import opened_bytes, opened_text

NUMBER = r"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
"""Pattern of a number."""
HOUR_S = 3600.0


class Printed(NamedTuple):
    """A value and half a unit of its last printed digit."""

    value: float
    half: float = 0.0

    def times(self, factor: float) -> Printed:
        """The same in another unit."""
        return Printed(self.value * factor, self.half * factor)


Values = Mapping[str, Printed]


@dataclass(frozen=True)
class OriginalRun:
    """``jobs`` holds values by quantity and job, ``events`` a row for each event with columns of our timeline."""

    source: str
    figures: Values
    jobs: Mapping[str, Values] = field(default_factory=dict)
    events: pl.DataFrame = field(default_factory=pl.DataFrame)


def printed(text: str) -> Printed:
    """A number as it was printed, with its digits after the point; one with an exponent was printed in full."""
    digits = 0 if "e" in text.lower() else len(text.partition(".")[2])
    return Printed(float(text), 0.5 * 10.0**-digits if 0 < digits < 12 else 0.0)


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a text (plain or .gz) with their numbers from 1."""
    try:
        with opened_text(path) as text, reading(path, "a text in UTF-8"):
            yield from enumerate(text, 1)
    except OSError as error:
        raise InputError(str(path), error.strerror or str(error), "a file that can be read") from None


def matches(path: Path, patterns: Mapping[str, str]) -> Iterator[tuple[int, str, re.Match[str]]]:
    """Number, name of the pattern and match of every line in which one of the patterns is found."""
    compiled = [(name, re.compile(pattern)) for name, pattern in patterns.items()]
    for number, line in lines(path):
        for name, pattern in compiled:
            if match := pattern.search(line):
                yield number, name, match


def texts(path: Path) -> pl.DataFrame:
    """A table with commas (plain or .gz), its fields as texts."""
    try:
        with opened_bytes(path) as file, reading(path, "a table with commas"):
            return pl.read_csv(file.read(), infer_schema=False)
    except OSError as error:
        raise InputError(str(path), error.strerror or str(error), "a file that can be read") from None


def numbers(path: Path, column: pl.Series) -> list[float]:
    """The numbers of a column, which ends with empty fields if other columns have more."""
    known = column.is_not_null().arg_true()
    column = column[: known[-1] + 1 if len(known) else 0]
    values = column.cast(pl.Float64, strict=False)
    if wrong := values.is_null().arg_true().to_list():
        raise InputError(f"{path}:{wrong[0] + 2}: {column.name}", repr(column[wrong[0]]), "a number")
    return values.to_list()


def once(values: dict[str, Printed], name: str, value: Printed, where: str) -> None:
    """Add a value; InputError if there is one of this name already, as in a file of several runs."""
    if name in values:
        raise InputError(where, f"a second {name}", "the file of one run")
    values[name] = value


def chosen(path: Path, names: list[str], wanted: str | None) -> str:
    """The run of this name, or the only one."""
    if wanted in names:
        return str(wanted)
    if wanted is None and len(names) == 1:
        return names[0]
    found = f"runs {', '.join(map(repr, names[:5]))}" if names else "no run"
    raise InputError(str(path), found, f"a run {wanted!r}" if wanted else "one run, or which one: ?run=NAME")


def refuse(path: Path, expected: str) -> NoReturn:
    """InputError for a file without a line of the expected format."""
    raise InputError(str(path), "no line that is known", expected)

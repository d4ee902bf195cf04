"""Times in the cells of tables: units of numbers, dates, lengths of time, and formats of dates."""

from __future__ import annotations

import re

import polars as pl

from fastsim.foundation.limits import quantities

DIVISORS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
"""Units of time, in parts of a second."""
FACTORS = {unit: quantities.UNITS[unit] for unit in ("min", "h", "d")}
"""Units of time, in seconds."""
NUMBERS = (*DIVISORS, *FACTORS)
"""Units of numbers."""
UNITS = (*NUMBERS, "iso", "hms")
"""Units that may stand in brackets behind a column."""
DATE = r"\d{4}-\d\d-\d\d"
"""Beginning of a date that `iso` reads."""
US_DATE = r"\d{1,2}/\d{1,2}/\d{4}"
"""Beginning of a date as spreadsheets of the United States write it."""
SPAN = r"^(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)$"
EXPECTED = {"iso": "a date and time such as 2024-03-15 10:00:00", "hms": "[D-]HH:MM:SS"}
"""Forms of cells with these units."""


def is_unit(unit: str) -> bool:
    """Whether a text may stand in brackets behind a column: a unit, or a format of dates such as `%m/%d/%Y %H:%M`."""
    return unit in UNITS or unit.startswith("%")


def hint(name: str, cell: str, unit: str | None) -> str:
    """How to read a cell that is a date, where it was read with this unit, or as a number."""
    if unit is None and re.match(DATE, cell):
        return f"write {name}[iso]"
    if re.match(US_DATE, cell) or unit == "iso":
        return f"a format in brackets reads other dates: {name}[%m/%d/%Y %H:%M]"
    return ""


def seconds_of_texts(texts: pl.Series, unit: str) -> pl.Series:
    """Seconds of dates (since 1970) or of lengths of time; null where a text is none.

    A format that cannot be is an error of polars.
    """
    if unit == "iso":
        return iso_seconds(texts)
    return span_seconds(texts) if unit == "hms" else formatted_seconds(texts, unit)


def formatted_seconds(texts: pl.Series, form: str) -> pl.Series:
    """Seconds since 1970 of dates in a format of strptime; without a zone they are UTC."""
    times = texts.str.strip_chars().str.to_datetime(form, time_unit="us", strict=False)
    return times.dt.epoch("us").cast(pl.Float64) / 1e6


def since(times: pl.Series) -> pl.Series:
    """Microseconds since 1970 of dates, microseconds of durations."""
    if times.dtype == pl.Date:
        times = times.cast(pl.Datetime("us"))
    if times.dtype == pl.Duration:
        return times.dt.total_microseconds().cast(pl.Float64)
    if times.dtype == pl.Time:
        return times.cast(pl.Int64).cast(pl.Float64) / 1e3
    return times.dt.epoch("us").cast(pl.Float64)


def iso_seconds(texts: pl.Series) -> pl.Series:
    """Seconds since 1970 of ISO texts; null where a text is none."""
    plain = texts.str.strip_chars().str.replace(r"^(\d{4}-\d\d-\d\d) ", "${1}T")
    plain = plain.str.replace(r"^(\d{4}-\d\d-\d\d)$", "${1}T00:00:00").str.replace(r"\s*(Z|UTC)$", "+00:00")
    plain = plain.str.replace(r"(T\d\d:\d\d)([+-]|$)", "${1}:00${2}").str.replace(r"([+-]\d\d)$", "${1}:00")
    zoned = plain.str.contains(r"T.*[+-]\d\d:?\d\d$").fill_null(False)
    plain = pl.select(pl.when(zoned).then(plain).otherwise(plain + "+00:00")).to_series()
    times = plain.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%z", time_unit="us", time_zone="UTC", strict=False)
    return times.dt.epoch("us").cast(pl.Float64) / 1e6


def span_seconds(texts: pl.Series) -> pl.Series:
    """Seconds of texts as Slurm writes them."""
    plain = texts.str.strip_chars()
    days, hours, minutes, seconds = (plain.str.extract(SPAN, one).cast(pl.Float64) for one in (1, 2, 3, 4))
    return days.fill_null(0.0) * 86_400 + hours.fill_null(0.0) * 3600 + minutes * 60 + seconds

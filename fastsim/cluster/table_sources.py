"""Tables as sources of nodes and pods: files by their names, frames of any library, mappings and lists of rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa

from fastsim.errors import InputError, reading
from fastsim.foundation.columns.physical_types import PLAIN, Unconvertible, plain
from fastsim.foundation.csv_table import csv_line, csv_texts
from fastsim.foundation.limits.packed_file import opened_bytes
from fastsim.foundation.limits.work_budget import Work
from fastsim.foundation.parquet import arrow_table, one_line, parquet_table

JSON_LINES = (".jsonl", ".ndjson")
"""Ends of the names of files with one JSON object a line."""


class Source(NamedTuple):
    """A table as it was read; ``place`` names row `i` (from 0) of it."""

    frame: pl.DataFrame
    name: str
    place: Callable[[int], str]


def source_of(
    data: Any, name: str | None = None, delimiter: str = ",", header: Sequence[str] | None = None,
    work: Work = Work.HELD_PODS,
) -> Source:  # fmt: skip
    """A CSV or Parquet file or lines of JSON (by its name), or a frame of any library; cells of a CSV file are texts.

    The rows of a Parquet file are within the budget of ``work``.
    """
    if isinstance(data, str | os.PathLike):
        path = str(data)
        if path.endswith((".parquet", ".pq")):
            return Source(_frame(parquet_table(path, work), path), path, lambda row: f"{path}:{row + 1}")
        if path.removesuffix(".gz").endswith(JSON_LINES):
            return Source(_frame(_json_lines(path), path), path, lambda row: f"{path}:{row + 1}")
        table = csv_texts(path, header, delimiter=delimiter)
        return Source(_frame(table, path), path, lambda row: f"{path}:{csv_line(path, row, header is None)}")
    label = name or "frame"
    return Source(_frame(_arrow(data, label), label), label, lambda row: f"{label}:{row + 1}")


def _json_lines(path: str) -> pa.Table:
    """One object a line, its keys as columns."""
    with reading(path, "one JSON object a line", (ValueError,)), opened_bytes(path) as file:
        return pl.read_ndjson(file.read(), infer_schema_length=None).to_arrow()


def _arrow(data: Any, name: str) -> pa.Table:
    """Any table; pandas before 2.2 and plain mappings of lists have no Arrow stream."""
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return arrow_table(data, name)
    if isinstance(data, list | tuple) and data and all(isinstance(row, Mapping) for row in data):
        data = {name: [row.get(name) for row in data] for name in dict.fromkeys(name for row in data for name in row)}
    columns = data
    if not isinstance(data, Mapping) and hasattr(data, "to_dict"):
        columns = data.to_dict("list")
    if not isinstance(columns, Mapping):
        expected = "a frame of polars, pandas or pyarrow, a mapping of names to lists, or a list of mappings"
        raise InputError(name, type(data).__name__, expected)
    arrays = {}
    for key, values in columns.items():
        with reading(f"{name}: {key}", "cells of one type", (TypeError, ValueError)):
            arrays[str(key)] = pa.array(_plain(values), from_pandas=True)
    try:
        return pa.table(arrays)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(name, one_line(error), "columns of one type and one length each") from error


def _plain(values: Any) -> list[Any]:
    """Cells without the marks for missing ones that differ from themselves."""
    return [None if value != value else value for value in values]


def _frame(table: pa.Table, name: str) -> pl.DataFrame:
    indices = [one for one in table.column_names if one.startswith("__index_level_")]  # the index of pandas
    table = table.drop_columns(indices)
    columns = [_plain_column(table, number, name) for number in range(table.num_columns)]
    with reading(name, "columns of plain types, each name once", (ValueError,)):
        frame = pl.from_arrow(pa.table(columns, table.column_names))
    assert isinstance(frame, pl.DataFrame)
    return frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))


def _plain_column(table: pa.Table, number: int, name: str) -> pa.Array | pa.ChunkedArray:
    """A column in a type that polars reads, which is tried with it alone, as its errors do not name columns."""
    place, column = f"{name}: {table.column_names[number]}", table.column(number)
    try:
        known = plain(column)
    except Unconvertible as fault:
        raise InputError(place, fault.found, fault.expected, "convert the column, or leave it out") from None
    with reading(place, PLAIN, (ValueError,)):
        pl.from_arrow(known.slice(0, 0))
    return known

"""The axes of a sweep: lists, equal steps, zipped lists, and cutoff rates above which runs are left out."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fastsim.errors import FastsimError, InputError, PolicyError, ScenarioError
from fastsim.foundation.limits.knobs import RUNS
from fastsim.foundation.nested_text import json_value
from fastsim.foundation.option_texts import parted

LISTED = ("deschedule",)
"""Fields whose one value is a list."""
STEPPED = ("rate_per_hour", "jobs", "pods", "split", "durations", "multi_gpu", "priorities", "slos", "warm_start")
"""Keys that may be given as equal steps."""


class Mistakes:
    """All errors in the keys of a sweep, raised together before anything runs."""

    def __init__(self) -> None:
        self.errors: dict[str, FastsimError] = {}

    def add(self, error: FastsimError) -> None:
        """Add an error, once for each message."""
        self.errors.setdefault(str(error), error)

    def check(self, where: str) -> None:
        """Raise the only error, or one ScenarioError that lists all."""
        errors = list(self.errors.values())
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise ScenarioError(where, f"{len(errors)} mistakes", "values that runs take", "; ".join(self.errors))


class Axis(NamedTuple):
    """Keys that change together, the values of each choice, and where in the file each choice stands."""

    names: tuple[str, ...]
    choices: tuple[tuple[Any, ...], ...]
    paths: tuple[tuple[str, ...], ...]


class Combination(NamedTuple):
    """One value for each key of all axes, and its path in the file."""

    values: dict[str, Any]
    paths: dict[str, str]


def axes_of(
    values: Mapping[str, Any], keys: Sequence[str], where: str, mistakes: Mistakes
) -> tuple[list[Axis], dict[str, Any]]:
    """The axes in the order of ``keys``, and the values that all runs share."""
    axes = list(_zipped(values.get("zip", []), keys, where, mistakes))
    together = [name for axis in axes for name in axis.names]
    for name in together:
        if name in values or together.count(name) > 1:
            mistakes.add(ScenarioError(f"{where}: {name}", "given twice", "once, in zip or by itself"))
    for name in keys:
        if _is_listed(name, values.get(name)) and name not in together:
            try:
                axes.append(_axis(name, values[name], where))
            except ScenarioError as error:
                mistakes.add(error)
    axes.sort(key=lambda axis: min(list(keys).index(name) for name in axis.names))
    fixed = {n: values[n] for n in keys if n in values and n not in together and not _is_listed(n, values[n])}
    return axes, fixed


def choices_of(axes: Sequence[Axis]) -> Iterator[Combination]:
    """Every combination, the last axis varying fastest."""
    pairs = [list(zip(axis.choices, axis.paths, strict=True)) for axis in axes]
    names = [name for axis in axes for name in axis.names]
    for combination in itertools.product(*pairs):
        values = [value for choice, _ in combination for value in choice]
        paths = [path for _, places in combination for path in places]
        yield Combination(dict(zip(names, values, strict=True)), dict(zip(names, paths, strict=True)))


def _is_listed(name: str, value: Any) -> bool:
    if name in LISTED:
        return isinstance(value, list) and all(isinstance(item, list) for item in value)
    return isinstance(value, list) or (isinstance(value, dict) and name in STEPPED)


def _axis(name: str, value: Any, where: str) -> Axis:
    choices = _steps(value, f"{where}: {name}") if isinstance(value, dict) else _items(value, f"{where}: {name}")
    return Axis((name,), tuple((item,) for item in choices), tuple((f"{name}[{k}]",) for k in range(len(choices))))


def _items(value: Sequence[Any], where: str) -> list[Any]:
    if not value:
        raise ScenarioError(where, "an empty list", "at least one value")
    for at, item in enumerate(value):
        if value.index(item) != at:
            raise ScenarioError(f"{where}[{at}]", f"{item!r} once more", "each value once")
    return list(value)


def _zipped(tables: Any, keys: Sequence[str], where: str, mistakes: Mistakes) -> Iterator[Axis]:
    for k, table in enumerate(tables if isinstance(tables, list) else [tables]):
        place = f"{where}: zip[{k}]"
        if not isinstance(table, dict) or not table or not all(isinstance(item, list) for item in table.values()):
            mistakes.add(ScenarioError(place, repr(table), "a table of lists of one length"))
            continue
        unknown = [name for name in table if name not in keys]
        lengths = {name: len(item) for name, item in table.items()}
        if unknown:
            mistakes.add(ScenarioError(f"{place}.{unknown[0]}", "an unknown key", f"keys among {', '.join(keys)}"))
        elif len(set(lengths.values())) != 1 or 0 in lengths.values():
            counts = ", ".join(f"{count} of {name}" for name, count in lengths.items())
            mistakes.add(ScenarioError(place, counts, "lists of one length, not empty"))
        else:
            count = next(iter(lengths.values()))
            paths = tuple(tuple(f"zip[{k}].{name}[{i}]" for name in table) for i in range(count))
            yield Axis(tuple(table), tuple(zip(*table.values(), strict=True)), paths)


def _steps(table: Mapping[str, Any], where: str) -> list[Any]:
    """Equal steps from one number to another, without a 0 at the beginning."""
    numbers = [table.get(name) for name in ("from", "to")]
    points = table.get("points")
    plain = all(
        isinstance(item, int | float) and not isinstance(item, bool) and 0 <= item <= sys.float_info.max
        for item in numbers
    )
    if len(table) != 3 or not plain or not isinstance(points, int) or isinstance(points, bool) or points < 1:
        raise ScenarioError(where, str(dict(table)), "{ from = A, to = B, points = N } with 0 <= A and 0 <= B")
    RUNS.refuse(points, name=where)
    low, high = (float(item) for item in numbers if item is not None)
    step = (high - low) / max(points - 1, 1)
    values = [low + k * step for k in range(points)]
    values[-1] = high if points > 1 else low
    above_zero = values[1:] if values[0] == 0 else values
    if not above_zero:
        raise ScenarioError(where, str(dict(table)), "a number besides 0")
    return list(above_zero)


Cutoffs = Mapping[str, Mapping[str, float]]
"""Jobs per hour by cluster and policy; runs at this rate or above are left out."""


def cutoffs_of(table: Any, where: str) -> Cutoffs:
    """Cutoffs from a table, or from the JSON file at a path."""
    if isinstance(table, str):
        try:
            table = json_value(Path(table).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ScenarioError(where, f"{table}: {error}", "a table, or a JSON file of one") from None
    if not isinstance(table, dict):
        raise ScenarioError(where, type(table).__name__, "a table of clusters, each with rates by policy")
    for cluster, rates in table.items():
        if not isinstance(rates, dict):
            raise ScenarioError(f"{where}.{cluster}", repr(rates), "rates by policy, jobs per hour")
        for policy, rate in rates.items():
            if not isinstance(rate, int | float) or isinstance(rate, bool):
                raise ScenarioError(f"{where}.{cluster}.{policy}", repr(rate), "jobs per hour")
    return table


def is_cut(values: Mapping[str, Any], cutoffs: Cutoffs) -> bool:
    """Whether the rate of a run is at or above the cutoff of its cluster and policy; what is no number is not."""
    rate, cluster = values.get("rate_per_hour"), str(values.get("cluster", ""))
    head = parted(cluster)[0]
    for name in (cluster, head, head.removeprefix("gavel:")):
        cutoff = cutoffs.get(name, {}).get(str(values.get("policy", "")))
        if cutoff is not None and isinstance(rate, int | float):
            return rate >= cutoff
    return False


def located(error: FastsimError, where: str, path: str, name: str) -> FastsimError:
    """The error with the path of the value in the file; ``name`` is its field."""
    if not isinstance(error, ScenarioError | InputError | PolicyError):
        return error
    inner = str(error.where)
    inner = path + inner[len(name) :] if inner.startswith(name) else f"{path}: {inner}"
    return ScenarioError(f"{where}: {inner}", error.found, error.expected, error.do)

"""Runs that differ in their seeds only are one series: one line of a chart, one row of a table.

A series is named after what tells it from the others: its policy, and whatever else of the scenarios differs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fastsim.engine.result import Result

POINTS = 500
"""Most points of one curve; a longer timeline is thinned to the last state in each of so many steps."""
WIDTH, HEIGHT = 420, 260
"""Size of one chart in pixels."""

SEED = re.compile(r"(?<=[?&])(tune_)?seed=[^&]*&?")
"""The seed in the text of a cluster or workload."""
SILENT = ("seed", "name", "out", "log", "record")
"""Fields of a scenario that make no other series."""


class Series(NamedTuple):
    """Runs that are alike but for their seeds."""

    name: str
    runs: tuple[Result, ...]


def series_of(results: Sequence[Result], names: Sequence[str] | None = None) -> list[Series]:
    """The series of these runs in the order they first appear; runs of one of the ``names`` are one, if they are given.

    Runs that were not made from texts are told apart by policy and checksums.
    """
    keys = [{"name": name} for name in names] if names is not None else [_fields(result) for result in results]
    grouped: dict[tuple[tuple[str, str], ...], list[Result]] = {}
    for key, result in zip(keys, results, strict=True):
        grouped.setdefault(tuple(key.items()), []).append(result)
    fields = [dict(key) for key in grouped]
    told = [_name(field, _differing(fields)) for field in fields]
    return [Series(name, tuple(runs)) for name, runs in zip(_distinct(told), grouped.values(), strict=True)]


def seed_text(result: Result) -> str:
    """The seed of a run, or a question mark."""
    return str(result.provenance.get("options", {}).get("seed", "?"))


def _fields(result: Result) -> dict[str, str]:
    """What a run is, seeds left out; the policy first."""
    known = result.provenance
    fields = {"policy": str(known.get("policy", "run"))}
    scenario = known.get("scenario")
    if scenario is None:
        for name in ("cluster", "workload"):
            fields[name] = str(known.get(name, {}).get("sha256", ""))[:8]
        return fields
    for name, value in sorted(scenario.items()):
        if name not in SILENT and name != "policy":
            fields[name] = SEED.sub("", str(value)).rstrip("?&")
    return fields


def _differing(fields: Sequence[dict[str, str]]) -> list[str]:
    names = dict.fromkeys(name for field in fields for name in field)
    return [name for name in names if len({field.get(name) for field in fields}) > 1]


def _name(field: dict[str, str], differing: Sequence[str]) -> str:
    words = [
        field[name] if name in ("policy", "cluster", "workload", "name") else f"{name}={field[name]}"
        for name in differing
        if name in field
    ]
    return ", ".join(words) or field.get("policy") or field.get("name", "run")


def _distinct(names: Sequence[str]) -> list[str]:
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
    if max(seen.values(), default=0) < 2:
        return list(names)
    return [f"{name} ({place})" if seen[name] > 1 else name for place, name in enumerate(names, 1)]


def run_name(result: Result) -> str:
    """What a run is called unless it is given a name: its scenario's name, or its policy."""
    scenario = result.provenance.get("scenario", {})
    return str(scenario.get("name") or result.provenance.get("policy", "run"))


def distinct_names(names: Sequence[str]) -> list[str]:
    """The names, a number behind those that were there before."""
    seen: dict[str, int] = {}
    distinct = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        distinct.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return distinct

"""Runs that differ in their seeds only are one series: one line of a chart, one row of a table.

A series is named after the fields of its scenario in which it differs from the others, the policy first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fastsim.engine.result import Result

POINTS = 500
"""Most points of one curve; a longer timeline is thinned to the last state in each of so many steps."""
WIDTH, HEIGHT = 420, 260
"""Size of one chart in pixels."""

SEED = re.compile(r"(?<=[?&])(tune_)?seed=[^&]*&?")
"""The seed in the text of a cluster or workload."""
LOAD = re.compile(r"(?<=[?&])rate_per_hour=([^&]+)&?")
"""The load in the text of a workload, jobs per hour."""
SILENT = ("seed", "name", "out", "log", "record")
"""Fields of a scenario that do not distinguish series."""


class RunSeries(NamedTuple):
    """Runs that differ in their seeds only; ``named``: that have a name which the user gave."""

    name: str
    runs: tuple[Result, ...]
    named: bool = False


def series_of(results: Sequence[Result], names: Sequence[str] | None = None, *, loads: bool = True) -> list[RunSeries]:
    """The series of these runs in order of first appearance; with ``names``, runs of equal names are one series.

    Runs of objects in memory are distinguished by policy and checksums. Without ``loads``, runs that differ in the load
    that is written in their workload are one series, too.
    """
    keys = [_fields(result, loads) for result in results] if names is None else [{"name": name} for name in names]
    grouped: dict[tuple[tuple[str, str], ...], list[Result]] = {}
    for key, result in zip(keys, results, strict=True):
        grouped.setdefault(tuple(key.items()), []).append(result)
    fields = [dict(key) for key in grouped]
    labels = [candidate_name(field, _differing(fields)) for field in fields]
    pairs = zip(_numbered(labels), grouped.values(), strict=True)
    return [RunSeries(name, tuple(runs), names is not None) for name, runs in pairs]


def written_load(result: Result) -> float | None:
    """Jobs per hour in the text of the workload; None without that option."""
    option = LOAD.search(str((result.provenance.get("scenario") or {}).get("workload", "")))
    return float(option[1]) if option else None


def seed_text(result: Result) -> str:
    """The seed of a run, or a question mark."""
    return str(result.provenance.get("options", {}).get("seed", "?"))


def _fields(result: Result, loads: bool = True) -> dict[str, str]:
    """The fields that distinguish a run from those of other series; the policy first."""
    provenance = result.provenance
    fields = {"policy": str(provenance.get("policy", "run"))}
    scenario = provenance.get("scenario") or {}
    for name in ("cluster", "workload"):
        if name not in scenario:
            fields[name] = str(provenance.get(name, {}).get("sha256", ""))[:8]
    for name, value in sorted(scenario.items()):
        if name not in SILENT and name != "policy":
            text = SEED.sub("", str(value))
            fields[name] = (text if loads else LOAD.sub("", text)).rstrip("?&")
    return fields


def _differing(fields: Sequence[dict[str, str]]) -> list[str]:
    names = dict.fromkeys(name for field in fields for name in field)
    return [name for name in names if len({field.get(name) for field in fields}) > 1]


def candidate_name(field: Mapping[str, str], differing: Sequence[str]) -> str:
    """The name of runs with these fields among others that differ from them in the fields ``differing``."""
    words = [
        field[name] if name in ("policy", "cluster", "workload", "name") else f"{name}={field[name]}"
        for name in differing
        if name in field
    ]
    return ", ".join(words) or field.get("policy") or field.get("name", "run")


def _numbered(names: Sequence[str]) -> list[str]:
    count: dict[str, int] = {}
    for name in names:
        count[name] = count.get(name, 0) + 1
    if max(count.values(), default=0) < 2:
        return list(names)
    return distinct_names([f"{name} ({place})" if count[name] > 1 else name for place, name in enumerate(names, 1)])


def run_name(result: Result) -> str:
    """Default name of a run: its scenario's name, or its policy."""
    scenario = result.provenance.get("scenario") or {}
    return str(scenario.get("name") or result.provenance.get("policy", "run"))


def distinct_names(names: Sequence[str]) -> list[str]:
    """The names, with a number added to repeated ones that no other name has."""
    taken, first = set(names), set[str]()
    distinct = []
    for name in names:
        chosen, number = name, 1
        while chosen in (first if number == 1 else taken):
            number += 1
            chosen = f"{name} ({number})"
        first.add(name)
        taken.add(chosen)
        distinct.append(chosen)
    return distinct

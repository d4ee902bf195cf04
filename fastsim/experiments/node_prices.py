"""Prices of nodes by the hour, for each tariff (on demand, reserved, spot ...).

===============  ====================================================================================
``g2=12.5&t4=1`` $ for an hour of one node of each type
``nodes.csv``    a file with the column ``node_type`` and one column of $ for an hour for each tariff
===============  ====================================================================================

An addition may have a price of its own, a file also by its name without folder and suffix. Others cost the sum of their
nodes: each its price by node type, those of a file or a copy (``node:NAME``) by name, instance type or GPU model.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fastsim.errors import InputError, ScenarioError, suggestion
from fastsim.foundation.option_texts import names_file

TARIFF = "price"
"""Name of the tariff of a text, which has one."""
Tariffs = Mapping[str, Mapping[str, float]]
"""Tariff -> node type -> $ for an hour of one node."""


def node_prices_from(tariffs: Any) -> Tariffs:
    """The tariffs of a text, a file, or a mapping from node types to $ for an hour; empty for None."""
    if tariffs is None:
        return {}
    if isinstance(tariffs, Mapping):
        return {TARIFF: {name: _dollars(f"node prices: {name}", price) for name, price in tariffs.items()}}
    if names_file(tariffs):
        return _from_csv(tariffs)
    pairs = [part.partition("=") for part in str(tariffs).split("&")]
    if not all(name.strip() and equals for name, equals, _ in pairs):
        raise ScenarioError(
            "node prices", repr(str(tariffs)), "'g2=12.5&t4=1', or a CSV file with node_type and tariffs"
        )
    return {TARIFF: {name.strip(): _dollars(f"node prices: {name.strip()}", price) for name, _, price in pairs}}


def _from_csv(path: str | os.PathLike[str]) -> Tariffs:
    from fastsim.foundation.csv_table import csv_line, csv_texts

    table = csv_texts(path, required=["node_type"])
    tariffs = [name for name in table.column_names if name != "node_type"]
    if not tariffs:
        raise InputError(str(path), "the column node_type alone", "a column of $ for an hour for each tariff")
    prices: dict[str, dict[str, float]] = {tariff: {} for tariff in tariffs}
    for index, row in enumerate(table.to_pylist()):
        where = f"{path}:{csv_line(path, index)}"
        if row["node_type"] is None or row["node_type"] in prices[tariffs[0]]:
            raise InputError(f"{where}: node_type", repr(row["node_type"]), "a new node type")
        for tariff in tariffs:
            price = math.nan if row[tariff] is None else _dollars(f"{where}: {tariff}", row[tariff])
            prices[tariff][row["node_type"]] = price
    return prices


def price_per_h(
    tariffs: Tariffs, kind: str, counts: Mapping[str, int], nodes: Sequence[Sequence[str]] = ()
) -> dict[str, float | None]:
    """$ for an hour of one addition under each tariff, None where one of its nodes has no price there.

    ``counts`` are its nodes by type, ``nodes`` the names that the price of each node may have where there are no types;
    a kind without any price is an error.
    """
    if not tariffs:
        return {}
    names = _priced_as(list(next(iter(tariffs.values()))), kind, counts, nodes)
    sums = {tariff: sum(prices[name] * count for name, count in names.items()) for tariff, prices in tariffs.items()}
    return {tariff: None if math.isnan(total) else total for tariff, total in sums.items()}


def _priced_as(
    known: Sequence[str], kind: str, counts: Mapping[str, int], nodes: Sequence[Sequence[str]]
) -> Counter[str]:
    """How often each of the known prices counts for an addition."""
    whole = _names_of(kind)
    parts: list[tuple[Sequence[str], int]] = [((name,), count) for name, count in counts.items()]
    parts = parts or [(names, 1) for names in nodes] or [((kind,), 1)]
    if len(parts) == 1 and not counts:
        parts = [(list(dict.fromkeys([*whole, *parts[0][0]])), 1)]
    elif own := [name for name in whole if name in known]:
        parts = [(own, 1)]
    priced: Counter[str] = Counter()
    for names, count in parts:
        name = next((name for name in names if name in known), None)
        if name is None:
            found, expected = " or ".join(map(repr, names)), f"a price of it beside {', '.join(known)}"
            raise InputError("node prices", f"none of {found}", expected, suggestion(names[0], known))
        priced[name] += count
    return priced


def _names_of(kind: str) -> list[str]:
    """Names of an addition as a whole: its text, and of a file its name without folder, and without suffix."""
    if not names_file(kind):
        return [kind]
    path = Path(kind)
    return list(dict.fromkeys([kind, path.name, Path(path.name.removesuffix(".gz")).stem]))


def _dollars(where: str, value: Any) -> float:
    try:
        price = float(value)
    except (TypeError, ValueError):
        price = math.nan
    if not 0 <= price < math.inf:
        raise InputError(where, repr(value), "$ for an hour, 0 or more")
    return price

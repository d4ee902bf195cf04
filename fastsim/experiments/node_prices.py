"""Prices of nodes by the hour, for each tariff (on demand, reserved, spot ...).

===============  ====================================================================================
``g2=12.5&t4=1`` $ for an hour of one node of each type
``nodes.csv``    a file with the column ``node_type`` and one column of $ for an hour for each tariff
===============  ====================================================================================

An addition that is one node type (``node:NAME``, a file) has a price of its own; others cost the sum of their nodes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
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


def price_per_h(tariffs: Tariffs, kind: str, counts: Mapping[str, int]) -> dict[str, float | None]:
    """$ for an hour of one addition under each tariff, None where one of its nodes has no price there.

    ``counts`` are its nodes by type; a kind without any price is an error.
    """
    names = {kind: 1} if all(kind in prices for prices in tariffs.values()) else counts or {kind: 1}
    for name in names:
        known = list(next(iter(tariffs.values()), {}))
        if tariffs and name not in known:
            expected = f"a price of it beside {', '.join(known)}"
            raise InputError("node prices", f"none of {name!r}", expected, suggestion(name, known))
    sums = {tariff: sum(prices[name] * count for name, count in names.items()) for tariff, prices in tariffs.items()}
    return {tariff: None if math.isnan(total) else total for tariff, total in sums.items()}


def _dollars(where: str, value: Any) -> float:
    try:
        price = float(value)
    except (TypeError, ValueError):
        price = math.nan
    if not 0 <= price < math.inf:
        raise InputError(where, repr(value), "$ for an hour, 0 or more")
    return price

"""When nodes go and come back: random failures, a maintenance table, and the nodes' own ``add_s`` and ``remove_s``.

A node is there while nothing keeps it away: not before ``add_s``, not from ``remove_s`` on, not during maintenance,
not between a failure and its repair. At one instant, a new reason to be away comes before the end of an old one.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from fastsim.errors import InputError, ScenarioError
from fastsim.foundation.random_streams import Stream

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster

DRAWN = 16
"""Times drawn at once for a node; any number gives the same times."""


class Change(NamedTuple):
    """One node goes or comes; ``random`` ones may be left out when nobody could notice them. Seconds, position."""

    t_s: float
    position: int
    comes: bool
    random: bool


class Maintenance(NamedTuple):
    """A node, by name, that is away from ``down_s`` until ``up_s`` (seconds; infinite: for good)."""

    node: str
    down_s: float
    up_s: float


@dataclass(frozen=True)
class Outages:
    """Means of the exponential times between failures and to repair in seconds (None: no failures), and maintenance."""

    mtbf_s: float | None = None
    mttr_s: float | None = None
    maintenance: tuple[Maintenance, ...] = ()


NO_OUTAGES = Outages()
"""Nodes come and go as their own columns say."""


def failures_from(text: str) -> tuple[float | None, float | None]:
    """Mean seconds between failures and to repair from ``"mtbf=86400,mttr=3600"``; an empty text is no failures."""
    if not text.strip():
        return None, None
    expected = "mean seconds such as 'mtbf=86400,mttr=3600'"
    found: dict[str, float] = {}
    for item in text.split(","):
        name, _, number = item.partition("=")
        try:
            found[name.strip()] = float(number)
        except ValueError:
            raise ScenarioError("failures", repr(text), expected) from None
    if set(found) != {"mtbf", "mttr"} or not all(0 < mean < math.inf for mean in found.values()):
        raise ScenarioError("failures", repr(text), expected)
    return found["mtbf"], found["mttr"]


def maintenance_from(given: Any) -> tuple[Maintenance, ...]:
    """Windows from rows of (node, down_s, up_s), an Arrow table of these columns, or the path of a CSV/Parquet file."""
    if given is None or (isinstance(given, str | Sequence) and not given):
        return ()
    if isinstance(given, str):
        rows, where = _file_rows(given), given
    else:
        rows, where = _rows(given), "maintenance"
    return tuple(_window(row, f"{where}:{index + 1}") for index, row in enumerate(rows))


def _file_rows(path: str) -> list[Any]:
    import pyarrow as pa

    from fastsim.foundation.csv_table import read_csv
    from fastsim.foundation.parquet import parquet_table

    kinds = {"node": pa.string(), "down_s": pa.float64(), "up_s": pa.float64()}
    table = parquet_table(path) if path.endswith(".parquet") else read_csv(path, kinds, ("node", "down_s"))
    return _rows(table)


def _rows(given: Any) -> list[Any]:
    if hasattr(given, "__arrow_c_stream__"):
        from fastsim.foundation.parquet import arrow_table

        rows: list[Any] = arrow_table(given, "maintenance").to_pylist()
        return rows
    return list(given)


def _window(row: Any, where: str) -> Maintenance:
    expected = "a node's name and seconds: node, down_s, up_s later than down_s"
    try:
        node, down_s, up_s = (
            (row["node"], row["down_s"], row.get("up_s")) if isinstance(row, Mapping) else (*row, None)[:3]
        )
        window = Maintenance(str(node), float(down_s), math.inf if up_s is None else float(up_s))
    except (KeyError, TypeError, ValueError):
        raise InputError(where, repr(row), expected) from None
    if node is None or not -math.inf < window.down_s < window.up_s:
        raise InputError(where, repr(row), expected)
    return window


def away_at_start(cluster: Cluster) -> list[bool]:
    """Whether each node is still to come when the run begins."""
    return [add_s is not None for add_s in cluster.nodes["add_s"].to_pylist()]


def planned(cluster: Cluster, outages: Outages) -> list[Change]:
    """Every change that is known beforehand, in order."""
    changes = []
    for position, row in enumerate(cluster.nodes.select(["add_s", "remove_s"]).to_pylist()):
        changes += [Change(row["add_s"], position, True, False)] if row["add_s"] is not None else []
        changes += [Change(row["remove_s"], position, False, False)] if row["remove_s"] is not None else []
    return sorted(changes + list(_maintained(cluster, outages.maintenance)))


def _maintained(cluster: Cluster, windows: Sequence[Maintenance]) -> Iterator[Change]:
    positions = {name: position for position, name in enumerate(cluster.nodes["name"].to_pylist())} if windows else {}
    for window in windows:
        if window.node not in positions:
            raise InputError("maintenance", f"node {window.node!r}", "the name of a node of the cluster")
        yield Change(window.down_s, positions[window.node], False, False)
        if window.up_s < math.inf:
            yield Change(window.up_s, positions[window.node], True, False)


def failures(nodes: int, outages: Outages, seed: int) -> Iterator[Change]:
    """Failures and repairs of all nodes in order, without end; each node has its own random stream.

    Nodes are up at time 0, and times are exponential: up for ``mtbf_s`` on average, then down for ``mttr_s``.
    """
    if outages.mtbf_s is not None and outages.mttr_s is not None:
        alone = [_alternating(position, outages.mtbf_s, outages.mttr_s, seed) for position in range(nodes)]
        yield from heapq.merge(*alone)


def _alternating(position: int, mtbf_s: float, mttr_s: float, seed: int) -> Iterator[Change]:
    stream, t_s = Stream(seed, f"failures:{position}"), 0.0
    while True:
        gaps = stream.exponential(2 * DRAWN).tolist()
        for up, down in zip(gaps[::2], gaps[1::2], strict=True):
            t_s += up * mtbf_s
            yield Change(t_s, position, False, True)
            t_s += down * mttr_s
            yield Change(t_s, position, True, True)


def merged(cluster: Cluster, outages: Outages, seed: int) -> Iterator[Change]:
    """All changes in order; endless with failures."""
    return heapq.merge(planned(cluster, outages), failures(len(cluster), outages, seed))


def taken(changes: Iterable[Change], count: int) -> list[Change]:
    """The next changes, fewer at the end."""
    from itertools import islice

    return list(islice(changes, count))

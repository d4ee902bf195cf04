"""Times at which nodes are absent: random failures, a maintenance table, and the nodes' ``add_s`` and ``remove_s``.

A node is absent before ``add_s``, from ``remove_s`` on, during maintenance, and between a failure and its repair. At
one instant, starts of absences come before ends.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from fastsim.errors import InputError, ScenarioError, short
from fastsim.foundation.draws.random_streams import Stream
from fastsim.foundation.limits.quantities import is_span, seconds_of

if TYPE_CHECKING:
    import pyarrow as pa

    from fastsim.cluster.cluster import Cluster

DRAWN = 16
"""Times drawn at once for a node; any number gives the same times."""


class Change(NamedTuple):
    """A node at ``position`` becomes absent or present; ``random`` changes may be skipped while no pod is affected."""

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
"""No outages beside ``add_s`` and ``remove_s`` of nodes."""


def failures_from(text: str) -> tuple[float | None, float | None]:
    """Mean seconds between failures and to repair from ``"mtbf=1d,mttr=3600"``; an empty text is no failures."""
    if not text.strip():
        return None, None
    expected = "both means, as seconds or with units, such as 'mtbf=86400,mttr=3600' or 'mtbf=1d,mttr=1h'"
    means: dict[str, float] = {}
    for item in text.split(","):
        name, _, span = item.partition("=")
        seconds = seconds_of(span)
        if seconds is None:
            raise ScenarioError("failures", repr(text), expected)
        means[name.strip()] = seconds
    if set(means) != {"mtbf", "mttr"} or not all(is_span(mean, math.ulp(0)) for mean in means.values()):
        raise ScenarioError("failures", repr(text), expected)
    return means["mtbf"], means["mttr"]


def failures_text(means: Mapping[str, Any]) -> str:
    """The text that :func:`failures_from` reads, of a mapping such as ``{"mtbf": "1d", "mttr": 3600}``."""
    numbers = {name: f"{span:.17g}" if isinstance(span, float) else str(span) for name, span in means.items()}
    return ",".join(f"{name}={span}" for name, span in numbers.items())


def maintenance_from(value: Any) -> tuple[Maintenance, ...]:
    """Windows from rows of (node, down_s, up_s), an Arrow table of these columns, or the path of a CSV/Parquet file."""
    if value is None or (isinstance(value, str | Sequence) and not value):
        return ()
    if isinstance(value, str):
        rows, where = _file_rows(value), value
    else:
        rows, where = _rows(value), "maintenance"
    return tuple(_window(row, f"{where}:{index + 1}") for index, row in enumerate(rows))


def _file_rows(path: str) -> list[Any]:
    import pyarrow as pa

    from fastsim.foundation.csv_table import read_csv
    from fastsim.foundation.limits.work_budget import Work
    from fastsim.foundation.parquet import parquet_table

    if not path.endswith(".parquet"):
        kinds = {"node": pa.string(), "down_s": pa.float64(), "up_s": pa.float64()}
        return _table_rows(read_csv(path, kinds, ("node", "down_s")), path)
    return _table_rows(parquet_table(path, Work.TABLE_ROWS), path)


def _table_rows(table: pa.Table, where: str) -> list[Any]:
    """The rows of a table; its known columns are of their types."""
    import pyarrow as pa

    from fastsim.foundation.columns.physical_types import column_of

    kinds = {"node": pa.string(), "down_s": pa.float64(), "up_s": pa.float64()}
    names = [name for name in kinds if name in table.column_names]
    if not names:
        raise InputError(where, f"columns {', '.join(table.column_names)}", "node, down_s, up_s")
    typed = pa.table({name: column_of(table, name, kinds[name], lambda row: f"{where}:{row + 1}") for name in names})
    rows: list[Any] = typed.to_pylist()
    return rows


def _rows(value: Any) -> list[Any]:
    if hasattr(value, "__arrow_c_stream__"):
        from fastsim.foundation.parquet import arrow_table

        return _table_rows(arrow_table(value, "maintenance"), "maintenance")
    if not isinstance(value, Iterable):
        expected = "a file's path, a table, or rows of node, down_s and up_s"
        raise InputError("maintenance", short(value), expected)
    return list(value)


def _window(row: Any, where: str) -> Maintenance:
    expected = "a node's name and seconds: node, down_s, up_s later than down_s"
    try:
        node, down_s, up_s = (
            (row["node"], row["down_s"], row.get("up_s")) if isinstance(row, Mapping) else (*row, None)[:3]
        )
        window = Maintenance(str(node), float(down_s), math.inf if up_s is None else float(up_s))
    except (KeyError, TypeError, ValueError):
        raise InputError(where, repr(row), expected) from None
    times = [time for time in window[1:] if time != math.inf]
    if node is None or not window.down_s < window.up_s or not all(is_span(abs(time)) for time in times):
        raise InputError(where, repr(row), expected)
    return window


def away_at_start(cluster: Cluster) -> list[bool]:
    """Whether each node is absent when the run begins."""
    return [add_s is not None for add_s in cluster.nodes["add_s"].to_pylist()]


def planned(cluster: Cluster, outages: Outages) -> list[Change]:
    """All changes that are not random, in order."""
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


def failures(nodes: int, outages: Outages, seed: int, begin_s: float = 0.0) -> Iterator[Change]:
    """Failures and repairs of all nodes in order, without end; each node has its own random stream.

    Nodes are up at ``begin_s``, and times are exponential: up for ``mtbf_s`` on average, then down for ``mttr_s``.
    """
    if outages.mtbf_s is not None and outages.mttr_s is not None:
        by_node = [_alternating(position, outages.mtbf_s, outages.mttr_s, seed, begin_s) for position in range(nodes)]
        yield from heapq.merge(*by_node)


def _alternating(position: int, mtbf_s: float, mttr_s: float, seed: int, t_s: float) -> Iterator[Change]:
    stream = Stream(seed, f"failures:{position}")
    while True:
        gaps = stream.exponential(2 * DRAWN).tolist()
        for up, down in zip(gaps[::2], gaps[1::2], strict=True):
            t_s += up * mtbf_s
            yield Change(t_s, position, False, True)
            t_s += down * mttr_s
            yield Change(t_s, position, True, True)


def merged(cluster: Cluster, outages: Outages, seed: int, begin_s: float = 0.0) -> Iterator[Change]:
    """All changes in order; endless with failures, which begin at ``begin_s``, the first arrival of a run."""
    return heapq.merge(planned(cluster, outages), failures(len(cluster), outages, seed, begin_s))


def taken(changes: Iterable[Change], count: int) -> list[Change]:
    """The next changes, fewer at the end."""
    from itertools import islice

    return list(islice(changes, count))

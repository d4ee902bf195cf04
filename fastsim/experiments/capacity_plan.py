"""Capacity planning: the fewest nodes to add so that every pod fits, or so that pods wait less.

An addition is a text: a node type (``g2``), several together (``2*g2+t4``: three nodes at a time), a copy of a node of
the cluster (``node:NAME``, with its labels and taints), or a file with a Kubernetes object of kind Node.

The search assumes that more nodes never hurt. Between a number that suffices and one that does not it tries `PROBES`
numbers at a time, whatever the number of workers, so that the answer does not depend on it. The answer suffices, and
one less does not; with a policy that breaks the assumption, a still smaller number may be enough. A last run with one
less lists the pods that need the answer.

The answers of all kinds, under each tariff of the nodes, are the alternatives; an objective puts the best one first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import polars as pl
import pyarrow as pa

from fastsim.cluster.cluster import Cluster
from fastsim.cluster.node_table import NODE_SCHEMA, price_names
from fastsim.cluster.node_types import named_parts
from fastsim.engine.result import Result
from fastsim.engine.totals.job_totals import HOUR_S
from fastsim.errors import InputError, ScenarioError, suggestion
from fastsim.experiments.assumed_durations import ending, warn_of_unknown_durations
from fastsim.experiments.executors.choice import executor
from fastsim.experiments.node_prices import Tariffs, node_prices_from, price_per_h
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.limits.knobs import ADDITIONS
from fastsim.foundation.option_texts import names_file
from fastsim.scenario import run_inputs
from fastsim.scenario.carbon import carbon_from
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.run_warnings import Message, PodTooLarge
from fastsim.simulation.simulate import played

PROBES = 4
"""Sizes that are tried at a time for each kind of addition."""
MOST = 10_000
"""Default of the largest number of additions to try."""
FOUND, ENOUGH, NEVER, MORE = "found", "enough already", "impossible", "not found"
"""Outcomes of a search."""
FIGURES = ("pods", "pods_unplaced", "pods_pending", "wait_p95_s", "gpu_alloc_pct", "mean_gpu_alloc_pct", "mean_power_w",
           "makespan_s", "energy_kwh", "co2_kg", "cost")  # fmt: skip
"""Figures of the run that suffices, or of the largest that was tried."""
OBJECTIVES = {"cost": "price_per_h", "energy": "energy_kwh", "nodes": "nodes"}
"""Objectives by which alternatives are compared, and their columns; less is better."""
NAMED = 5
"""Pods that a row names as those that need the last addition."""
_PART = re.compile(r"\s*(?:(\d+)\s*\*)?\s*([\w.-]+)\s*")


@dataclass
class Search:
    """The fewest additions of one kind: `low` is known not to suffice (-1: nothing is), `high` to suffice."""

    kind: str
    most: int = MOST
    low: int = -1
    high: float = inf
    end: str = ""
    why: str = ""
    figures: dict[int, dict[str, Any]] = field(default_factory=dict)

    def probes(self) -> list[int]:
        """Sizes to try next, none if the search is over."""
        if self.end:
            return []
        if self.low < 0 and self.high == inf:
            return [0]
        if self.high == inf:
            begin = max(self.low, 0) * 2 or 1
            return sorted({min(begin << step, self.most) for step in range(PROBES)})
        gap = int(self.high) - self.low
        return sorted({self.low + max(1, gap * step // (PROBES + 1)) for step in range(1, PROBES + 1)} - {self.high})

    def learn(self, size: int, good: bool, figures: dict[str, Any], impossible: str = "") -> None:
        """Record the outcome of a run with `size` additions; `impossible` is the reason why no number suffices."""
        self.figures[size] = figures
        if good:
            self.high = min(self.high, size)
        elif size < self.high:
            self.low = max(self.low, size)
        if impossible and size and not good:
            self.end, self.why = NEVER, impossible

    def close(self) -> None:
        """Set `end` if the recorded sizes decide the search."""
        # Below a size that sufficed, a larger one may have failed; the smallest that suffices counts.
        if self.high != inf:
            self.low = max((size for size in self.figures if size < self.high), default=-1)
            if self.high - self.low == 1 or self.high == 0:
                self.end = FOUND if self.high else ENOUGH
        elif not self.end and self.low >= self.most:
            self.end, figures = MORE, self.figures[self.low]
            unplaced = (figures.get("pods_unplaced") or 0) + (figures.get("pods_pending") or 0)
            lacking = f"{unplaced:,} pods find no place" if unplaced else "pods wait too long"
            self.why = f"{lacking} with {self.low:,} of them"

    @property
    def size(self) -> int | None:
        """The answer; None if there is none."""
        return int(self.high) if self.high != inf and self.end in (FOUND, ENOUGH) else None

    @property
    def short(self) -> int:
        """The largest size that is known not to suffice, 0 if there is none."""
        return max((size for size in self.figures if size < self.high), default=0)


@whole_process
def smallest_additions(
    scenario: Scenario | Mapping[str, Any], kinds: Sequence[str], *, p95_wait_s: float | None = None, most: int = MOST,
    workers: int = 1, progress: Callable[[int], None] | None = None, node_prices: Any = None,
    objective: str | None = None, pod_duration_s: float | None = None, durations: Any = None,
) -> pl.DataFrame:  # fmt: skip
    """The fewest additions of each kind with which every pod is placed, and 95 % wait less than `p95_wait_s` if given.

    Columns: add, outcome, additions, nodes, gpus (those that are added), runs and figures of the run that suffices;
    ``blocking``, pods that need the last addition; with ``node_prices`` (:mod:`fastsim.experiments.node_prices`) a row
    for each ``tariff`` with ``price_per_h`` and, for the time of the run, ``price`` of the nodes that are added ($).
    ``objective`` (one of ``OBJECTIVES``) sorts, best first. ``progress`` is called with the number of runs so far.
    Pods of unknown duration, such as those of a cluster as it is now, never end, or after ``pod_duration_s``. With
    ``durations`` they have mean durations of other pods, see :mod:`fastsim.experiments.assumed_durations`: those of a
    workload or its text, or with ``own`` of the pods that are over.
    """
    planned = scenario if isinstance(scenario, Scenario) else Scenario.from_dict(scenario)
    base, cluster = _base(planned, p95_wait_s, durations, pod_duration_s)
    if not kinds or most < 1:
        raise ScenarioError("plan", f"{len(kinds)} kinds of nodes, at most {most}", "one or more")
    tariffs = node_prices_from(node_prices)
    _refuse_objective(objective, tariffs)
    units = {kind: unit_of(kind, cluster) for kind in kinds}
    ADDITIONS.refuse(most, max(map(len, units.values())))
    prices = {
        kind: price_per_h(tariffs, kind, _counts(kind), list(map(price_names, unit.nodes.to_pylist())))
        for kind, unit in units.items()
    }
    searches = [Search(kind, most) for kind in dict.fromkeys(kinds)]
    done = 0
    with executor(workers, threads=True) as pool:
        while tasks := [(search, size) for search in searches for size in search.probes()]:
            runs = [base.with_(cluster=enlarged(cluster, units[search.kind], size)) for search, size in tasks]
            for (search, size), (result, messages) in zip(tasks, pool.map(played, runs), strict=True):
                row = result.summary.row(0, named=True)
                search.learn(size, _good(row, p95_wait_s), {name: row.get(name) for name in FIGURES}, _why(messages))
                done += 1
                if progress is not None:
                    progress(done)
            for search in searches:
                search.close()
        short = [enlarged(cluster, units[search.kind], search.short) for search in searches]
        lacking = pool.map(played, [base.with_(cluster=cluster, record="placements", carbon=None) for cluster in short])
        blocking = [_blocking(result, p95_wait_s) for result, _ in lacking]
    rows = []
    for search, pods in zip(searches, blocking, strict=True):
        row = _row(search, units[search.kind], len(search.figures) + 1)
        row["blocking"] = "" if search.end == ENOUGH else pods
        rows += [row | _priced(row, *tariff) for tariff in prices[search.kind].items() or [(None, None)]]
    table = pl.DataFrame(rows, _SCHEMA)
    return table if objective is None else table.sort(OBJECTIVES[objective], maintain_order=True, nulls_last=True)


def unit_of(kind: str, cluster: Cluster) -> Cluster:
    """The nodes of one addition."""
    if kind.startswith("node:"):
        node = cluster.like(kind.removeprefix("node:"))
        if not node:
            raise InputError(f"--add {kind}", "no such node in the cluster", "the name of one")
        return Cluster(node.drop_columns(["node_id"]), cluster.catalog, kind)
    if names_file(kind):
        return Cluster.from_kubernetes(kind)
    return Cluster.mix(named_parts(_counts(kind)), catalog=cluster.catalog, name=kind)


def _counts(kind: str) -> dict[str, int]:
    """The nodes of one addition by type; none for a copy of a node and for a file."""
    if kind.startswith("node:") or names_file(kind):
        return {}
    parts = [_PART.fullmatch(part) for part in kind.split("+")]
    if None in parts:
        raise ScenarioError("--add", repr(kind), "a node type such as g2, 2*g2+t4, node:NAME or a file")
    counts: dict[str, int] = {}
    for part in parts:
        assert part is not None
        counts[part[2]] = counts.get(part[2], 0) + int(part[1] or 1)
    return counts


def enlarged(cluster: Cluster, unit: Cluster, times: int) -> Cluster:
    """The cluster with `times` additions behind its own nodes, named ``added-0-g2-0000`` and so on."""
    if not times:
        return cluster
    catalog = cluster.catalog
    missing = {name: model for name, model in unit.catalog.gpu.items() if name not in catalog.gpu}
    catalog = catalog.extended(gpu=missing) if missing else catalog
    fields = [field for field in NODE_SCHEMA if field.name != "node_id"]
    columns = {field.name: _with_copies(cluster.nodes, unit.nodes, field, times) for field in fields}
    names = [f"added-{number}-{name}" for number in range(times) for name in unit.nodes["name"].to_pylist()]
    columns["name"] = pa.array(cluster.nodes["name"].to_pylist() + names, NODE_SCHEMA.field("name").type)
    return Cluster(pa.table(columns), catalog, f"{cluster.name} + {times} x {unit.name}")


def _with_copies(first: pa.Table, then: pa.Table, field: pa.Field, times: int) -> pa.ChunkedArray:
    """A column of one table followed by `times` copies of the other's."""
    chunks = [
        chunk for table in (first, *[then] * times) for chunk in table[field.name].cast(field.type).chunks
    ]  # fmt: skip
    return pa.chunked_array(chunks, field.type)


def _base(
    scenario: Scenario, p95_wait_s: float | None, durations: Any, pod_duration_s: float | None
) -> tuple[Scenario, Cluster]:
    """The scenario with its texts opened once, for all runs, and the cluster without additions."""
    if p95_wait_s is not None:
        if not p95_wait_s > 0:
            raise ScenarioError("plan: p95_wait_s", p95_wait_s, "more than 0 s")
        if scenario.queue == "drop":
            scenario = scenario.with_(queue="fifo")
    scenario.check()
    cluster, workload, untuned = run_inputs.inputs_from(scenario.cluster, scenario.workload)
    typical = run_inputs.typical_from(scenario.typical, untuned, cluster)
    if durations is not None or pod_duration_s is not None:
        workload = ending(workload, durations, pod_duration_s)
    elif p95_wait_s is not None:
        warn_of_unknown_durations(workload)
    carbon = carbon_from(scenario.carbon)
    record = "timeline" if carbon is not None and carbon.changes else "summary"
    changes = {"workload": workload, "typical": typical, "carbon": carbon, "record": record}
    return scenario.with_(cluster=cluster, out=None, **changes), cluster


def _good(row: Mapping[str, Any], p95_wait_s: float | None) -> bool:
    if row["pods_unplaced"] or row["pods_pending"]:
        return False
    return p95_wait_s is None or (row["wait_p95_s"] or 0.0) < p95_wait_s


def _why(messages: Sequence[Message]) -> str:
    """The reason why no number of nodes suffices: pods larger than any node."""
    return next((text for category, text in messages if issubclass(category, PodTooLarge)), "")


def _refuse_objective(objective: str | None, tariffs: Tariffs) -> None:
    if objective is not None and objective not in OBJECTIVES:
        known = list(OBJECTIVES)
        raise ScenarioError("objective", repr(objective), f"one of {', '.join(known)}", suggestion(objective, known))
    if objective == "cost" and not tariffs:
        raise ScenarioError("objective", "'cost' without prices of nodes", "node prices such as 'g2=12.5&t4=1'")


def _blocking(result: Result, p95_wait_s: float | None) -> str:
    """Pods that a run leaves without a place, else those that wait too long in it, the first ones by name."""
    pods = result.jobs.select(
        "submit_s", "wait_s", name=pl.coalesce(pl.col("native_id").cast(pl.String), pl.col("pod_id").cast(pl.String)),
        left=pl.col("state").cast(pl.String).is_in(["unplaced", "pending"]),
    ).sort("submit_s", maintain_order=True)  # fmt: skip
    wanting = pods.filter("left")
    if wanting.is_empty() and p95_wait_s is not None:
        wanting = pods.filter(pl.col("wait_s") >= p95_wait_s)
    names = wanting["name"].to_list()
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _priced(row: Mapping[str, Any], tariff: str | None, price: float | None) -> dict[str, Any]:
    """Cost of the added nodes under a tariff: $ for an hour, and for the time of the run."""
    if price is None or row["additions"] is None:
        return {"tariff": tariff}
    hourly = price * row["additions"]
    return {"tariff": tariff, "price_per_h": hourly, "price": hourly * row["makespan_s"] / HOUR_S}


_SCHEMA = {
    "add": pl.String, "outcome": pl.String, "additions": pl.Int64, "nodes": pl.Int64, "gpus": pl.Int64,
    "tariff": pl.String, "price_per_h": pl.Float64, "price": pl.Float64,
    "runs": pl.Int64, **dict.fromkeys(FIGURES[:3], pl.Int64), **dict.fromkeys(FIGURES[3:], pl.Float64),
    "blocking": pl.String, "why": pl.String,
}  # fmt: skip


def _row(search: Search, unit: Cluster, runs: int) -> dict[str, Any]:
    size = search.size
    shown = max(search.figures) if size is None else size
    counts = {
        "additions": size, "nodes": None if size is None else size * len(unit),
        "gpus": None if size is None else size * unit.total_gpus,
    }  # fmt: skip
    figures = search.figures[shown] if size is not None else {"pods": search.figures[shown]["pods"]}
    outcome = {"add": search.kind, "outcome": search.end, **counts, "runs": runs}
    outcome |= dict.fromkeys(("tariff", "price_per_h", "price"))
    return {**outcome, **dict.fromkeys(FIGURES), **figures, "why": search.why or None}

"""Warnings about a run: pods and columns of its workload that its engine did not honour."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from fastsim.foundation.columns.physical_types import column_of
from fastsim.scenario.run_rules import OTHER_TENANTS
from fastsim.workload import schema as s

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.engine.online.user_scorers import MergedPoints
    from fastsim.scenario.run_rules import Rules
    from fastsim.workload import Workload
    from fastsim.workload.oversized_pods import Oversized

Message = tuple[type[Warning], str]
"""A warning that is issued later."""

MOST_NAMES = 5
"""Names that a warning lists."""


class RunWarning(UserWarning):
    """A warning that may make the result of a run misleading."""


class PodTooLarge(RunWarning):
    """Some pods are larger than any node of the cluster, so they stay unplaced."""


class PodNeverFits(PodTooLarge):
    """No empty node of the cluster hosts some pods for another reason than their size, so they stay unplaced."""


class ColumnIgnored(RunWarning):
    """The workload has values in a column that the engine of the run does not look at."""


class DurationMissing(RunWarning):
    """Some pods of a workload have a duration, and others have none."""


class GangIncomplete(RunWarning):
    """Some gangs never have as many members as they need to start."""


class MemoryUnknown(RunWarning):
    """Pods request device memory, and the cluster has GPUs whose memory is not known."""


class OptionUnused(RunWarning):
    """Options of a scenario are given that the run does not use."""


class PointsRounded(RunWarning):
    """Nodes have fewer points of a scorer than the best one, and the same whole number as it."""


class TenantAbsent(RunWarning):
    """A quota or a weight is of a tenant that has no pods."""


def large_pods(oversized: Oversized) -> list[Message]:
    """The warnings about pods that fit on no node, one for each obstacle."""
    from fastsim.workload.oversized_pods import TOO_LARGE, obstacle_text

    messages: list[Message] = []
    for reason, kept in oversized.kept.items():
        if reason == TOO_LARGE:
            subject = "1 pod is" if kept.count == 1 else f"{kept.count:,} pods are"
            text = f"{subject} larger than any node and stayed unplaced, for example {kept.example}"
            messages.append((PodTooLarge, text))
        else:
            subject = "1 pod" if kept.count == 1 else f"{kept.count:,} pods"
            text = obstacle_text(reason, kept, oversized.models)
            messages.append((PodNeverFits, f"{subject} stayed unplaced ({reason}): {text}"))
    return messages


def unknown_memory(cluster: Cluster, name: str) -> list[Message]:
    """The warning about GPUs without a known memory, for a workload of this name that requests some."""
    pairs = zip(cluster.nodes["gpu_model"].to_pylist(), cluster.device_memory_mib, strict=True)
    models = sorted({model for model, memory_mib in pairs if model is not None and memory_mib is None})
    listed = ", ".join(models[:MOST_NAMES]) + (", …" if len(models) > MOST_NAMES else "")
    text = f"{name}: gpu_memory_mib has no limit on GPU models of unknown memory: {listed}"
    return [(MemoryUnknown, text)] if models else []


def rounded_points(points: MergedPoints) -> list[Message]:
    """The warning about differences to the best node that rounding to whole numbers removes; none without any."""
    if not points.merged:
        return []
    text = f"points from {points.low:g} to {points.high:g} are rounded to whole numbers, and in {points.merged:,} of"
    text = f"{text} {points.decisions:,} decisions looked at other nodes became equal to the best one: scale them up"
    return [(PointsRounded, f"scorer {points.name}: {text}")]


def absent_tenants(workload: Workload, rules: Rules) -> list[Message]:
    """The warning about tenants with a quota or a weight but no pods; none if tenants of a stream would be read.

    It is no error: one table of quotas serves many workloads, and not every tenant has pods in each.
    """
    from fastsim.workload.pod_rows import Held

    named = (rules.quotas.keys() | rules.weights.keys()) - {OTHER_TENANTS}
    if not named or ("tenant" in workload.columns and not isinstance(workload.source, Held)):
        return []
    tenants: set[str | None] = {None}
    if "tenant" in workload.columns and isinstance(workload.source, Held):
        rows = workload.source.table
        column = column_of(rows, "tenant", pa.string(), lambda row: f"{workload.name}:{row + 1}")
        tenants = set(column.unique().to_pylist())
    absent = sorted(named - {tenant or "" for tenant in tenants})
    listed = ", ".join(repr(name) for name in absent[:MOST_NAMES]) + (", …" if len(absent) > MOST_NAMES else "")
    text = f"{workload.name}: quotas or weights of tenants that have no pods: {listed}"
    return [(TenantAbsent, text)] if absent else []


class IncompleteGang(NamedTuple):
    """The last gang of a job, which has fewer members than its size."""

    job: int
    members: int
    size: int

    @property
    def count_text(self) -> str:
        """Its members out of those that it needs."""
        return f"{self.members} of {self.size} members"

    @property
    def text(self) -> str:
        """Why a member of it waits."""
        return f"its gang, that of job {self.job}, has {self.count_text}"


class GangMembers:
    """Counts members of gangs, batch by batch; as many as a gang needs are one, the next ones another."""

    def __init__(self) -> None:
        self._count: dict[tuple[int, int], int] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the members of one batch."""
        import numpy as np

        if not {s.GANG_SIZE, s.JOB_ID} <= set(batch.schema.names):
            return
        together = pc.fill_null(pc.greater(batch.column(s.GANG_SIZE), 1), False)
        rows = batch.select([s.JOB_ID, s.GANG_SIZE]).filter(together)
        if not rows.num_rows:
            return
        columns = [rows.column(name).to_numpy(zero_copy_only=False).astype(np.int64) for name in rows.schema.names]
        pairs, counts = np.unique(np.stack(columns), axis=1, return_counts=True)
        for job, size, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
            self._count[job, size] = self._count.get((job, size), 0) + count

    def incomplete(self) -> list[IncompleteGang]:
        """The gangs that lack members."""
        counts = self._count.items()
        return [IncompleteGang(job, count % size, size) for (job, size), count in counts if count % size]


def incomplete_gangs(workload: Workload, places: Collection[int]) -> dict[int, IncompleteGang]:
    """Of the pods at these places in the order of arrival, those of incomplete gangs."""
    asked, first = set(places), 0
    members, own = Counter[tuple[int, int]](), dict[int, tuple[tuple[int, int], int]]()
    for batch in workload.batches() if asked and {s.GANG_SIZE, s.JOB_ID} <= set(workload.columns) else ():
        pairs = zip(*(batch.column(name).to_pylist() for name in (s.JOB_ID, s.GANG_SIZE)), strict=True)
        for place, (job, size) in enumerate(pairs, first):
            if (size or 1) > 1:
                if place in asked:
                    own[place] = (job, size), members[job, size]
                members[job, size] += 1
        first += batch.num_rows
    return {
        place: IncompleteGang(job, members[job, size] % size, size)
        for place, ((job, size), number) in own.items()
        if number // size == members[job, size] // size
    }


def rows_behind_gangs(workload: Workload, places: Collection[int]) -> dict[int, dict[str, Any]]:
    """Of the pods at these places in the order of arrival, the rows of those that start only after a gang."""
    found, first, asked = dict[int, dict[str, Any]](), 0, pa.array(sorted(places), pa.int64())
    for batch in workload.batches() if places and s.AFTER_GANG in workload.columns else ():
        place = pa.array(range(first, first + batch.num_rows), pa.int64())
        behind = pc.and_(pc.is_valid(batch.column(s.AFTER_GANG)), pc.is_in(place, value_set=asked))
        kept = batch.append_column("place", place).filter(behind).to_pylist()
        found |= {row.pop("place"): row for row in kept if row[s.AFTER_GANG] and (row.get(s.GANG_SIZE) or 1) == 1}
        first += batch.num_rows
    return found


class MissingValues:
    """Counts pods without a duration and members of gangs, batch by batch while the workload streams past."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.pods, self.endless = 0, 0
        self.asks_memory = False
        self.gangs = GangMembers()

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the pods of one batch."""
        names = batch.schema.names
        self.pods += batch.num_rows
        self.endless += batch.column(s.DURATION_S).null_count if s.DURATION_S in names else batch.num_rows
        if s.GPU_MEMORY_MIB in names and not self.asks_memory:
            self.asks_memory = bool(pc.any(pc.greater(batch.column(s.GPU_MEMORY_MIB), 0)).as_py())
        self.gangs.add(batch)

    def messages(self, name: str, complete: bool) -> Iterable[Message]:
        """Warnings about the workload of this name; ``complete``: all of its pods arrived."""
        if 0 < self.endless < self.pods:
            text = f"{self.endless:,} of {self.pods:,} pods have no duration and run for ever"
            yield DurationMissing, f"{name}: {text}"
        if self.asks_memory:
            yield from unknown_memory(self.cluster, name)
        short = self.gangs.incomplete()
        if complete and short:
            gang = min(short)
            gangs = "1 gang is" if len(short) == 1 else f"{len(short):,} gangs are"
            text = f"{gangs} incomplete and cannot start, for example that of job {gang.job} with {gang.count_text}"
            yield GangIncomplete, f"{name}: {text}"


def warn(messages: Iterable[Message], depth: int) -> None:
    """Issue the warnings at the caller's line; ``depth`` functions lie between."""
    for category, text in sorted(messages, key=lambda pair: pair[1]):
        warnings.warn(text, category, stacklevel=depth + 2)

"""Columns of the compiled rules, from the rules of a run, its cluster and further columns of its pods."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastsim.engine.online.plan import BACKFILL, PREFERENCE_KERNELS
from fastsim.engine.online.preference_columns import PreferenceColumns
from fastsim.errors import InputError
from fastsim.foundation.limits.knobs import FAILURES
from fastsim.hardware.eligible_nodes import EligibleNodes
from fastsim.hardware.node_constraints import (
    COLUMNS,
    NEAR_RULES,
    NONE,
    Conditions,
    NearRule,
    SpreadRule,
    domains,
    node_labels,
    unstated,
)
from fastsim.scenario.column_values import SortColumns, filled
from fastsim.scenario.outages import Change, away_at_start, merged, planned, taken
from fastsim.scenario.run_rules import NO_RULES, Rules
from fastsim.scenario.sort_keys import MOST_TERMS, queue_key
from fastsim.workload import schema as s

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.engine.online.plan import OnlinePlan
    from fastsim.workload.pod_classes import PodClasses
    from fastsim_ext.online.queue_loop import QueueLoop

MAX_EXTRA = 16
"""Distinct further resources of one cluster."""
UNLIMITED = 1 << 62
"""More than any amount: memory of a device without a limit, a missing quota."""
MOST_AHEAD = 1_000_000
"""More failures than a run leaves out at a time."""
AT_ONCE = 1024
"""Node changes handed over at a time; any number gives the same run."""
PREFERRING = (s.PREFERENCES, s.PREFERENCE_SETS)
"""Pod columns that matter only to a plan with scores of preferences."""
ASKING = tuple(name for name in (*COLUMNS, s.GANG_SIZE) if name not in (s.GROUP, s.BUDGETS, *PREFERRING))
"""Pod columns that the plain loop does not honour; budgets matter with preemption only."""
NO_VALUES = np.full(MOST_TERMS, np.inf)
NO_WEIGHTS = (0,) * len(PREFERENCE_KERNELS)


def needs_rules(plan: OnlinePlan, rules: Rules, columns: Any) -> bool:
    """Whether a run needs the loop with rules."""
    asking = (*ASKING, *(PREFERRING if any(plan.preference_weights) else ()))
    return (
        rules != NO_RULES
        or plan.queue in (*BACKFILL, "drf")
        or queue_key(plan.queue) != ()
        or any(name in columns for name in asking)
    )


class Numbers:
    """Small numbers for names, in order of first appearance."""

    def __init__(self) -> None:
        self._known: dict[str | None, int] = {}

    def __len__(self) -> int:
        return len(self._known)

    def of(self, name: str | None) -> int:
        """The number of a name."""
        return self._known.setdefault(name, len(self._known))

    def column(self, batch: pa.RecordBatch, name: str) -> Any:
        """Numbers (int32) of a column; null, as in a missing column, has a number of its own."""
        if name not in batch.schema.names:
            return np.full(batch.num_rows, self.of(None), np.int32)
        encoded = batch.column(name).cast(pa.string()).dictionary_encode(null_encoding="encode")
        known = np.array([self.of(value) for value in encoded.dictionary.to_pylist()], np.int32)
        return known[encoded.indices.to_numpy(zero_copy_only=False)]


class RuleColumns:
    """Feeds the compiled loop with the rules of one run, batch by batch."""

    def __init__(
        self, cluster: Cluster, rules: Rules, seed: int, width: int, asked: Collection[str] = (),
        weights: Sequence[int] = NO_WEIGHTS, sorting: SortColumns | None = None,
    ) -> None:  # fmt: skip
        self.cluster, self.rules, self.width, self.follows = cluster, rules, width, s.AFTER_GANG in asked
        self.tenants, self.groups, self.sets, self.budgets = Numbers(), Numbers(), Numbers(), Numbers()
        self.groups.of(None)  # at once: no number may depend on how pods come in batches
        self._weighed: list[str | None] = []
        self._fed = 0  # node changes
        self.begin_s: float | None = None
        self.seed = seed
        self._changes: Iterator[Change] | None = None  # known from the first arrival on
        self._nodes = cluster.offered.to_pylist()
        self._labels = [node_labels(row) for row in self._nodes]
        self._eligible = EligibleNodes(self._labels)
        self._weights = tuple(weights)
        self._preferences = PreferenceColumns(self._labels) if any(weights) else None
        self.extras = sorted({name for row in self._nodes for name, _ in row["extra_resources"] or ()})
        if len(self.extras) > MAX_EXTRA:
            found = f"{len(self.extras)} distinct resources"
            raise InputError("cluster: extra_resources", found, f"at most {MAX_EXTRA}")
        self._allowed: dict[Any, bytes | None] = {}
        self._domains: dict[Any, Any] = {}
        self._recalled: dict[int, tuple[int, int, bool, bool, float]] = {}
        self._sorting, self._values = sorting, dict[int, Any]()  # values of pods by arrival, while they are recalled
        nodes = len(self._nodes)
        # By node: the number of reasons to be away, and whether its current failure is ignored. Part of a checkpoint.
        away = np.array(away_at_start(cluster), np.int32)
        self.columns: dict[str, Any] = {"away": away, "spared": np.zeros(nodes, np.uint8)}

    def options(self) -> dict[str, Any]:
        """Further options of the compiled loop with rules."""
        rules, n = self.rules, len(self._nodes)
        memory = [UNLIMITED if mib is None else mib for mib in self.cluster.device_memory_mib]
        caps = np.array(memory, np.int64)
        held = [[dict(row["extra_resources"] or ()).get(name, unstated(name)) for name in self.extras]
                for row in self._nodes]  # fmt: skip
        extra = np.zeros((n, max(len(self.extras), 1)), np.int64)
        extra[:, : len(self.extras)] = np.array(held, np.int64).reshape(n, len(self.extras))
        return {
            "change_t": np.zeros(0), "change_node": np.zeros(0, np.int32), "change_adds": np.zeros(0, np.int32),
            "first": np.full(n, -1, np.int32), "moved": np.zeros(n, np.int64),
            "gpu_mem_cap": caps, "gpu_mem_left": np.ascontiguousarray(np.repeat(caps[:, None], self.width, axis=1)),
            "extra_cap": extra.copy(), "extra_left": extra, "n_extra": len(self.extras),
            "unmasked": np.zeros((n, self.width), np.int32), "masked": np.zeros(n, np.uint8),
            "preempts": rules.preempt == "priority", "requeues": rules.on_node_loss == "requeue",
            "follows": self.follows, "limited": bool(rules.quotas), "restart_s": rules.restart_s,
            "checkpoint_s": math.nan if rules.checkpoint_every_s is None else rules.checkpoint_every_s,
            **self.columns,
            "planned": len(planned(self.cluster, rules.outages)), "preference_weights": self._weights,
        }  # fmt: skip

    def changes(self) -> Iterator[Change]:
        """The changes of nodes that were not taken yet; failures begin at the first arrival, or at 0 without one."""
        if self._changes is None:
            self._changes = merged(self.cluster, self.rules.outages, self.seed, self.begin_s or 0.0)
        return self._changes

    def feed_changes(self, online: QueueLoop) -> None:
        """The next node changes."""
        following = taken(self.changes(), AT_ONCE)
        self._fed += len(following)
        FAILURES.count(self._fed)
        t_s, position, comes, random = zip(*following, strict=True) if following else ((), (), (), ())
        online.feed_changes(
            np.array(t_s, np.float64), np.array(position, np.int32), np.array(comes, np.int32),
            np.array(random, np.uint8), len(following) < AT_ONCE,
        )  # fmt: skip

    def feed_members(self, online: QueueLoop, batch: pa.RecordBatch) -> None:
        """Add the columns of a batch of pods that the rules need."""
        if self.begin_s is None:
            self.begin_s = float(batch.column(s.SUBMIT_S)[0].as_py())
        members = self._members(batch)
        for name in list(self.tenants._known)[len(self._weighed) :]:
            self._weighed.append(name)
            cpu, memory, gpu = (int(min(limit, UNLIMITED)) for limit in self.rules.limits(name))
            online.tenants.add_tenant(cpu, memory, gpu, self.rules.weight(name))
        job, gang = filled(batch, s.JOB_ID, 0, np.int64), filled(batch, s.GANG_SIZE, 1, np.int32)
        after = filled(batch, s.AFTER_GANG, False, np.uint8) if self.follows else None
        online.feed_members(*members, job, gang, after, self._sort_values(batch))

    def _sort_values(self, batch: pa.RecordBatch) -> Any:
        return self._sorting.values(batch, filled(batch, s.DURATION_S)) if self._sorting else None

    def _members(self, batch: pa.RecordBatch) -> tuple[Any, Any, Any, Any, Any]:
        """Numbers of tenants and groups, whether pods are preemptible and preempt, estimated durations in seconds."""
        group = self.groups.column(batch, s.GROUP)
        group[group == self.groups.of(None)] = -1
        estimate, duration = filled(batch, s.EST_DURATION_S), filled(batch, s.DURATION_S)
        est = np.where(np.isnan(estimate), duration, estimate)
        stopped, stops = (filled(batch, name, True, np.uint8) for name in (s.PREEMPTIBLE, s.PREEMPTS))
        return self.tenants.column(batch, s.TENANT), group, stopped, stops, est

    def state(self, online: QueueLoop) -> tuple[dict[str, Any], dict[str, int]]:
        """(arrays, ends of lists) for a checkpoint, beside the state of the loop itself."""
        members, gangs, ends = online.membership.snapshot()
        arrays = {name: column.copy() for name, column in self.columns.items()}
        return arrays | {"members": np.frombuffer(members, np.uint8), "gangs": np.frombuffer(gangs, np.uint8)}, ends

    def restore_arrivals(self, batch: pa.RecordBatch, first: int, present: Any) -> None:
        """Read pods again that arrived before a checkpoint, from number ``first`` on; ``present`` are in the system."""
        here = present[(present >= first) & (present < first + batch.num_rows)]
        columns = (column[here - first].tolist() for column in self._members(batch))
        self._recalled |= dict(zip(here.tolist(), zip(*columns, strict=True), strict=True))
        if self._sorting:
            rows = self._sort_values(batch).reshape(-1, MOST_TERMS)[here - first]
            self._values |= dict(zip(here.tolist(), rows, strict=True))

    def take_over(
        self, online: QueueLoop, arrays: Mapping[str, Any], meta: Mapping[str, Any], present: Any, pods: Sequence[int]
    ) -> None:
        """Restore a checkpoint, in whose slots are these pods; members of a run without rules come from the workload.

        ``present``: whether each node is there.
        """
        ends = meta.get("rules")
        if ends is not None:
            online.membership.restore(arrays["members"], arrays["gangs"], ends)
        else:
            online.restore_members(self._recalled)
        self._recalled = {}
        if self._sorting:
            values = [self._values.get(pod, NO_VALUES) for pod in pods]
            online.feed_members(None, None, None, None, None, None, None, None, np.ravel(values))  # for restore()
        past = past_changes(self.changes(), meta["loop"]["change_next"], meta["loop"]["now"], self.columns["away"])
        if ends is not None:
            check_past(past, meta["loop"], arrays, len(planned(self.cluster, self.rules.outages)))
        for name, column in self.columns.items():
            column[...] = arrays[name] if ends is not None else {"away": 1 - present, "spared": 0}[name]

    def add_rules(self, online: QueueLoop, first: int, classes: PodClasses, positions: Any) -> None:
        """The conditions of new classes, from class ``first`` on; ``positions`` in ``classes.conditions``."""
        preempts = self.rules.preempt != "none"
        for row in np.flatnonzero(np.array([bool(conditions != NONE) for conditions in classes.conditions])[positions]):
            conditions = classes.conditions[positions[row]]
            if conditions.budgets and preempts:
                named = [(self.budgets.of(f"{least} {name}"), least) for name, least in conditions.budgets]
                online.preemption.add_budgets(first + int(row), named)
            if self._preferences is None:
                conditions = conditions.without_preferences
            if conditions._replace(budgets=()) != NONE:
                self._add_rule(online, first + int(row), conditions)

    def _add_rule(self, online: QueueLoop, cls: int, conditions: Conditions) -> None:
        amounts = dict(conditions.extra_resources)
        online.constraints.add_rule(
            cls, conditions.gpu_memory_mib, [amounts.get(name, 0) for name in self.extras],
            any(name not in self.extras and not unstated(name) for name in amounts),
            -1 if conditions.max_per_node is None else self.groups.of(conditions.group),
            -1 if conditions.max_per_node is None else conditions.max_per_node, self._marks(conditions),
            [self.sets.of(name) for name in conditions.spread_sets],
            [*self._spread(conditions.spread), *self._near(conditions.near)],
        )  # fmt: skip
        if self._preferences is not None:
            self._preferences.add(online.constraints.preferences, cls, conditions)

    def _near(self, rules: tuple[NearRule, ...]) -> Iterator[tuple[int, int, int, int, Any]]:
        """Rules about pods near as the compiled table takes them."""
        for rule in rules:
            if rule.topology not in self._domains:
                numbers = Numbers()
                names = [labels.get(rule.topology) for labels in self._labels]
                places = [-1 if name is None else numbers.of(name) for name in names]
                self._domains[rule.topology] = np.array(places, np.int32)
            yield self.sets.of(rule.pods), 1 + NEAR_RULES.index(rule.rule), 0, 1, self._domains[rule.topology]

    def _spread(self, rules: tuple[SpreadRule, ...]) -> list[tuple[int, int, int, int, Any]]:
        """Rules of spread as the compiled table takes them; nodes without the label of any rule are not counted."""
        keys = tuple(rule.topology for rule in rules)
        for rule in rules:
            key = rule.topology, rule.counted, keys
            if key not in self._domains:
                numbers = Numbers()
                places = [-1 if name is None else numbers.of(name) for name in domains(rule, keys, self._labels)]
                self._domains[key] = np.array(places, np.int32)
        return [
            (self.sets.of(rule.pods), 0, rule.max_skew, rule.min_domains,
             self._domains[rule.topology, rule.counted, keys])
            for rule in rules
        ]  # fmt: skip

    def _marks(self, conditions: Conditions) -> bytes | None:
        """A byte for each node, 1 if the pod may use it; None if it may use all."""
        key = conditions.pinned_node, conditions.constraints
        if key not in self._allowed:
            self._allowed[key] = None if key == (None, ()) else self._eligible.marks(conditions).tobytes()
        return self._allowed[key]


class PastChanges(NamedTuple):
    """Changes of nodes up to a time: reasons of each node to be away, and how many changes were planned ones."""

    away: npt.NDArray[np.int32]
    failed: int
    planned: int


def past_changes(changes: Iterator[Change], count: int, now_s: float, away: npt.NDArray[np.int32]) -> PastChanges:
    """Take the changes of nodes that are past, from ``away`` on; ValueError if one of them is of a later time.

    Failures while nothing runs are left out ahead of their time.
    """
    away, failed, planned, ahead = away.copy(), 0, 0, 0
    for change in islice(changes, count):
        ahead += change.t_s > now_s
        if change.t_s > now_s and (not change.random or ahead > MOST_AHEAD):
            raise ValueError(f"loop.change_next = {count}, more changes of nodes than there were until {now_s:g} s")
        by = -1 if change.comes else 1
        away[change.position] += by
        failed += by if change.random else 0
        planned += not change.random
    return PastChanges(away, failed, planned)


def check_past(past: PastChanges, loop: Mapping[str, Any], arrays: Mapping[str, Any], planned: int) -> None:
    """Nodes are away for the reasons that are past, but for failures that were left out because nothing ran."""
    if loop["ended"]:
        return
    spared = arrays["spared"].astype(np.int32)
    if (arrays["away"] + spared != past.away).any():
        raise ValueError("away: another number of reasons than changes of nodes until then have left")
    if (loop["planned"], loop["failed"]) != (planned - past.planned, past.failed - int(spared.sum())):
        raise ValueError(f"{loop['planned']} planned changes of nodes to come and {loop['failed']} nodes that failed")

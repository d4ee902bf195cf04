"""Which columns of the pod table each engine uses (``tables/columns.csv``); a warning about ignored values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from fastsim.engine.online.plan import BACKFILL, PREFERENCE_KERNELS
from fastsim.hardware.node_constraints import WRITTEN_PREFERENCES
from fastsim.policies.registry import label, parse
from fastsim.scenario.sort_keys import column_of, queue_key
from fastsim.simulation.run_warnings import ColumnIgnored, Message
from fastsim.simulation.uses.cells import IGNORED, USED, Conditions, cells
from fastsim.workload import schema as s

if TYPE_CHECKING:
    from fastsim.engine.online.plan import OnlinePlan
    from fastsim.scenario.scenario import Scenario
    from fastsim.workload import Workload

ROUNDS = "these rounds do not look at"
PHRASES = {
    "pods": "the online engine does not look at", "shares": ROUNDS, "orders": ROUNDS, "adaptive": ROUNDS,
    "monitored": "monitored schedulers do not look at", "pool": "a pool of GPUs does not look at",
}  # fmt: skip
"""Beginnings of the warnings, by engine."""
COUNTED = (s.CPU_MILLI, s.MEMORY_MIB)
"""Columns that rounds count or do not count."""
TIMED = ("remaining", "finish_ratio", "packing", "service_left")
"""Terms of sort keys that need the duration of a pod."""
EXAMPLE = "fgd + preferred"
"""A policy with scores of preferences; a warning has that of the run in the place of fgd."""
NEUTRAL: dict[str, Any] = {
    s.CPU_MILLI: 0, s.MEMORY_MIB: 0, s.GPU_MEMORY_MIB: 0, s.GANG_SIZE: 1, s.PRIORITY: 0, s.PREEMPTIBLE: True,
    s.PREEMPTS: True, s.AFTER_GANG: False,     s.WEIGHT: 1.0,
}  # fmt: skip
"""Values that mean the same as null."""


class ColumnFacts(NamedTuple):
    """Facts that decide whether an engine uses a column: its options, its queue rule, the columns of the table.

    ``counted``: rounds count the CPU and memory that jobs hold. ``preferred``: the policy has scores of preferences;
    ``policy`` is its text.
    """

    columns: tuple[str, ...]
    preempts: bool = False
    queue: str = "drop"
    samples: bool = False
    counted: bool = False
    preferred: bool = False
    policy: str = "fgd"
    order: tuple[str, ...] = ()
    """The sort key of jobs; that of pods follows from ``queue``."""

    @property
    def key(self) -> tuple[str, ...]:
        """The sort key of the run."""
        return self.order or queue_key(self.queue)

    @property
    def sorting(self) -> frozenset[str]:
        """The columns that the key reads."""
        return frozenset(map(column_of, self.key))


def _estimates(facts: ColumnFacts) -> bool:
    return facts.queue in BACKFILL or any(term.removeprefix("-") in TIMED for term in facts.key)


CONDITIONS: Conditions = {
    "priorities": (
        lambda facts: facts.preempts or facts.queue.startswith("priority"), "a queue rule or preemption by priority",
    ),
    "preemption": (lambda facts: facts.preempts, "preemption"),
    "estimates": (_estimates, "backfilling or a queue rule by duration"),
    "gangs": (lambda facts: s.GANG_SIZE in facts.columns, "`gang_size`"),
    "limits": (lambda facts: s.MAX_PER_NODE in facts.columns, "`max_per_node`"),
    "spreads": (lambda facts: s.SPREAD in facts.columns or s.NEAR in facts.columns, "`spread` or `near`"),
    "preferred": (lambda facts: facts.preferred, f"a policy such as `{EXAMPLE}`"),
    "deadlines": (lambda facts: s.DEADLINE_S in facts.sorting, "a queue rule by deadline"),
    "durations": (lambda facts: s.DURATION_S in facts.columns, "`duration_s`"),
    "telemetry": (lambda facts: facts.samples, "telemetry"),
    "counted": (lambda facts: facts.counted, "rounds that count servers' resources"),
}  # fmt: skip
"""Conditions of cells: whether it holds, and what a run needs for it."""


def facts_of(
    workload: Workload, scenario: Scenario, queue: str = "drop", counted: bool = False, plan: OnlinePlan | None = None,
    order: tuple[str, ...] = (),
) -> ColumnFacts:  # fmt: skip
    """The facts of a run."""
    preempts, samples = scenario.preempt != "none", scenario.telemetry is not None
    policy = scenario.policy if isinstance(scenario.policy, str) else label(scenario.policy)
    preferred = plan is not None and any(plan.preference_weights)
    return ColumnFacts(
        columns=tuple(workload.columns),
        preempts=preempts,
        queue=queue,
        samples=samples,
        counted=counted,
        preferred=preferred,
        policy=policy,
        order=order,
    )


class UnusedColumns:
    """Looks for values in columns that an engine ignores, batch by batch while the workload streams past."""

    def __init__(self, engine: str, facts: ColumnFacts) -> None:
        self.engine, self._policy = engine, facts.policy
        self._table = {name: row[engine] for name, row in cells("columns").items()}
        known = [name for name in facts.columns if name in self._table and name not in facts.sorting]
        self._waiting = [name for name in known if self._table[name].in_run(facts, CONDITIONS) == IGNORED]
        self.found: list[str] = []

    def add(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Look at one batch; a column is looked at until it has a value."""
        for name in [name for name in self._waiting if asks(batch, name)]:
            self._waiting.remove(name)
            self.found.append(name)

    def messages(self, name: str) -> list[Message]:
        """The warning about the workload of this name; none if nothing is ignored."""
        phrase = PHRASES[self.engine]
        uncounted = [column for column in COUNTED if column in self.found] if phrase == ROUNDS else []
        others = [self._named(column) for column in self._table if column in self.found and column not in uncounted]
        parts = [f"these rounds give out GPUs and do not count {', '.join(uncounted)}"] if uncounted else []
        parts += [f"{phrase} {', '.join(others)}"] if others else []
        return [(ColumnIgnored, f"{name}: {'; '.join(parts)}")] if parts else []

    def _named(self, column: str) -> str:
        """The column, and what a run needs to look at it."""
        cell = self._table[column]
        needed = CONDITIONS[cell.condition][1] if cell.use == USED and cell.condition else ""
        needed = needed.replace("`", "").replace(EXAMPLE, f"{self._policy} + preferred")
        return f"{column} (without {needed})" if needed else column


def unscored_preferences(workload: Workload, scenario: Scenario) -> list[str]:
    """The warning about preferences of pods for which the policy of a scenario has no scores; none if it has."""
    policy: Any = parse(scenario.policy) if isinstance(scenario.policy, str) else scenario.policy
    scored = hasattr(policy, "integer_parts") or hasattr(policy, "terms")
    parts = [summand for _, summand in policy] if hasattr(policy, "integer_parts") else [policy]
    terms = [term for part in parts if scored for term in part.terms()]
    preferred = any(term.kernel in PREFERENCE_KERNELS and term.weight for term in terms)
    unused = UnusedColumns("pods", ColumnFacts((s.PREFERENCES,), preferred=preferred, policy=label(policy)))
    for batch in workload.batches() if s.PREFERENCES in workload.columns else ():
        unused.add(batch)
    return [text for _, text in unused.messages(workload.name)]


def asks(batch: pa.RecordBatch | pa.Table, name: str) -> bool:
    """Whether a column has a value that means more than null."""
    column = batch.column(name)
    if column.null_count == len(column):
        return False
    if name == s.PREFERENCES:
        rules = pc.struct_field(pc.list_flatten(column), "rule")
        return bool(pc.any(pc.is_in(rules, value_set=pa.array(WRITTEN_PREFERENCES))).as_py())
    if pa.types.is_nested(column.type):
        return any(column.to_pylist())
    if name not in NEUTRAL:
        return True
    return bool(pc.any(pc.not_equal(column, pa.scalar(NEUTRAL[name], column.type))).as_py())

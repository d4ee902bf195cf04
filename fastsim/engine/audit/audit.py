"""Recomputes the figures of a run from its stays, its inputs and the definitions, and lists the differences.

No code of the engines takes part: ``nodes`` follows stays on nodes, ``timeline`` has the cluster at every instant,
``jobs`` and ``summary`` the figures of jobs and of the run. A figure that does not follow from stays and inputs is
listed with the reason, never passed over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from fastsim.engine.audit import summary
from fastsim.engine.audit.inputs import Evidence, RunTables, evidence
from fastsim.engine.audit.jobs import expected_jobs, fixed_prices
from fastsim.engine.audit.nodes import CLASSES, states
from fastsim.engine.audit.pod_rules import broken_rules
from fastsim.engine.audit.timeline import COUNTS, NODE_COLUMNS, expected_rows, last_rows
from fastsim.engine.totals.job_totals import FIGURES, JOB_COLUMNS
from fastsim.scenario.compat import switches_on

if TYPE_CHECKING:
    from fastsim.scenario.scenario import Scenario

RELATIVE, ABSOLUTE = 1e-9, 1e-6
"""Sums in another order differ by rounding: 1e-9 of the value, or 1e-6 of its unit where times are large numbers."""
UNDERIVED, UNKNOWN = "does not follow from placements and inputs", "not known to this engine"
"""Reasons for columns that are not recomputed."""
JOB_FIGURES = ("submit_s", "start_s", "end_s", "wait_s", "jct_s", "state", "num_gpu", "attempts", "preemptions",
               "cost",
               *JOB_COLUMNS)  # fmt: skip
"""Columns of jobs that are recomputed."""
NO_NODES = (
    "active_nodes", "active_gpus", "gpu_milli_alloc", "cpu_milli_alloc", "memory_mib_alloc", "gpu_alloc_pct",
    "cpu_alloc_pct", "memory_alloc_pct", "mean_cpu_alloc_pct",
)  # fmt: skip
MECHANISM = ("cpu_milli_alloc", "memory_mib_alloc", "cpu_alloc_pct", "memory_alloc_pct", "mean_cpu_alloc_pct")
"""Columns that follow from the mechanism of ordered rounds, not from placements."""
MAY_BE_UNKNOWN = (*FIGURES, "preemptions", "lost_work_s", "co2_kg")
"""Figures of the summary that some engines do not have."""
FRAGMENTS = ("frag_milli", "frag_pct", "frag_ratio_pct")


@dataclass(frozen=True)
class Difference:
    """A figure that differs from its recomputed value; ``row`` is a pod_id, a t_s or None."""

    table: str
    column: str
    row: Any
    found: Any
    expected: Any

    def __str__(self) -> str:
        at = "" if self.row is None else f"[{self.row}]"
        return f"{self.table}{at}.{self.column}: found {self.found}, expected {self.expected}"


@dataclass
class Audit:
    """The number of recomputed figures, differences, and columns left out: (table, column, reason)."""

    checked: int = 0
    differences: list[Difference] = field(default_factory=list)
    unchecked: list[tuple[str, str, str]] = field(default_factory=list)

    def compare(self, table: str, column: str, rows: Iterable[Any], found: pl.Series, expected: pl.Series) -> None:
        """Compare a column: values that are equal but for rounding, or both null, do not differ."""
        self.checked += len(found)
        found, expected = plain(found), plain(expected)
        if found.equals(expected):  # most columns are, to the last bit, and this makes no table
            return
        pair = pl.DataFrame({"row": pl.Series(rows, strict=False), "found": found, "expected": expected})
        same = pl.col("found").eq_missing(pl.col("expected"))
        if pair.schema["found"].is_numeric() and pair.schema["expected"].is_numeric():
            distance = (pl.col("found") - pl.col("expected")).abs()
            near = distance <= pl.max_horizontal(RELATIVE * pl.col("expected").abs(), pl.lit(ABSOLUTE))
            same = same | near.fill_null(False)
        self.differences += [Difference(table, column, *row) for row in pair.filter(~same).iter_rows()]

    def skip(self, table: str, columns: Iterable[str], reason: str) -> None:
        """Add columns that are not recomputed."""
        self.unchecked += [(table, column, reason) for column in columns]

    def by_reason(self) -> dict[str, list[str]]:
        """Columns that were not checked, by the reason."""
        columns: dict[str, list[str]] = {}
        for table, column, reason in self.unchecked:
            columns.setdefault(reason, []).append(f"{table}.{column}")
        return columns

    def __str__(self) -> str:
        """The numbers of checked and of differing figures, in words."""
        count = len(self.differences)
        verdict = f"{count} differ" if count > 1 else "one differs" if count else "none differs"
        return f"{self.checked} figures checked, {verdict}"


def audited(result: RunTables, scenario: Scenario | None = None) -> Audit:
    """The audit of a run; ``scenario`` is needed for a saved run with inputs that its folder does not keep."""
    run, audit = evidence(result, scenario), Audit()
    if reason := unauditable(run):
        audit.skip("summary", ["*"], reason)
        return audit
    nodes, overcommitted = states(run)
    check_room(audit, run, overcommitted)
    check_rules(audit, run)
    expected = expected_jobs(run)
    check_jobs(audit, run, expected)
    check_timeline(audit, run, nodes)
    check_summary(audit, run, expected, nodes)
    return audit


def unauditable(run: Evidence) -> str:
    """The reason why no figure can be recomputed; "" if some can."""
    if run.jobs.is_empty():
        return "no job came before the end"
    if run.in_rounds and (run.pods["num_gpu"] == 0).any():
        return "jobs without GPUs leave no placements in rounds"
    return "the ideal places jobs nowhere" if run.scenario.ideal else ""


def check_room(audit: Audit, run: Evidence, overcommitted: list[tuple[str, float, str]]) -> None:
    """Check that no node is overcommitted; containers that share a monitored GPU may exceed it."""
    if run.engine == "monitored":
        audit.skip("placements", ["gpu_ids"], "containers share GPUs")
        return
    audit.checked += len(run.stays)
    for name, t_s, what in overcommitted:
        audit.differences.append(Difference("placements", "gpu_ids", f"{name} at {t_s} s", what, "no more than it has"))


def check_rules(audit: Audit, run: Evidence) -> None:
    """Check that pods started where and when the rules about other pods let them."""
    for pod_id, t_s, rule in broken_rules(run):
        audit.differences.append(
            Difference("placements", "node_id", f"pod {pod_id} at {t_s} s", "placed", f"obeys: {rule}")
        )


def check_jobs(audit: Audit, run: Evidence, expected: pl.DataFrame) -> None:
    """Compare the table of jobs, column by column."""
    reasons = job_reasons(run, expected)
    for column in run.jobs.columns:
        recorded = run.jobs[column]
        if column in JOB_COLUMNS and recorded.null_count() == len(recorded):
            audit.skip("jobs", [column], UNKNOWN)
        elif column in reasons:
            audit.skip("jobs", [column], reasons[column])
        elif column in JOB_FIGURES and column in expected.columns:
            audit.compare("jobs", column, run.jobs["pod_id"], recorded, expected[column])
        else:
            audit.skip("jobs", [column], UNDERIVED)


def job_reasons(run: Evidence, expected: pl.DataFrame) -> dict[str, str]:
    """Columns of jobs that cannot be recomputed, and the reasons."""
    reasons = {"submit_s": run.missing} if run.missing else {}
    if expected["ideal_s"].null_count():
        reasons |= dict.fromkeys(("ideal_s", "slowdown"), "follows from rates")
    if "lease_cost" in switches_on(run.scenario.compat):
        reasons["cost"] = "with lease_cost a job pays from the end of the round before"
    elif fixed_prices(run) is None:
        reasons["cost"] = "there are no prices" if run.scenario.prices is None else "prices change while jobs run"
    return reasons


def check_timeline(audit: Audit, run: Evidence, nodes: pl.DataFrame) -> None:
    """Compare the last row of every instant with the state that follows from stays."""
    if run.timeline.is_empty():
        audit.skip("timeline", ["*"], "the run kept none")
        return
    recorded = last_rows(run)
    expected = expected_rows(run, nodes)
    reasons = instant_reasons(run)
    for column in run.timeline.columns:
        if column in reasons:
            audit.skip("timeline", [column], reasons[column])
        elif column in (*COUNTS, *NODE_COLUMNS):
            audit.compare("timeline", column, recorded["t_s"], recorded[column], expected[column])
        elif column != "t_s":
            audit.skip("timeline", [column], UNDERIVED)
    if len(recorded) < len(run.timeline):
        rows = len(run.timeline) - len(recorded)
        audit.skip("timeline", ["*"], f"{rows} rows are followed by more at the same instant")


def instant_reasons(run: Evidence) -> dict[str, str]:
    """Columns of the timeline that cannot be recomputed, and the reasons."""
    reasons: dict[str, str] = {}
    if run.changing:
        reasons |= dict.fromkeys(NODE_COLUMNS, run.changing)
    if "gang_size" in run.pods.columns:
        reasons |= dict.fromkeys(("pods_unplaced", "pods_pending"), "gangs are given up together")
    if run.scenario.retarget:
        reasons |= dict.fromkeys((*CLASSES, *FRAGMENTS), "measured against another target at the end")
    if run.in_rounds:
        reasons |= {"arrived_cpu_milli": "rounds count GPUs"}
    if run.engine == "orders":
        reasons |= dict.fromkeys(MECHANISM, "follows from the mechanism, which placements do not show")
    return reasons


def check_summary(audit: Audit, run: Evidence, expected: pl.DataFrame, nodes: pl.DataFrame) -> None:
    """Compare the one row of the summary."""
    figures = (
        summary.job_figures(run, expected) | summary.round_figures(run, expected) | summary.node_figures(run, nodes)
    )
    reasons = summary_reasons(run, expected)
    for column, recorded in run.summary.items():
        if recorded is None and column in MAY_BE_UNKNOWN:
            audit.skip("summary", [column], UNKNOWN)
        elif column in reasons:
            audit.skip("summary", [column], reasons[column])
        elif column in figures:
            audit.compare("summary", column, [None], pl.Series([recorded]), pl.Series([figures[column]]))
        else:
            audit.skip("summary", [column], UNDERIVED)


def summary_reasons(run: Evidence, expected: pl.DataFrame) -> dict[str, str]:
    """Columns of the summary that cannot be recomputed, and the reasons."""
    reasons = instant_reasons(run)
    if run.changing:
        about_nodes = [name for name in run.summary if name.startswith(("mean_", "at_capacity_", "power_"))]
        reasons |= dict.fromkeys(
            (*NO_NODES, *FRAGMENTS, *about_nodes, "grar", "eopc_w", "energy_kwh", "co2_kg"), run.changing
        )
    reasons.pop("pods_unplaced", None)  # the count at the end is known
    if "pods_pending" in reasons:
        reasons["mean_pods_pending"] = reasons.pop("pods_pending")
    if summary.open_ended(run):
        reasons["makespan_s"] = "the end is not that of a job"
    reasons |= {name: reason for name, reason in job_reasons(run, expected).items() if name == "cost"}
    if expected["ideal_s"].null_count():
        reasons |= {name: "follows from rates" for name in run.summary if name.startswith("slowdown_")}
    return reasons


def plain(values: pl.Series) -> pl.Series:
    """Enums as texts, numbers unchanged."""
    return values.cast(pl.String) if isinstance(values.dtype, pl.Enum) else values

"""Decisions as text for terminals: request, chosen node and reason, and a table of nodes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import polars as pl

from fastsim.decisions.explain import CHECKS, Explanation
from fastsim.decisions.job_explanation import JobExplanation
from fastsim.decisions.refusal_text import expression
from fastsim.decisions.rounds.round_explanation import RoundExplanation
from fastsim.decisions.rounds.round_text import round_text
from fastsim.decisions.waiting_pods import by_cause
from fastsim.engine.online.plan import PREFERENCE_KERNELS
from fastsim.errors import on_one_line
from fastsim.foundation.csv_table import without_formulas
from fastsim.foundation.parquet import replacing
from fastsim.kubernetes.nodes import TAINT
from fastsim.reports.text_tables import grid_text

if TYPE_CHECKING:
    from pathlib import Path

    from fastsim.decisions.replay import Decision
    from fastsim.engine.online.plan import PodRequest

SHOWN = 10
"""Most nodes of a decision that are listed by default."""


def explanation_text(explanation: Explanation | JobExplanation | RoundExplanation, every: bool = False) -> str:
    """All decisions with the best ten nodes of each, or ``every`` node; of jobs all times, or one round."""
    if isinstance(explanation, RoundExplanation):
        return round_text(explanation, every)
    if isinstance(explanation, JobExplanation):
        return jobs_text(explanation.spans)
    return "\n".join(decision_text(explanation, decision, every) for decision in explanation.decisions)


def decision_text(explanation: Explanation, decision: Decision, every: bool = False) -> str:
    """One decision: two lines, a table of nodes, kube-scheduler's message, and the number of nodes by failed check."""
    nodes = explanation.nodes(decision)
    hosts, others = nodes.filter("feasible").sort("rank"), nearest(nodes)
    text = heading(explanation, decision, nodes)
    if len(hosts):
        text += grid_text(_score_columns(explanation, nodes), hosts if every else hosts.head(SHOWN))
    if len(others) and (every or not len(hosts)):
        text += grid_text({"node": "node", "position": "position", "failed": "failed", "why": "why"},
                       others if every else others.head(SHOWN))  # fmt: skip
    if not len(hosts):
        text += f"{explanation.summary(decision)}\n"
    return text + footer(nodes)


def heading(explanation: Explanation, decision: Decision, nodes: pl.DataFrame) -> str:
    """Request and time of the pod, its node and the reason."""
    pod = decision.pod
    name = f"pod {pod.pod_id}" + (f" ({pod.native_id})" if pod.native_id else "")
    request = f"{name}, attempt {decision.attempt} at {decision.t_s:,g} s, asks for {request_text(decision.request)}\n"
    why = explanation.reason(decision)
    if decision.node < 0:
        return f"{request}-> nowhere: {why}\n"
    row = nodes.row(decision.node, named=True)
    gpus = f", GPU {' '.join(map(str, row['gpu_ids']))}" if row["gpu_ids"] else ""
    return f"{request}-> {row['node']}, position {row['position']}{gpus}: {why}\n"


def request_text(request: PodRequest) -> str:
    """A request in words."""
    text = f"{request.cpu_milli:,} milli-CPU, {request.memory_mib:,} MiB"
    if request.num_gpu:
        text += f", {request.num_gpu} GPU of {request.gpu_milli:,} milli"
        text += f" ({' or '.join(dict.fromkeys(request.gpu_models))})" if request.gpu_models else ""
    conditions = request.conditions
    text += "".join(f", {amount:,} {name}" for name, amount in conditions.extra_resources)
    text += f", on {conditions.pinned_node}" if conditions.pinned_node is not None else ""
    expressions = [expression(item) for item in conditions.constraints if not item.key.startswith(TAINT)]
    return text + (f", where {' and '.join(expressions)}" if expressions else "")


def nearest(nodes: pl.DataFrame) -> pl.DataFrame:
    """The nodes that cannot host the pod: the furthest check first, then the smallest shortfall."""
    failed = nodes.filter(~pl.col("feasible"))
    stage = pl.col("failed").cast(pl.String).replace_strict({name: i for i, name in enumerate(CHECKS)})
    lack = pl.col("needed") - pl.col("found")
    return failed.sort(stage, lack, "position", descending=[True, False, False], nulls_last=True)


def footer(nodes: pl.DataFrame) -> str:
    """Number of nodes by failed check."""
    counts = Counter(nodes["failed"].drop_nulls().to_list())
    if not counts:
        return f"all {len(nodes):,} nodes can host it\n"
    by_check = ", ".join(f"{counts[name]:,} {name}" for name in CHECKS if name in counts)
    return f"{sum(counts.values()):,} of {len(nodes):,} nodes cannot host it: {by_check}\n"


def _score_columns(explanation: Explanation, nodes: pl.DataFrame) -> dict[str, str]:
    """Columns of feasible nodes and their headings, without columns that repeat the one before.

    Scores of preferences that tell no nodes apart are left out, too.
    """
    hosts = nodes.filter("feasible")
    columns = {"rank": "rank", "node": "node", "position": "position"}
    for name, term in zip(explanation.terms, explanation.inputs.plan.terms, strict=True):
        if term.kernel in PREFERENCE_KERNELS and hosts[f"{name}_raw"].n_unique() < 2:
            continue
        columns[f"{name}_raw"] = f"{name}\nraw"
        if term.normalise != "none":
            columns[f"{name}_points"] = f"{name}\npoints"
        if term.weight != 1:
            columns[f"{name}_weighted"] = f"{name}\nx {term.weight}"
    return columns | {"total": "total", "gpu_ids": "GPUs"}


def jobs_text(spans: pl.DataFrame) -> str:
    """The times of jobs in rounds as a table for each job."""
    columns = {"from_s": "from s", "until_s": "until s", "state": "", "gpus": "GPUs", "nodes": "nodes", "why": "why"}
    parts = []
    spans = spans.with_columns(pl.col("from_s", "until_s").round(1))
    for (pod_id, native_id), rows in spans.group_by("pod_id", "native_id", maintain_order=True):
        name = "" if native_id is None else f" ({on_one_line(native_id, 200)})"
        parts.append(f"job {pod_id}{name}\n{grid_text(columns, rows)}")
    return "\n".join(parts)


def waiting_text(table: pl.DataFrame, every: bool = False) -> str:
    """Pods that wait by cause, or ``every`` pod with kube-scheduler's sentence."""
    count = f"{len(table):,} {'pod waits' if len(table) == 1 else 'pods wait'}\n"
    if table.is_empty():
        return count
    if every:
        name = pl.coalesce("native_id", pl.col("pod_id").cast(pl.String)).alias("pod")
        return grid_text({"pod": "pod", "num_gpu": "GPUs", "why": "why"}, table.with_columns(name)) + count
    return grid_text({"pods": "pods", "example": "example", "cause": "why"}, by_cause(table)) + count


def write_csv(frame: pl.DataFrame, path: Path) -> None:
    """The table as CSV, complete or not at all; elements of lists are separated by spaces, and no name is a formula."""
    flat = frame.with_columns(pl.col(pl.List).cast(pl.List(pl.String)).list.join(" "))
    with replacing(path) as partial:
        without_formulas(flat).write_csv(partial)

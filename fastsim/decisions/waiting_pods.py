"""Everything that waits at the end of a run: a row a pod, with the reason in kube-scheduler's words."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa

from fastsim.decisions.explain import AFTER_GANG, Explanation, explained, outcome
from fastsim.decisions.explained_source import Source, origin_of
from fastsim.engine.result import Result
from fastsim.errors import ResultError
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.simulation.run_warnings import incomplete_gangs, rows_behind_gangs
from fastsim.simulation.simulate import Progress, played

WAITING = ("pending", "unplaced")
"""States of pods that have no place at the end."""
AVAILABLE = " nodes are available: "
REQUEST = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
AHEAD = "the run ended while other pods were ahead of it in the queue"
"""Why a pod waits that was never tried and belongs to no gang."""
SCHEMA = {
    "pod_id": pl.Int64, "native_id": pl.String, "tried_s": pl.Float64, "cpu_milli": pl.Int64, "memory_mib": pl.Int64,
    "num_gpu": pl.Int64, "gpu_milli": pl.Int64, "check": pl.String, "why": pl.String,
}  # fmt: skip


@whole_process
def waiting_pods(
    source: Source, *, allow_code: bool = False, progress: Progress | None = None, **objects: Any
) -> pl.DataFrame:
    """The pods of a run that have no place at its end, in the order of arrival.

    ``source`` and ``objects`` are those of :func:`fastsim.decisions.explain.explain`. Columns: pod_id, native_id ·
    tried_s, the second of the last attempt · cpu_milli, memory_mib, num_gpu, gpu_milli, the request · check, the
    furthest check that any node failed · why, kube-scheduler's sentence about all nodes, in which a node counts for
    every amount that it lacks, or the rule that holds the pod back.
    """
    scenario, saved = origin_of(source, allow_code, objects)
    result = played(scenario.with_(record="placements"))[0] if saved is None else saved
    ids = _waiting_ids(result)
    if not ids:
        return pl.DataFrame(schema=SCHEMA)
    inputs: Source = scenario if saved is None else saved
    explanation = explained(inputs, ids, allow_code=allow_code, progress=progress, **objects)
    rows = {decision.pod.pod_id: _row(explanation, decision) for decision in explanation.decisions}
    rows |= _untried(explanation, set(ids) - rows.keys())
    return pl.DataFrame([rows[pod_id] for pod_id in ids], schema=SCHEMA, orient="row")


def _waiting_ids(result: Result) -> list[int]:
    if "rounds" in result.summary.columns or not result.recorded("jobs"):
        kinds = "a run of pods that was recorded with placements or all"
        raise ResultError(f"waiting pods: found a run without a table of pods, expected {kinds}")
    return result.jobs.filter(pl.col("state").is_in(WAITING))["pod_id"].to_list()


def _row(explanation: Explanation, decision: Any) -> tuple[Any, ...]:
    pod, request = decision.pod, decision.request
    held_back = decision.lacks__n is None
    why = explanation.reason(decision) if held_back else explanation.summary(decision)
    return (
        pod.pod_id, pod.native_id, decision.t_s, request.cpu_milli, request.memory_mib, request.num_gpu,
        request.gpu_milli, outcome(decision), why,
    )  # fmt: skip


def _untried(explanation: Explanation, ids: set[int]) -> dict[int, tuple[Any, ...]]:
    """Rows of pods that were never tried: members of incomplete gangs, pods behind a gang, and pods in the queue."""
    workload, rows, first = explanation.inputs.workload, dict[int, dict[str, Any]](), 0
    for batch in workload.batches() if ids else ():
        places = [n for n, pod_id in enumerate(batch.column("pod_id").to_pylist()) if pod_id in ids]
        rows |= zip((first + n for n in places), batch.take(pa.array(places, pa.int64())).to_pylist(), strict=True)
        first += batch.num_rows
    incomplete = incomplete_gangs(workload, rows.keys())
    causes = {place: ("gang", gang.text) for place, gang in incomplete.items()}
    causes |= dict.fromkeys(rows_behind_gangs(workload, rows.keys() - incomplete.keys()), ("gang", AFTER_GANG))
    return {
        row["pod_id"]: (
            row["pod_id"], row.get("native_id"), None, *(row[name] for name in REQUEST),
            *causes.get(place, ("queue", AHEAD)),
        )
        for place, row in rows.items()
    }  # fmt: skip


def by_cause(table: pl.DataFrame) -> pl.DataFrame:
    """Pods by what keeps them waiting: pods, the first of them, cause; the commonest cause first."""
    example = pl.coalesce("native_id", pl.col("pod_id").cast(pl.String)).first().alias("example")
    causes = table.with_columns(cause=pl.Series([_cause(why) for why in table["why"]], dtype=pl.String))
    groups = causes.group_by("cause", maintain_order=True).agg(pl.len().cast(pl.Int64).alias("pods"), example)
    return groups.sort("pods", descending=True, maintain_order=True).select("pods", "example", "cause")


def _cause(why: str) -> str:
    """The reasons in a sentence without the numbers of nodes; another text as it is."""
    head, found, reasons = why.removesuffix(".").partition(AVAILABLE)
    return ", ".join(sorted(reason.partition(" ")[2] for reason in reasons.split(", "))) if found else head

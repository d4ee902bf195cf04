"""Explanations of placements: filter and points of every node at the moment of the decision, as one table."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from fastsim.decisions.explained_source import Names, Source, names_of, names_or_sample, origin_of, refuse_other_inputs
from fastsim.decisions.job_explanation import JobExplanation, job_explanation, plays_jobs
from fastsim.decisions.refusal_text import lack_text, mismatch, near_text, ports_text
from fastsim.decisions.refusals import Refusals
from fastsim.decisions.replay import (
    BACKFILL,
    BESIDE_GANG,
    GANG,
    NAMES,
    OVER_QUOTA,
    PREEMPTION,
    RESERVED,
    Decision,
    SelectedPod,
    replayed,
    sampled_pods,
    selected_pods,
)
from fastsim.decisions.rounds.round_explanation import RoundExplanation, round_explanation
from fastsim.engine.online.plan import PodRequest
from fastsim.engine.tables import REASONS, device_lists
from fastsim.errors import PolicyError, ResultError, ScenarioError
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.simulation.engines.pods import Prepared, prepared
from fastsim.simulation.run_warnings import incomplete_gangs, rows_behind_gangs
from fastsim.simulation.simulate import Progress, RunWarning
from fastsim_ext.online.decision_trace import ABSENT, NO_GPU_MEMORY

if TYPE_CHECKING:
    from fastsim.workload import Workload

CHECKS = (
    "absent", "no_match", "no_gpu_model", "no_gpu", "no_gpu_memory", "no_cpu", "no_memory", "no_extra", "no_pod_slot",
    "spread", "pod_limit", "pod_affinity", "reserved", "over_quota", "gang", "gang_too_large", "beside_gang",
)  # fmt: skip
"""Checks that a node can fail, in the order of the filter; the last five are rules about more than one node."""
FIGURE_TEXTS = {
    "no_gpu": "{:,} GPUs have room, needs {:,}", "no_cpu": "{:,} milli-CPU free, needs {:,}",
    "no_memory": "{:,} MiB free, needs {:,}", "no_pod_slot": "{:,} pod slots free, needs {:,}",
    "no_gpu_memory": "{:,} GPUs have room and memory, needs {:,}",
    "spread": "{:,} pods of its set more than in the domain with the fewest, at most {:,}",
    "pod_limit": "{:,} pods of its group are there, at most {:,}",
}  # fmt: skip
"""Texts of failed checks with figures: the amount of the node and the amount needed."""
PLAIN_TEXTS = {
    "absent": "the node is not there",
    "reserved": "in the way of a pod ahead in the line", "over_quota": "its tenant would be over the quota",
    "gang": "another pod of its gang fits nowhere",
    "gang_too_large": "its gang is larger than the cluster",
    "beside_gang": "other pods of its gang take the room",
}  # fmt: skip
"""Texts of failed checks without figures."""
AFTER_GANG = "it starts only when a gang of its job has"
"""Text for pods that no decision was about, because they wait for a gang."""
NEVER = {
    "too_large": "no empty node could host it",
    "no_match": "no node's labels, taints and name let it in",
    "no_extra": "no empty node has enough of a further resource",
    "no_gpu_model": "no node has a GPU of the models that it asks for",
    "no_gpu": "no node has a GPU",
    "no_gpu_memory": "no GPU has the memory that it asks for",
    "over_quota": "it is more than its tenant's whole quota",
    "gang": "another pod of its gang can never start",
    "gang_too_large": "its gang is larger than the cluster",
}
"""Texts for pods that cannot start on an empty cluster either; ``no_match`` if some node is large enough."""
PLACED, NO_NODE = "placed", "no_node"


class NeverTried(RunWarning):
    """No decision was taken about a pod that was to be explained."""


@dataclass(frozen=True)
class Explanation:
    """Decisions about some pods, with the cluster and plan of the run."""

    inputs: Prepared
    decisions: list[Decision]

    @property
    def terms(self) -> list[str]:
        """Names of the plan's terms; repeated kernels are numbered."""
        count: Counter[str] = Counter()
        names = []
        for term in self.inputs.plan.terms:
            count[term.kernel] += 1
            names.append(term.kernel + (f"_{count[term.kernel]}" if count[term.kernel] > 1 else ""))
        return names

    def frame(self) -> pl.DataFrame:
        """One row for every node of every decision; columns as in :func:`explain`."""
        frame = pl.concat([self.nodes(decision) for decision in self.decisions or [self._blank()]])
        return frame if self.decisions else frame.clear()

    def nodes(self, decision: Decision) -> pl.DataFrame:
        """One row for every node of one decision."""
        host, total = decision.reason__n == 0, self.totals(decision)
        gpus = decision.gpus__n.copy()
        if decision.node >= 0:
            gpus[decision.node] = decision.gpus
        rank = ranks(total, host)
        columns = {
            "pod_id": pl.repeat(decision.pod.pod_id, len(host), dtype=pl.Int64, eager=True),
            "native_id": pl.repeat(decision.pod.native_id, len(host), dtype=pl.String, eager=True),
            "attempt": pl.repeat(decision.attempt, len(host), dtype=pl.Int64, eager=True),
            "t_s": pl.repeat(decision.t_s, len(host), dtype=pl.Float64, eager=True),
            "outcome": pl.repeat(outcome(decision), len(host), dtype=pl.String, eager=True),
            "node": self._names(), "position": np.arange(len(host)), "feasible": host,
            **_failures(decision), **self._points(decision),
            "total": total, "rank": rank, "gpu_ids": pl.Series(device_lists(gpus)),
            "chosen": np.arange(len(host)) == decision.node, "why": list(self._why(decision, total, rank)),
        }  # fmt: skip
        scores = [*self._points(decision), "total", "rank"]
        hosts, devices = pl.when(pl.col("feasible")), pl.when(pl.col("feasible") | pl.col("chosen"))
        frame = pl.DataFrame(columns).with_columns(hosts.then(pl.col(name)).alias(name) for name in scores)
        return frame.with_columns(devices.then(pl.col("gpu_ids")).alias("gpu_ids"))

    def totals(self, decision: Decision, without: str = "") -> Any:
        """Weighted points of every node over the terms, leaving out those of one kernel."""
        weights = [0 if term.kernel == without else term.weight for term in self.inputs.plan.terms]
        return np.array(weights, np.int64) @ decision.points__tn

    def reason(self, decision: Decision) -> str:
        """The reason for the chosen node, or for placing the pod nowhere."""
        host = decision.reason__n == 0
        if decision.how == GANG and decision.node >= 0:
            return "placed with its gang, one member after another"
        if decision.how == PREEMPTION:
            return "room was made by stopping less important pods"
        if decision.node >= 0 and decision.how == BACKFILL:
            return f"backfilled past pods ahead in the line, {self._merit(decision, host)}"
        if decision.never:
            return NEVER[decision.never]
        if decision.node < 0 and outcome(decision) in PLAIN_TEXTS:
            return PLAIN_TEXTS[outcome(decision)]
        return self._merit(decision, host)

    def _merit(self, decision: Decision, host: Any) -> str:
        """The reason by checks and points alone."""
        count = int(host.sum())
        if count == 0:
            return f"{outcome(decision)} is as far as any node got"
        if count == 1:
            return "only feasible node"
        totals = np.where(host, self.totals(decision, without="random"), np.iinfo(np.int64).min)
        if self._draws() and (totals[decision.node] < totals.max() or (totals == totals.max()).sum() > 1):
            return f"random draw among {count:,} feasible nodes"
        ties = int((self.totals(decision)[host] == self.totals(decision)[decision.node]).sum())
        return "highest total" if ties == 1 else f"smallest position of {ties:,} nodes with the highest total"

    def _draws(self) -> bool:
        return any(term.kernel == "random" and term.weight for term in self.inputs.plan.terms)

    def _names(self) -> pl.Series:
        return pl.Series("node", self.inputs.cluster.nodes["name"].to_pylist(), pl.String)

    def _points(self, decision: Decision) -> dict[str, Any]:
        columns = {}
        for t, (name, term) in enumerate(zip(self.terms, self.inputs.plan.terms, strict=True)):
            columns[f"{name}_raw"], columns[f"{name}_points"] = decision.raw__tn[t], decision.points__tn[t]
            columns[f"{name}_weighted"] = term.weight * decision.points__tn[t]
        return columns

    def _why(self, decision: Decision, total: Any, rank: Any) -> Iterator[str]:
        best = int(total[decision.node]) if decision.node >= 0 else 0
        for n, reason in enumerate(decision.reason__n.tolist()):
            if n == decision.node:
                yield self.reason(decision)
            elif reason:
                yield shortfall(reason, decision, n, self._rows[n])
            else:
                behind = best - int(total[n])
                yield f"total {behind:,} below the winner's" if behind else "as many points, larger position"

    def summary(self, decision: Decision) -> str:
        """Why no node can host the pod, in the form of kube-scheduler's message."""
        return self._refusals.sentence(decision)

    @cached_property
    def _refusals(self) -> Refusals:
        return Refusals(self._rows)

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        """Name, labels and free resources of each node, and the model of its devices, partitioned ones included."""
        models = self.inputs.cluster.nodes["gpu_model"].to_pylist()
        rows = self.inputs.cluster.offered.select(["name", "labels", "extra_resources"]).to_pylist()
        return [{**row, "gpu_model": model} for row, model in zip(rows, models, strict=True)]

    def _blank(self) -> Decision:
        nodes, terms = len(self.inputs.cluster), len(self.inputs.plan.terms)
        zeros, table = np.zeros(nodes, np.int64), np.zeros((terms, nodes), np.int64)
        pod, request = SelectedPod(0, 0, None), PodRequest(0, 0, 0, 0, ())
        return Decision(
            pod=pod,
            attempt=0,
            t_s=0.0,
            request=request,
            reason__n=zeros,
            found__n=zeros,
            needed__n=zeros,
            raw__tn=table,
            points__tn=table,
            gpus__n=zeros.astype(np.uint64),
        )


@whole_process
def explain(
    source: Source, pods: Sequence[int | str] | int | str = (), *, jobs: Sequence[int | str] | int | str = (),
    t: float | str | None = None, sample: int = 0, attempt: str = "placed", allow_code: bool = False, **objects: Any,
) -> pl.DataFrame:  # fmt: skip
    """Why these pods, or ``sample`` of them, were placed on their nodes: one row for every node of every decision.

    ``source`` is a result, a scenario or the folder of a saved run, which is repeated up to the decisions. ``pods``
    are ids (numbers) or names in the source (texts). ``attempt`` selects the decisions about a pod that waited:
    the ``first``, the one that ``placed`` it (else its last), or ``all``. ``allow_code`` lets
    the policy of a saved run import a function of the user's. ``objects`` are inputs of a saved run that its folder
    does not keep, such as ``policy=my_policy``.

    Columns: pod_id, native_id, attempt, t_s (seconds), outcome · node, position, feasible · failed, found and needed,
    the check a node failed and its figures · for each term T_raw, T_points (normalised) and T_weighted · total, rank,
    gpu_ids (devices it would take), chosen, why. Of jobs in rounds and on monitored GPUs the rows are the times in
    which they ran or waited; columns as in :data:`fastsim.decisions.job_explanation.SCHEMA`.

    With ``t``, seconds or a text such as ``"1h"``, the rows explain the round of a run in rounds that begins last by
    then: what the policy computed, what was free, and why each job ran or waited. Without ``jobs`` (the same as
    ``pods``) they are of all jobs in the system; columns as in :data:`fastsim.decisions.rounds.columns.SCHEMAS`.
    """
    return explanation_of(
        source, pods, jobs=jobs, t=t, sample=sample, attempt=attempt, allow_code=allow_code, **objects
    ).frame()


def explanation_of(
    source: Source, pods: Names = (), *, jobs: Names = (), t: float | str | None = None, sample: int = 0,
    attempt: str = "placed", progress: Progress | None = None, allow_code: bool = False, **objects: Any,
) -> Explanation | JobExplanation | RoundExplanation:  # fmt: skip
    """The explanation of which :func:`explain` is the table; ``progress`` is called with the number of pods so far."""
    names = names_or_sample(pods, sample, jobs) if t is None else names_of(pods, jobs)
    if t is not None and (sample or attempt != "placed"):
        found = f"sample={sample}" if sample else f"attempt={attempt!r}"
        raise ScenarioError("explain", f"t with {found}", "jobs, or nothing for all of the round")
    scenario, saved = origin_of(source, allow_code, objects)
    scenario.check()
    if t is not None:
        return round_explanation(scenario, saved, names, t, progress)
    if plays_jobs(scenario):
        return job_explanation(scenario, saved, names, sample)
    inputs = prepared(scenario, progress=progress)
    if saved is not None:
        refuse_other_inputs(scenario, inputs.cluster, inputs.workload, saved.provenance)
    selected = selected_pods(inputs.workload, names) if names else sampled_pods(inputs.workload, sample)
    decisions = replayed(inputs, selected, attempt)
    if saved is not None:
        _refuse_other_placements(decisions, saved.recorded_rows("placements"))
    _warn_of_untried(inputs.workload, selected, decisions)
    return Explanation(inputs, decisions)


def explained(source: Source, pods: Names = (), **options: Any) -> Explanation:
    """The decisions about pods; PolicyError for a policy that gives GPUs to jobs."""
    found = explanation_of(source, pods, **options)
    if not isinstance(found, Explanation):
        raise PolicyError("explained", "a policy of another engine", "one that places pods")
    return found


def outcome(decision: Decision) -> str:
    """``placed``, the reason why the pod can never start, or the furthest check that any node failed."""
    if decision.node >= 0 or decision.never:
        return decision.never or PLACED
    if decision.how in (OVER_QUOTA, GANG):
        return decision.how
    rule = next((rule for rule in (RESERVED, BESIDE_GANG) if (decision.reason__n == rule).any()), None)
    if rule is not None:
        return NAMES[rule]
    reasons = np.where(decision.reason__n == NO_GPU_MEMORY, REASONS.index("no_gpu"), decision.reason__n)
    furthest = int(reasons.max(initial=ABSENT))
    return NO_NODE if furthest <= 0 else REASONS[furthest]


def ranks(total: Any, host: Any) -> Any:
    """1 for the highest total, the smaller position first among equals; 0 for nodes that cannot host the pod."""
    places = np.flatnonzero(host)
    order = places[np.argsort(-total[places], kind="stable")]
    rank = np.zeros(len(total), np.int64)
    rank[order] = np.arange(1, len(order) + 1)
    return rank


def shortfall(reason: int, decision: Decision, n: int, row: Mapping[str, Any]) -> str:
    """The failed check of node ``n`` in words; ``row`` has its name, labels, further resources and device model."""
    check, conditions = NAMES[reason], decision.request.conditions
    found, needed = int(decision.found__n[n]), int(decision.needed__n[n])
    if check in PLAIN_TEXTS:
        return PLAIN_TEXTS[check]
    if check == "no_match":
        return mismatch(conditions, row)
    if check == "no_extra":
        return lack_text(conditions, row, found, needed)
    if check == "no_gpu_model":
        model = row["gpu_model"] or "no GPU"
        return f"has {model}, needs {' or '.join(dict.fromkeys(decision.request.gpu_models))}"
    if check == "pod_affinity":
        return near_text(found)[0]
    ports = ports_text(conditions.group or "") if check == "pod_limit" else None
    return ports or FIGURE_TEXTS[check].format(found, needed)


def _failures(decision: Decision) -> dict[str, Any]:
    """Columns failed, found and needed; the figures are null for checks without figures."""
    names = [None if r == 0 else NAMES[r] for r in decision.reason__n.tolist()]
    failed = pl.Series("failed", names, pl.Enum(CHECKS))
    counted = failed.is_in([*FIGURE_TEXTS, "no_extra"]).fill_null(False)
    figures = pl.DataFrame({"found": decision.found__n, "needed": decision.needed__n, "counted": counted}).select(
        pl.when("counted").then(pl.col(name)).alias(name) for name in ("found", "needed")
    )
    return {"failed": failed, "found": figures["found"], "needed": figures["needed"]}


def _refuse_other_placements(decisions: list[Decision], placements: pl.LazyFrame) -> None:
    """ResultError if a decision differs from the saved placements, as anything but the inputs may have changed."""
    if placements.head(1).collect().is_empty():
        return
    saved_rows = placements.filter(pl.col("pod_id").is_in([decision.pod.pod_id for decision in decisions])).collect()
    stays = {(row["pod_id"], row["start_s"]): row for row in saved_rows.iter_rows(named=True)}
    for decision in decisions:
        if decision.node < 0:
            continue
        gpus = [g for g in range(64) if decision.gpus >> g & 1]
        row = stays.get((decision.pod.pod_id, decision.t_s))
        if row is None or (row["node_id"], row["gpu_ids"]) != (decision.node, gpus):
            saved = "nothing at that time" if row is None else f"position {row['node_id']}, GPUs {row['gpu_ids']}"
            found = f"position {decision.node}, GPUs {gpus} at {decision.t_s:g} s when repeated"
            do = "typical pods, policy or fastsim changed since; run it again"
            raise ResultError(f"pod {decision.pod.pod_id}: found {found}, expected {saved} as saved; {do}")


def _listed(selected: Mapping[int, SelectedPod], seqs: Collection[int]) -> str:
    return ", ".join(str(selected[seq].pod_id) for seq in sorted(seqs)[:5]) + (" …" if len(seqs) > 5 else "")


def _warn_of_untried(workload: Workload, selected: Mapping[int, SelectedPod], decisions: list[Decision]) -> None:
    untried = selected.keys() - {decision.pod.seq for decision in decisions}
    incomplete = incomplete_gangs(workload, untried)
    for seq in sorted(untried & incomplete.keys()):
        text = f"never tried: pod {selected[seq].pod_id}; {incomplete[seq].text}"
        warnings.warn(text, NeverTried, stacklevel=5)
    behind = rows_behind_gangs(workload, untried - incomplete.keys()).keys()
    if behind:
        text = f"never tried: pod {_listed(selected, behind)}; {AFTER_GANG}"
        warnings.warn(text, NeverTried, stacklevel=5)
    untried -= incomplete.keys() | behind
    if untried:
        names = _listed(selected, untried)
        text = f"never tried: pod {names}; the run ended while others were ahead in the queue or before it arrived"
        warnings.warn(text, NeverTried, stacklevel=5)

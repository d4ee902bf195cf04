"""Repeats a run to record the inputs of its decisions about some pods.

A run is deterministic, so running the same scenario up to a decision reproduces the state before it.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastsim.engine.online.plan import PREFERENCE_KERNELS, PodRequest
from fastsim.engine.online.run import OnlineRun
from fastsim.engine.tables import REASONS
from fastsim.errors import InputError, ScenarioError
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.limits.knobs import EXPLAINED
from fastsim.foundation.limits.work_budget import Work, amount_text
from fastsim.hardware.node_constraints import unstated
from fastsim_ext.online.decision_trace import (
    ABSENT,
    BREAKS_SPREAD,
    LACKS_CPU,
    LACKS_EXTRA,
    LACKS_GPU,
    LACKS_MEMORY,
    LACKS_POD_SLOT,
    NO_GPU_MEMORY,
    DecisionTrace,
    RulesDecisionTrace,
    filtered,
    lacking,
    picked,
    scored,
)

if TYPE_CHECKING:
    from fastsim.simulation.engines.pods import Prepared
    from fastsim.workload import Workload

ATTEMPTS = ("first", "placed", "all")
"""Which decisions about a pod: its first, the one that placed it (else its last), or every one."""


PREEMPTION, BACKFILL, OVER_QUOTA, GANG, GANG_TOO_LARGE = (
    "preemption", "backfill", "over_quota", "gang", "gang_too_large",
)  # fmt: skip
"""Rules that can affect a decision."""
RESERVED = -3
"""Reason of a node where the pod fits, but would delay a pod ahead of it in the queue."""
BESIDE_GANG = -4
"""Reason of a node where the pod of a gang fits, but not beside the pods of the gang that were placed before it."""
NAMES = {
    **dict(enumerate(REASONS)), ABSENT: "absent", NO_GPU_MEMORY: "no_gpu_memory", RESERVED: "reserved",
    BESIDE_GANG: "beside_gang",
}  # fmt: skip
"""Checks by their numbers in a decision."""
UNTAINTED, BEST = "taint_toleration", 100
"""The score of taints, and what it is where no node has one."""
REASON_BYTES, FIGURE_BYTES = 4, 8
"""Bytes of a reason, and of each figure, of one node in a decision."""
LACKS = {"no_gpu": LACKS_GPU, "no_cpu": LACKS_CPU, "no_memory": LACKS_MEMORY, "no_pod_slot": LACKS_POD_SLOT}
"""Bits of the amounts that a node has too little of, by check; further resources have bits of their own."""
WARNED_AT = 0.1
"""Part of the budget from which a record of decisions warns, with its size."""


class SelectedPod(NamedTuple):
    """A pod whose decisions are recorded: its arrival number, id and name in the source."""

    seq: int
    pod_id: int
    native_id: str | None


@dataclass(frozen=True)
class Decision:
    """One decision about a pod: its inputs by node (``n``) and term (``t``), and its answer.

    ``reason__n`` is 0 where the node can host the pod, else the number of the first check it fails (-1: the node is
    not there); ``found__n`` and ``needed__n`` are in that check's unit, ``gpus__n`` the devices it would take, as bits.
    ``lacks__n`` has every amount that a node lacks, as bits (None if some node can host the pod, unless it was asked
    for), ``extras`` the names of further resources by position.
    ``node`` is the position it got, or -1; ``never`` is the reason why it cannot start on an empty cluster either, or
    empty. ``how`` is the rule that affected it: ``preemption``, ``backfill``, ``over_quota``, ``gang_too_large``,
    ``gang`` (all start or none does; the inputs are those before the first of them) or empty.
    """

    pod: SelectedPod
    attempt: int
    t_s: float
    request: PodRequest
    reason__n: Any
    found__n: Any
    needed__n: Any
    raw__tn: Any
    points__tn: Any
    gpus__n: Any
    lacks__n: Any = None
    extras: tuple[str, ...] = ()
    node: int = -1
    gpus: int = 0
    never: str = ""
    how: str = ""

    def lacking(self, n: int) -> tuple[list[str], list[str]]:
        """The checks of amounts that node ``n`` fails, and the further resources that it has too little of."""
        if self.lacks__n is None:
            return [], []
        bits, asked = int(self.lacks__n[n]), dict(self.request.conditions.extra_resources)
        short = {name for g, name in enumerate(self.extras) if bits & LACKS_EXTRA << g}
        foreign = {name for name, n in asked.items() if n and name not in self.extras and not unstated(name)}
        return [check for check, bit in LACKS.items() if bits & bit], sorted(short | foreign)

    def breaks_spread(self, n: int) -> bool:
        """Whether rules of spread refuse the pod on node ``n``."""
        return self.lacks__n is not None and bool(self.lacks__n[n] & BREAKS_SPREAD)

    def with_answer(self, node: int, gpus: int, how: str, weights: Any) -> Decision:
        """This decision with its answer; nodes that a rule excludes get the reason of that rule.

        A backfilled pod gets the node with the highest points, unless it would delay another pod there.
        """
        reason, host = self.reason__n.copy(), self.reason__n == 0
        if how in (OVER_QUOTA, GANG, GANG_TOO_LARGE) and node < 0:
            reason[host] = REASONS.index(how)
        elif how == BACKFILL and node < 0:
            reason[host] = RESERVED
        elif how == BACKFILL and host[node] and _best(self, weights) != node:
            reason[_best(self, weights)] = RESERVED
        return dataclasses.replace(self, reason__n=reason, node=node, gpus=gpus if node >= 0 else 0, how=how)

    def beside_gang(self) -> Decision:
        """This decision about the pod of a gang that found no room beside those placed before it."""
        return dataclasses.replace(self, reason__n=np.where(self.reason__n == 0, BESIDE_GANG, self.reason__n))


def _best(decision: Decision, weights: Any) -> int:
    """The node with the highest weighted points among those that can host the pod."""
    total = np.where(decision.reason__n == 0, weights @ decision.points__tn, np.iinfo(np.int64).min)
    return int(total.argmax())


class LargeRecord(UserWarning):
    """The recorded decisions will take much memory."""


class ReplayComplete(Exception):
    """Raised when all decisions are recorded, to end the run."""


def decision_bytes(nodes: int, terms: int) -> int:
    """Bytes of one recorded decision: numbers of every node, and points of every node under each term."""
    return nodes * (2 * REASON_BYTES + FIGURE_BYTES * (3 + 2 * terms))


class DecisionRecorder:
    """Listener of the loop that records the selected decisions about some pods.

    With ``every_lack`` it records what each node lacks also where another one can host the pod.
    """

    def __init__(self, run: OnlineRun, pods: Mapping[int, SelectedPod], attempt: str, every_lack: bool = False) -> None:
        self.run, self.pods, self.attempt, self.every_lack = run, pods, attempt, every_lack
        self.recorded: dict[int, list[Decision]] = {seq: [] for seq in pods}
        self.tried: Counter[int] = Counter()
        self.open, self.placed = set(pods), set[int]()
        self.pending: dict[int, Decision] = {}
        self.kept = 0
        self.each = decision_bytes(len(run.cluster), len(run.plan.terms))
        EXPLAINED.refuse(len(pods), self.each)
        if len(pods) * self.each > WARNED_AT * Work.DECISION_BYTES.most:
            more = ", or more if pods are tried again" if attempt == "all" else ""
            size = amount_text(len(pods) * self.each, Work.DECISION_BYTES)
            warnings.warn(f"explain: {size}{more}", LargeRecord, stacklevel=2)
        self.weights = np.array([term.weight for term in run.plan.terms], np.int64)

    def before(self, seq: int, cls: int, t_s: float) -> None:
        """Record the inputs of a decision about a pod of this class, at ``t_s`` seconds."""
        number = self.tried[seq]
        self.tried[seq] += 1
        selected = self.attempt == "all" or seq in self.open
        if selected:
            self.pending[seq] = self._look(self.pods[seq], number, cls, t_s)

    def after(self, seq: int, node: int, gpus: int, how: str = "") -> None:
        """Record the answer: a node's position and devices as bits, or -1, and the rule that affected it."""
        pending = self.pending.pop(seq, None)
        if pending is None:
            return
        decision = pending.with_answer(node, gpus, how, self.weights)
        if node >= 0:
            self.placed.add(seq)
        elif not how and seq not in self.placed:  # one that was placed before is a pod that could not be moved
            decision = decision.beside_gang()
        if self.attempt == "placed":
            self.kept -= len(self.recorded[seq])
            self.recorded[seq].clear()
        self.kept += 1
        EXPLAINED.count(EXPLAINED.amount(self.kept, self.each))
        self.recorded[seq].append(decision)
        if self.attempt == "first" or node >= 0 or self.run.plan.queue == "drop":
            self._close(seq)

    def never(self, seq: int, cls: int, t_s: float, reason: int) -> None:
        """Record a pod that cannot start on an empty cluster either, with the number of the reason."""
        name = REASONS[reason]
        how = name if name in (OVER_QUOTA, GANG, GANG_TOO_LARGE) else ""
        decision = self._look(self.pods[seq], 0, cls, t_s).with_answer(-1, 0, how, self.weights)
        self.recorded[seq].append(dataclasses.replace(decision, never=name))
        self._close(seq)

    def decisions(self) -> list[Decision]:
        """The recorded decisions, pod by pod in order of arrival."""
        return [decision for seq in sorted(self.recorded) for decision in self.recorded[seq]]

    def _close(self, seq: int) -> None:
        self.open.discard(seq)
        if not self.open and self.attempt != "all":
            raise ReplayComplete

    def _look(self, pod: SelectedPod, number: int, cls: int, t_s: float) -> Decision:
        select, nodes, terms = self.run.select, len(self.run.cluster), len(self.run.plan.terms)
        reason, found, needed = np.zeros(nodes, np.int32), np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
        raw, points = np.zeros((terms, nodes), np.int64), np.zeros((terms, nodes), np.int64)
        gpus = np.zeros(nodes, np.uint64)
        ruled = self.run.online if isinstance(self.run.online, RulesDecisionTrace) else None
        (partial(filtered, select) if ruled is None else ruled.filtered)(cls, reason, found, needed)
        if not reason.all():
            self._score(cls, reason == 0, raw, points)
            (partial(picked, select) if ruled is None else ruled.picked)(cls, gpus)
        request = self.run.scorers.request(cls)
        decision = Decision(
            pod=pod,
            attempt=number,
            t_s=t_s,
            request=request,
            reason__n=reason,
            found__n=found,
            needed__n=needed,
            raw__tn=raw,
            points__tn=points,
            gpus__n=gpus,
        )
        if not (reason.all() or self.every_lack):
            return decision
        lacks, columns = np.zeros(nodes, np.int32), self.run.rule_columns
        (partial(lacking, select) if ruled is None else ruled.lacking)(cls, lacks)
        return dataclasses.replace(decision, lacks__n=lacks, extras=() if columns is None else tuple(columns.extras))

    def _score(self, cls: int, hosts: Any, raw: Any, points: Any) -> None:
        """Points of all terms on the nodes that can host a class; without rules no node has a taint to be avoided."""
        ruled = self.run.online if isinstance(self.run.online, RulesDecisionTrace) else None
        own = partial(scored, self.run.select) if ruled is None else ruled.scored
        number = 0
        for row, term in enumerate(self.run.plan.terms):
            if term.kernel not in PREFERENCE_KERNELS:
                own(cls, number, raw[row], points[row])
                number += 1
                continue
            if ruled is not None:
                ruled.preferred(cls, PREFERENCE_KERNELS.index(term.kernel), raw[row])
            elif term.kernel == UNTAINTED:
                raw[row] = np.where(hosts, BEST, 0)
            points[row] = raw[row]


class Replay(OnlineRun):
    """A run that records decisions about some pods and nothing else."""

    def __init__(
        self, inputs: Prepared, pods: Mapping[int, SelectedPod], attempt: str, every_lack: bool = False
    ) -> None:
        options = dataclasses.replace(inputs.options, record="none")
        options.rules.refuse(inputs.plan.queue, inputs.workload.columns, bool(options.deschedule))
        super().__init__(inputs.cluster, inputs.workload, inputs.plan, inputs.typical, options)
        watched = np.zeros(max(pods, default=-1) + 1, np.uint8)
        watched[list(pods)] = 1
        self.decision_recorder = DecisionRecorder(self, pods, attempt, every_lack)
        tables, plain = (self.nodes, self.work, self.select), self._loop_options()
        if self.rule_columns is None:
            self.online = DecisionTrace(*tables, plain, watched, self.decision_recorder)
        else:
            self.online = self.queue_loop = RulesDecisionTrace(
                *tables, plain | self.rule_columns.options(), watched, self.decision_recorder
            )


@whole_process
def replayed(
    inputs: Prepared, pods: Mapping[int, SelectedPod], attempt: str = "placed", *, every_lack: bool = False
) -> list[Decision]:
    """The decisions about these pods, by order of arrival; the run ends with the last of them.

    With ``every_lack`` a decision has what each node lacks also where another one can host the pod.
    """
    if attempt not in ATTEMPTS:
        raise ScenarioError("attempt", repr(attempt), f"one of {', '.join(ATTEMPTS)}")
    run = Replay(inputs, pods, attempt, every_lack)
    try:
        run.play()
    except ReplayComplete:
        pass
    finally:
        run.writer.drop()
        run.recorder.drop()
        run.release_memo()
    return run.decision_recorder.decisions()


def selected_pods(workload: Workload, names: Sequence[int | str]) -> dict[int, SelectedPod]:
    """The pods with these ids (numbers) or names in the source (texts), by arrival number.

    A text of digits is an id if there is such an id, else a name. The namespace of a name may be left out if only one
    namespace has it.
    """
    ids = np.array([int(name) for name in names if str(name).removeprefix("-").isdecimal()], np.int64)
    texts = pa.array([name for name in names if isinstance(name, str)], pa.string())

    def mask(start: int, pod_ids: Any, natives: Any) -> Any:
        by_id = np.isin(pod_ids, ids)
        if natives is None:
            return by_id
        bare = pc.replace_substring_regex(natives.cast(pa.string()), "^[^/]*/", "")
        by_name = pc.or_(pc.is_in(natives, value_set=texts), pc.is_in(bare, value_set=texts))
        return by_id | by_name.to_numpy(zero_copy_only=False)

    candidates = list(_pods_where(workload, mask))
    selected: dict[int, SelectedPod] = {}
    for name in names:
        by_id = [pod for pod in candidates if str(pod.pod_id) == str(name)]
        matches = by_id or [pod for pod in candidates if pod.native_id == name] or _of_one_namespace(candidates, name)
        if not matches:
            raise InputError(f"pod {name!r}", "no such pod in the workload", "a pod_id or native_id of it")
        selected |= {pod.seq: pod for pod in matches}
    return selected


def _of_one_namespace(candidates: Sequence[SelectedPod], name: int | str) -> list[SelectedPod]:
    """The pods of a name without namespace; InputError if several namespaces have it."""
    matches = [pod for pod in candidates if pod.native_id is not None and pod.native_id.partition("/")[2] == name]
    full = sorted({str(pod.native_id) for pod in matches})
    if len(full) > 1:
        names = ", ".join(full[:10]) + (", …" if len(full) > 10 else "")
        raise InputError(f"pod {name!r}", f"{len(full)} pods of that name: {names}", "one of them with its namespace")
    return matches


def sampled_pods(workload: Workload, count: int) -> dict[int, SelectedPod]:
    """``count`` pods at equal distances in the order of arrival, the first and the last among them."""
    total = sum(batch.num_rows for batch in workload.batches())
    chosen = np.unique(np.linspace(0, max(total - 1, 0), min(count, total)).round().astype(np.int64))

    def mask(start: int, pod_ids: Any, natives: Any) -> Any:
        return np.isin(start + np.arange(len(pod_ids)), chosen)

    return {pod.seq: pod for pod in _pods_where(workload, mask)}


def _pods_where(workload: Workload, mask: Callable[[int, Any, Any], Any]) -> Iterator[SelectedPod]:
    """Pods that ``mask`` selects from the arrival number of a batch's first pod, its ids, and its names or None."""
    start = 0
    for batch in workload.batches():
        pod_ids = batch.column("pod_id").to_numpy(zero_copy_only=False)
        natives = batch.column("native_id") if "native_id" in batch.schema.names else None
        for i in np.flatnonzero(mask(start, pod_ids, natives)).tolist():
            yield SelectedPod(start + i, int(pod_ids[i]), None if natives is None else natives[i].as_py())
        start += len(pod_ids)

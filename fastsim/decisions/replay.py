"""A run once more, to look at what its decisions about some pods were made from.

A run is deterministic, so the tables before a decision are had by playing the same scenario up to it.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastsim.engine.online.plan import PodRequest
from fastsim.engine.online.run import OnlineRun
from fastsim.engine.tables import REASONS
from fastsim.errors import InputError, ScenarioError
from fastsim_ext.online.decision_trace import DecisionTrace, RulesDecisionTrace, filtered, picked, scored

if TYPE_CHECKING:
    from fastsim.simulation.simulate import Prepared
    from fastsim.workload import Workload

ATTEMPTS = ("first", "placed", "all")
"""Which decisions about a pod: its first, the one that placed it (else its last), or every one."""


PREEMPTION, BACKFILL, OVER_QUOTA, GANG, GANG_TOO_LARGE = (
    "preemption", "backfill", "over_quota", "gang", "gang_too_large",
)  # fmt: skip
"""What rules may have to do with a decision."""
RESERVED = -3
"""Stands for a reason where the pod would fit, but in the way of one before it in the line."""


class AskedPod(NamedTuple):
    """A pod somebody asks about: its arrival number, id and name in the source."""

    seq: int
    pod_id: int
    native_id: str | None


@dataclass(frozen=True)
class Decision:
    """What one decision about a pod looked at, node by node (``n``), term by term (``t``), and its answer.

    ``reason__n`` is 0 where the node can host the pod, else the number of the first check it fails (-1: the node is
    not there); ``found__n`` and ``needed__n`` are in that check's unit, ``gpus__n`` the devices it would take, as bits.
    ``node`` is the position it got, or -1; ``never`` is the reason why it could not start on an empty cluster either,
    or nothing. ``how`` says what rules had to do with it: ``preemption``, ``backfill``, ``over_quota``,
    ``gang_too_large``, ``gang`` (all start or none does; what is seen is from before the first of them) or nothing.
    """

    pod: AskedPod
    attempt: int
    t_s: float
    request: PodRequest
    reason__n: Any
    found__n: Any
    needed__n: Any
    raw__tn: Any
    points__tn: Any
    gpus__n: Any
    node: int = -1
    gpus: int = 0
    never: str = ""
    how: str = ""

    def told(self, node: int, gpus: int, how: str, weights: Any) -> Decision:
        """This decision with its answer; nodes that could host the pod, but for a rule, say which.

        A backfilled pod goes where the points are highest, unless that is in the way of another one.
        """
        reason, host = self.reason__n.copy(), self.reason__n == 0
        if how in (OVER_QUOTA, GANG, GANG_TOO_LARGE) and node < 0:
            reason[host] = REASONS.index(how)
        elif how == BACKFILL and node < 0:
            reason[host] = RESERVED
        elif how == BACKFILL and host[node] and _best(self, weights) != node:
            reason[_best(self, weights)] = RESERVED
        return dataclasses.replace(self, reason__n=reason, node=node, gpus=gpus if node >= 0 else 0, how=how)


def _best(decision: Decision, weights: Any) -> int:
    """The node with the highest weighted points among those that can host the pod."""
    total = np.where(decision.reason__n == 0, weights @ decision.points__tn, np.iinfo(np.int64).min)
    return int(total.argmax())


class Enough(Exception):
    """Everything that was asked for has been seen; the rest of the run does not matter."""


class Notes:
    """Hears of the decisions about some pods and keeps the ones that were asked for."""

    def __init__(self, run: OnlineRun, asked: Mapping[int, AskedPod], attempt: str) -> None:
        self.run, self.asked, self.attempt = run, asked, attempt
        self.kept: dict[int, list[Decision]] = {seq: [] for seq in asked}
        self.tried: Counter[int] = Counter()
        self.open = set(asked)
        self.looked: dict[int, Decision] = {}
        self.weights = np.array([term.weight for term in run.plan.terms], np.int64)

    def before(self, seq: int, cls: int, t_s: float) -> None:
        """A decision about a pod of this class is about to be taken, at ``t_s`` seconds."""
        number = self.tried[seq]
        self.tried[seq] += 1
        wanted = self.attempt == "all" or seq in self.open
        if wanted:
            self.looked[seq] = self._look(self.asked[seq], number, cls, t_s)

    def after(self, seq: int, node: int, gpus: int, how: str = "") -> None:
        """The decision is taken: a node's position and devices as bits, or -1, and what rules had to do with it."""
        looked = self.looked.pop(seq, None)
        if looked is None:
            return
        decision = looked.told(node, gpus, how, self.weights)
        if self.attempt == "placed":
            self.kept[seq].clear()
        self.kept[seq].append(decision)
        if self.attempt == "first" or node >= 0 or self.run.plan.queue == "drop":
            self._close(seq)

    def never(self, seq: int, cls: int, t_s: float, reason: int) -> None:
        """The pod could not start on an empty cluster either, so nothing is decided; a reason by its number."""
        name = REASONS[reason]
        how = name if name in (OVER_QUOTA, GANG, GANG_TOO_LARGE) else ""
        looked = self._look(self.asked[seq], 0, cls, t_s).told(-1, 0, how, self.weights)
        self.kept[seq].append(dataclasses.replace(looked, never=name))
        self._close(seq)

    def decisions(self) -> list[Decision]:
        """What was kept, pod by pod in order of arrival."""
        return [decision for seq in sorted(self.kept) for decision in self.kept[seq]]

    def _close(self, seq: int) -> None:
        self.open.discard(seq)
        if not self.open and self.attempt != "all":
            raise Enough

    def _look(self, pod: AskedPod, number: int, cls: int, t_s: float) -> Decision:
        select, nodes, terms = self.run.select, len(self.run.cluster), len(self.run.plan.terms)
        reason, found, needed = np.zeros(nodes, np.int32), np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
        raw, points = np.zeros((terms, nodes), np.int64), np.zeros((terms, nodes), np.int64)
        gpus = np.zeros(nodes, np.uint64)
        ruled = self.run.online if isinstance(self.run.online, RulesDecisionTrace) else None
        (partial(filtered, select) if ruled is None else ruled.filtered)(cls, reason, found, needed)
        if not reason.all():
            for term in range(terms):
                (partial(scored, select) if ruled is None else ruled.scored)(cls, term, raw[term], points[term])
            (partial(picked, select) if ruled is None else ruled.picked)(cls, gpus)
        request = self.run.scorers.request(cls)
        return Decision(pod, number, t_s, request, reason, found, needed, raw, points, gpus)


class Replay(OnlineRun):
    """A run whose decisions about some pods are noted; nothing else of it is kept."""

    def __init__(self, made: Prepared, asked: Mapping[int, AskedPod], attempt: str) -> None:
        options = dataclasses.replace(made.options, record="none")
        options.rules.refuse(made.plan.queue, made.workload.columns, bool(options.deschedule))
        super().__init__(made.cluster, made.workload, made.plan, made.typical, options)
        watched = np.zeros(max(asked, default=-1) + 1, np.uint8)
        watched[list(asked)] = 1
        self.notes = Notes(self, asked, attempt)
        tables, plain = (self.nodes, self.work, self.select), self._loop_options()
        if self.rule_columns is None:
            self.online = DecisionTrace(*tables, plain, watched, self.notes)
        else:
            self.online = self.queue_loop = RulesDecisionTrace(*tables, plain | self.rule_columns.options(), watched, self.notes)


def replayed(made: Prepared, asked: Mapping[int, AskedPod], attempt: str = "placed") -> list[Decision]:
    """The decisions about these pods, by order of arrival; the run is played as far as they need."""
    if attempt not in ATTEMPTS:
        raise ScenarioError("attempt", repr(attempt), f"one of {', '.join(ATTEMPTS)}")
    run = Replay(made, asked, attempt)
    try:
        run.play()
    except Enough:
        pass
    finally:
        run.writer.drop()
        run.recorder.drop()
        run.release_memo()
    return run.notes.decisions()


def asked_pods(workload: Workload, names: Sequence[int | str]) -> dict[int, AskedPod]:
    """The pods with these ids (numbers) or names in the source (texts), by arrival number.

    A text of digits is an id if there is such an id, else a name. A name without its namespace will do where only one
    namespace has it.
    """
    ids = np.array([int(name) for name in names if str(name).isdecimal()], np.int64)
    texts = pa.array([name for name in names if isinstance(name, str)], pa.string())

    def mask(start: int, pod_ids: Any, natives: Any) -> Any:
        by_id = np.isin(pod_ids, ids)
        if natives is None:
            return by_id
        bare = pc.replace_substring_regex(natives.cast(pa.string()), "^[^/]*/", "")
        by_name = pc.or_(pc.is_in(natives, value_set=texts), pc.is_in(bare, value_set=texts))
        return by_id | by_name.to_numpy(zero_copy_only=False)

    seen = list(_pods_where(workload, mask))
    found: dict[int, AskedPod] = {}
    for name in names:
        by_id = [pod for pod in seen if str(pod.pod_id) == str(name)]
        matches = by_id or [pod for pod in seen if pod.native_id == name] or _of_one_namespace(seen, name)
        if not matches:
            raise InputError(f"pod {name!r}", "no such pod in the workload", "a pod_id or native_id of it")
        found |= {pod.seq: pod for pod in matches}
    return found


def _of_one_namespace(seen: Sequence[AskedPod], name: int | str) -> list[AskedPod]:
    """The pods of this name, which tells no namespace; InputError if several namespaces have it."""
    matches = [pod for pod in seen if pod.native_id is not None and pod.native_id.partition("/")[2] == name]
    full = sorted({str(pod.native_id) for pod in matches})
    if len(full) > 1:
        listed = ", ".join(full[:10]) + (", …" if len(full) > 10 else "")
        raise InputError(f"pod {name!r}", f"{len(full)} pods of that name: {listed}", "one of them with its namespace")
    return matches


def sampled_pods(workload: Workload, count: int) -> dict[int, AskedPod]:
    """``count`` pods at equal distances in the order of arrival, the first and the last among them."""
    total = sum(batch.num_rows for batch in workload.batches())
    chosen = np.unique(np.linspace(0, max(total - 1, 0), min(count, total)).round().astype(np.int64))

    def mask(start: int, pod_ids: Any, natives: Any) -> Any:
        return np.isin(start + np.arange(len(pod_ids)), chosen)

    return {pod.seq: pod for pod in _pods_where(workload, mask)}


def _pods_where(workload: Workload, mask: Callable[[int, Any, Any], Any]) -> Iterator[AskedPod]:
    """Pods that ``mask`` marks, told the arrival number of a batch's first pod, its ids and its names or None."""
    start = 0
    for batch in workload.batches():
        pod_ids = batch.column("pod_id").to_numpy(zero_copy_only=False)
        natives = batch.column("native_id") if "native_id" in batch.schema.names else None
        for i in np.flatnonzero(mask(start, pod_ids, natives)).tolist():
            yield AskedPod(start + i, int(pod_ids[i]), None if natives is None else natives[i].as_py())
        start += len(pod_ids)

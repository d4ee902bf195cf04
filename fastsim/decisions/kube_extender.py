"""A policy as an extender of kube-scheduler: the nodes that can host a pod, and their points.

Requests and answers are those of ``k8s.io/kube-scheduler/extender/v1``. ``filter`` takes a pod with candidate nodes
(objects, or names if the scheduler has ``nodeCacheCapable: true``) and answers the nodes that remain. The others have
reasons in kube-scheduler's words, and those that preemption cannot help are listed once more.
``prioritize`` answers points from 0 to 10. The node that the policy would choose has 10 points, the others
0 to 9 in proportion, so that the policy's own rule for ties decides.

Nodes and the pods on them come from a :class:`fastsim.decisions.live_cluster.LiveSnapshot`; candidates that are not in
it fail. Pods that the scheduler has placed since count only once the snapshot has them.
"""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fastsim.decisions.live_cluster import ClusterState, LiveSnapshot, rows_by_arrival
from fastsim.decisions.refusals import Refusals
from fastsim.decisions.replay import Decision, SelectedPod, replayed
from fastsim.errors import FastsimError, InputError
from fastsim.foundation.http.replies import EXPOSITION, Reply, Request, json_reply, refusal
from fastsim.foundation.http.request_metrics import Gauge, RequestMetrics
from fastsim.foundation.http.service import Route
from fastsim.foundation.limits.garbage import uncollected
from fastsim.foundation.nested_text import json_value
from fastsim.kubernetes.objects import Manifest
from fastsim.policies import registry
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.engines.pods import prepared
from fastsim.workload import Workload
from fastsim.workload.importers.kubernetes import pods_of_rows
from fastsim.workload.typical_pods import TypicalPods

MOST_POINTS = 10
"""Points of the best node; the scheduler multiplies them by the extender's weight."""
UNKNOWN = "node(s) were not in the snapshot of the extender"
"""The text about candidates that the snapshot does not have, which preemption does not help."""


class Extender:
    """Answers requests about pods with one policy on a live cluster."""

    def __init__(self, live: LiveSnapshot, policy: str = "fgd", *, typical: Workload | str | None = None) -> None:
        parsed: Any = registry.parse(policy)
        if registry.engine_of(parsed) != "pods":
            raise InputError(f"policy {policy}", "a policy of another engine", "one that places pods")
        self.live, self.policy, self.typical = live, policy, typical
        self.metrics = RequestMetrics("fastsim_extender")
        self._lock = threading.Lock()
        self._last: tuple[Any, ClusterState, Decision] | None = None

    def filter(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to ``filter``; errors are in the field ``Error``, as the scheduler expects."""
        try:
            names, objects = candidates(arguments)
            state, decision = self._decided(arguments)
        except FastsimError as error:
            return {"Nodes": None, "NodeNames": None, "FailedNodes": {}, "Error": str(error)}
        failed, lasting = _failures(state, decision, names)
        feasible = [name for name in names if name not in failed]
        items = [item for name, item in zip(names, objects, strict=True) if name not in failed] if objects else None
        return {
            "Nodes": None if items is None else {"metadata": {}, "items": items},
            "NodeNames": feasible if items is None else None,
            "FailedNodes": failed,
            "FailedAndUnresolvableNodes": lasting,
            "Error": "",
        }

    def prioritize(self, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The answer to ``prioritize``: points of every candidate."""
        names, _ = candidates(arguments)
        state, decision = self._decided(arguments)
        return [{"Host": name, "Score": score} for name, score in points(state, decision, names)]

    def routes(self) -> dict[tuple[str, str], Route]:
        """Paths of the service: its verbs, probes of its health, and metrics of its requests and its state."""

        def filtered(request: Request) -> Reply:
            return json_reply(self.filter(_arguments(request.body)))

        def prioritized(request: Request) -> Reply:
            return json_reply(self.prioritize(_arguments(request.body)))

        def healthy(_: Request) -> Reply:
            return Reply(f"ok: {self.live.state().description}\n".encode())

        def metrics(_: Request) -> Reply:
            return Reply(self.metrics.text(self._gauges()).encode(), EXPOSITION)

        return {
            ("POST", "/filter"): self.metrics.measured("filter", filtered, _tells_error),
            ("POST", "/prioritize"): self.metrics.measured("prioritize", prioritized),
            ("GET", "/healthz"): healthy, ("GET", "/livez"): lambda _: Reply(b"ok\n"), ("GET", "/readyz"): self._ready,
            ("GET", "/metrics"): metrics,
        }  # fmt: skip

    def _ready(self, _: Request) -> Reply:
        """Whether the cluster can be read; 503 with the reason if not, which takes the service out of use."""
        try:
            self.live.state()
        except FastsimError as error:
            return refusal(503, str(error))
        return Reply(b"ok\n")

    def _gauges(self) -> tuple[Gauge, ...]:
        """The state that decisions are made on."""
        return (
            Gauge("state_age_seconds", "Seconds since the cluster was known to be so.", lambda: self.live.age_s),
            Gauge("nodes", "Nodes of the cluster.", lambda: len(self.live.state().positions)),
            Gauge("bound_pods", "Pods that hold resources there.", lambda: len(self.live.state().bound_rows)),
        )

    def _decided(self, arguments: Mapping[str, Any]) -> tuple[ClusterState, Decision]:
        """The decision about the pod on the current cluster; `filter` and `prioritize` of one pod share it."""
        body = _value(arguments, "Pod")
        if not isinstance(body, Mapping):
            raise InputError("extender: Pod", repr(body)[:60], "a pod")
        with self._lock, uncollected():
            state = self.live.state()
            key = (state.number, json.dumps(body, sort_keys=True, default=str))
            if self._last is None or self._last[0] != key:
                pod = Manifest("extender: Pod", {**_unbound(body), "kind": "Pod"})
                self._last = (key, *self._decision(state.with_claims_of(pod), pod))
            return self._last[1], self._last[2]

    def _decision(self, state: ClusterState, pod: Manifest) -> tuple[ClusterState, Decision]:
        requested = state.rows_of([pod])
        if not requested:
            found = "a pod that scheduling gates hold, or that is deleted or over"
            raise InputError("extender: Pod", found, "one to be placed")
        others = [row for row in state.bound_rows if row["native_id"] != requested[0]["native_id"]]
        rows = rows_by_arrival(others, requested[:1])
        workload = Workload.of(pods_of_rows(state, rows))
        typical = self.typical or state.typical or TypicalPods.of(workload)
        inputs = prepared(Scenario(cluster=state.nodes, workload=workload, policy=self.policy, typical=typical))
        number = len(rows) - 1
        decision = replayed(inputs, {number: SelectedPod(number, number, None)}, "first", every_lack=True)[0]
        weights = np.array([[term.weight] for term in inputs.plan.terms], np.int64)
        return state, dataclasses.replace(decision, points__tn=weights * decision.points__tn)


def candidates(arguments: Mapping[str, Any]) -> tuple[list[str], list[Any]]:
    """Names of the candidate nodes, and their objects if the request has them."""
    names, nodes = _value(arguments, "NodeNames"), _value(arguments, "Nodes")
    if isinstance(nodes, Mapping) and isinstance(nodes.get("items"), list):
        items = nodes["items"]
        if not all(isinstance(item, Mapping) for item in items):
            raise InputError("extender: Nodes", "an item that is no node", "objects of kind Node")
        return [Manifest("extender: Nodes", item).name for item in items], items
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return names, []
    raise InputError("extender", "no nodes", "Nodes, or NodeNames, a list of names")


def points(state: ClusterState, decision: Decision, names: Sequence[str]) -> list[tuple[str, int]]:
    """Points of these nodes: 10 for the one that the policy would choose, 0 for those that cannot host the pod.

    The decision's points are weighted.
    """
    total = decision.points__tn.sum(axis=0)
    positions = [state.positions[name] for name in names if name in state.positions]
    hosts = [position for position in positions if decision.reason__n[position] == 0]
    if not hosts:
        return [(name, 0) for name in names]
    best = min(hosts, key=lambda position: (-int(total[position]), position))
    low = min(int(total[position]) for position in hosts)
    span = int(total[best]) - low
    points_at = {}
    for position in hosts:
        part = (MOST_POINTS - 1) * (int(total[position]) - low) // span if span else MOST_POINTS - 1
        points_at[position] = MOST_POINTS if position == best else part
    return [(name, points_at.get(state.positions.get(name, -1), 0)) for name in names]


def _failures(state: ClusterState, decision: Decision, names: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Why each node that is left out cannot host the pod, and those of them where stopping pods does not help."""
    failed, lasting = {}, {}
    refusals = Refusals(state.offered_rows)
    for name in names:
        n = state.positions.get(name)
        if n is not None and not decision.reason__n[n]:
            continue
        failed[name] = UNKNOWN if n is None else ", ".join(refusals.texts(decision, n))
        if n is None or refusals.is_lasting(decision, n):
            lasting[name] = failed[name]
    return failed, lasting


def _tells_error(reply: Reply) -> bool:
    """Whether an answer to ``filter`` has a text in its last field, ``Error``."""
    return not reply.body.endswith(b'"Error": ""}')


def _value(arguments: Mapping[str, Any], name: str) -> Any:
    """A field by its name; Go ignores the case of names."""
    return next((value for key, value in arguments.items() if key.lower() == name.lower()), None)


def _unbound(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The pod as it was before it was bound to a node."""
    spec = body.get("spec")
    return {**body, "spec": {**spec, "nodeName": None}} if isinstance(spec, Mapping) else body


def _arguments(body: bytes) -> Mapping[str, Any]:
    try:
        arguments = json_value(body)
    except (ValueError, RecursionError) as error:
        raise InputError("extender", " ".join(str(error).split()), "the arguments of an extender as JSON") from None
    if not isinstance(arguments, Mapping):
        raise InputError("extender", repr(arguments)[:60], "the arguments of an extender as JSON")
    return arguments

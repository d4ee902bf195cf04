"""A policy as an extender of kube-scheduler: which nodes could host a pod, and how good they are.

Requests and answers are those of ``k8s.io/kube-scheduler/extender/v1``: ``filter`` is told a pod with candidate nodes
(objects, or names if the scheduler is told ``nodeCacheCapable: true``) and answers which remain and why others do not;
``prioritize`` answers points from 0 to 10. The node that the policy would take has 10 points, the others 0 to 9 in
proportion, so that the policy's own rule for ties decides.

Nodes and the pods on them come from a :class:`fastsim.decisions.live_cluster.LiveSnapshot`; candidates that it does not
know are refused. Pods that the scheduler has placed since are not seen until the snapshot has them.
"""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastsim.decisions.explain import NAMES, shortfall
from fastsim.decisions.live_cluster import LiveSnapshot, State, rows_by_arrival
from fastsim.decisions.replay import AskedPod, Decision, replayed
from fastsim.errors import FastsimError, InputError
from fastsim.foundation.http import Answer, Reply, Request, json_reply
from fastsim.foundation.nested_text import json_value
from fastsim.kubernetes.objects import Manifest
from fastsim.policies import registry
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.scenario_checks import is_round_policy
from fastsim.simulation.simulate import prepared
from fastsim.workload.importers.kubernetes import workload_of_rows
from fastsim.workload.typical_pods import TypicalPods

if TYPE_CHECKING:
    from fastsim.workload import Workload

MOST_POINTS = 10
"""Points of the best node; a scheduler multiplies them by the extender's weight."""
HOPELESS = ("absent", "no_match", "no_gpu_model", "unknown")
"""Checks that stopping other pods would not help with."""
UNKNOWN = "not in the snapshot"


class Extender:
    """Answers of one policy about pods on a live cluster."""

    def __init__(self, live: LiveSnapshot, policy: str = "fgd", *, typical: Workload | str | None = None) -> None:
        made: Any = registry.parse(policy)
        if is_round_policy(made):
            raise InputError(f"policy {policy}", "a policy for jobs in rounds", "one that places pods")
        self.live, self.policy, self.typical = live, policy, typical
        self._lock = threading.Lock()
        self._last: tuple[Any, Decision] | None = None

    def filter(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to ``filter``; what is wrong stands under ``Error``, as the scheduler expects."""
        try:
            names, objects = candidates(arguments)
            state, decision = self._decided(arguments)
        except FastsimError as error:
            return {"Nodes": None, "NodeNames": None, "FailedNodes": {}, "Error": str(error)}
        failed = {name: _failure(state, decision, name) for name in names}
        kept = [name for name in names if not failed[name][0]]
        items = [item for name, item in zip(names, objects, strict=True) if not failed[name][0]] if objects else None
        return {
            "Nodes": None if items is None else {"metadata": {}, "items": items},
            "NodeNames": kept if items is None else None,
            "FailedNodes": {name: why for name, (check, why) in failed.items() if check},
            "FailedAndUnresolvableNodes": {name: why for name, (check, why) in failed.items() if check in HOPELESS},
            "Error": "",
        }

    def prioritize(self, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The answer to ``prioritize``: points of every candidate."""
        names, _ = candidates(arguments)
        state, decision = self._decided(arguments)
        return [{"Host": name, "Score": score} for name, score in points(state, decision, names)]

    def routes(self) -> dict[tuple[str, str], Answer]:
        """Paths of the service: ``/filter``, ``/prioritize`` and ``/healthz``."""

        def filtered(request: Request) -> Reply:
            return json_reply(self.filter(_arguments(request.body)))

        def prioritized(request: Request) -> Reply:
            return json_reply(self.prioritize(_arguments(request.body)))

        def healthy(_: Request) -> Reply:
            return Reply(f"ok: {self.live.state().told}\n".encode())

        return {("POST", "/filter"): filtered, ("POST", "/prioritize"): prioritized, ("GET", "/healthz"): healthy}

    def _decided(self, arguments: Mapping[str, Any]) -> tuple[State, Decision]:
        """What the policy sees of the pod now; `filter` and `prioritize` of one pod share the work."""
        body = _value(arguments, "Pod")
        if not isinstance(body, Mapping):
            raise InputError("extender: Pod", repr(body)[:60], "a pod")
        with self._lock:
            state = self.live.state()
            key = (state.number, json.dumps(body, sort_keys=True, default=str))
            if self._last is None or self._last[0] != key:
                self._last = (key, self._decision(state, body))
            return state, self._last[1]

    def _decision(self, state: State, body: Mapping[str, Any]) -> Decision:
        pod = Manifest("extender: Pod", {**_unbound(body), "kind": "Pod"})
        asked = state.rows_of([pod])
        if not asked:
            raise InputError("extender: Pod", "a pod that scheduling gates hold, or that is over", "one to be placed")
        others = [row for row in state.bound_rows if row["native_id"] != asked[0]["native_id"]]
        rows = rows_by_arrival(others, asked[:1])
        workload = workload_of_rows(state, rows)
        typical = self.typical or state.typical or TypicalPods.of(workload)
        made = prepared(Scenario(cluster=state.nodes, workload=workload, policy=self.policy, typical=typical))
        number = len(rows) - 1
        decision = replayed(made, {number: AskedPod(number, number, None)}, "first")[0]
        weights = np.array([[term.weight] for term in made.plan.terms], np.int64)
        return dataclasses.replace(decision, points__tn=weights * decision.points__tn)


def candidates(arguments: Mapping[str, Any]) -> tuple[list[str], list[Any]]:
    """Names of the nodes in question, and their objects if those were told."""
    names, nodes = _value(arguments, "NodeNames"), _value(arguments, "Nodes")
    if isinstance(nodes, Mapping) and isinstance(nodes.get("items"), list):
        items = nodes["items"]
        if not all(isinstance(item, Mapping) for item in items):
            raise InputError("extender: Nodes", "what is no node", "objects of kind Node")
        return [Manifest("extender: Nodes", item).name for item in items], items
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return names, []
    raise InputError("extender", "no nodes", "Nodes, or NodeNames, a list of names")


def points(state: State, decision: Decision, names: Sequence[str]) -> list[tuple[str, int]]:
    """Points of these nodes: 10 for the one that the policy would take, 0 for those that cannot host the pod.

    The decision's points are weighted already.
    """
    total = decision.points__tn.sum(axis=0)
    known = [state.positions[name] for name in names if name in state.positions]
    hosts = [position for position in known if decision.reason__n[position] == 0]
    if not hosts:
        return [(name, 0) for name in names]
    best = min(hosts, key=lambda position: (-int(total[position]), position))
    low = min(int(total[position]) for position in hosts)
    span = int(total[best]) - low
    found = {}
    for position in hosts:
        part = (MOST_POINTS - 1) * (int(total[position]) - low) // span if span else MOST_POINTS - 1
        found[position] = MOST_POINTS if position == best else part
    return [(name, found.get(state.positions.get(name, -1), 0)) for name in names]


def _failure(state: State, decision: Decision, name: str) -> tuple[str, str]:
    """The check that a node fails and why, in words; nothing if it can host the pod."""
    position = state.positions.get(name)
    if position is None:
        return "unknown", UNKNOWN
    reason = int(decision.reason__n[position])
    if not reason:
        return "", ""
    [row] = state.nodes.offered.slice(position, 1).to_pylist()
    model = state.nodes.nodes["gpu_model"][position].as_py()
    return NAMES[reason], shortfall(reason, decision, position, {**row, "gpu_model": model})


def _value(arguments: Mapping[str, Any], name: str) -> Any:
    """A field by its name, whose case says nothing to Go."""
    return next((value for key, value in arguments.items() if key.lower() == name.lower()), None)


def _unbound(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The pod as it was asked for, wherever it is."""
    spec = body.get("spec")
    return {**body, "spec": {**spec, "nodeName": None}} if isinstance(spec, Mapping) else body


def _arguments(body: bytes) -> Mapping[str, Any]:
    try:
        told = json_value(body)
    except (ValueError, RecursionError) as error:
        raise InputError("extender", " ".join(str(error).split()), "the arguments of an extender as JSON") from None
    if not isinstance(told, Mapping):
        raise InputError("extender", repr(told)[:60], "the arguments of an extender as JSON")
    return told

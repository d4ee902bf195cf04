"""The nodes that a real kube-scheduler found feasible for pods, attempt by attempt, beside what the extender answers.

Its scores of what pods and nodes prefer are those of the policy ``preferred``, to the last point.

Recorded events are replayed: pods stand where they were bound, and some of the attempts are made again. Where all is
honoured that a pod asks, the same nodes are left, and a refusal has the recorded sentence. Where something is named as
not honoured, or the scheduler looked at some nodes alone or kept room for a pod that it had nominated, the recorded
nodes are among ours.
"""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import polars as pl
import pytest

from fastsim.decisions.kube_extender import Extender
from fastsim.decisions.live_cluster import ClusterState
from fastsim.decisions.refusals import Refusals
from fastsim.kubernetes.objects import Manifest
from fastsim.kubernetes.pod_rules.pod_affinity import selects
from tests.conftest import LONG, SHARED

FOLDER = SHARED / "golden" / "kube-scheduler"
CASES = sorted(path.parent for path in FOLDER.glob("*/scenario.json"))
pytestmark = pytest.mark.skipif(not CASES, reason="reference data not found (set FASTSIM_SHARED)")
LOOKED_AT = 50 if LONG else 6
"""Attempts of each case that are made again, of those that found a node and of the others, most."""
HARD = "requiredDuringSchedulingIgnoredDuringExecution"
OTHER_WORDS = (("didn't satisfy plugin(s)",), ("didn't have free ports",), ("cannot allocate", "topology spread"))
"""What is in sentences about pods that name their nodes, and about nodes with a port or devices and more missing."""
LEAST_SAMPLED = 100
"""Number of nodes from which on the scheduler looks at some of them alone."""
OPEN = ("pods: affinity to other pods that wait", "pods: anti-affinity to other pods that wait")
"""What is named as not honoured and would keep pods from nodes."""


Identity = tuple[str, str, str]
"""Kind, namespace and name of an object."""


class Attempt(NamedTuple):
    """One attempt: its number, the pod, the objects that are there, and whether room is kept for another pod."""

    number: int
    pod: str
    objects: tuple[Manifest, ...]
    kept: bool


class Recording:
    """One recorded case."""

    def __init__(self, folder: Path) -> None:
        self.scenario: dict[str, Any] = json.loads((folder / "scenario.json").read_text(encoding="utf-8"))
        self.events = pl.read_parquet(folder / "events.parquet").sort("seq")
        self.decisions = pl.read_parquet(folder / "decisions.parquet")
        self.scores = pl.read_parquet(folder / "scores.parquet", columns=["attempt", "node"])
        self._last: tuple[tuple[Manifest, ...], ClusterState] | None = None

    @cached_property
    def pods(self) -> dict[str, Any]:
        """Objects by name, with the namespace before it if that is another one than `default`."""
        made = [step["create"] for step in self.scenario["steps"] if "create" in step]
        made += [body for step in self.scenario["steps"] for body in step.get("burst", ())]
        return {identity(body)[2]: body for body in made}

    @cached_property
    def nodes(self) -> list[str]:
        """Their names."""
        return [body["metadata"]["name"] for body in self.scenario["nodes"]]

    @cached_property
    def chosen(self) -> dict[int, dict[str, Any]]:
        """Decisions by attempt."""
        return {row["attempt"]: row for row in self.decisions.rows(named=True)}

    @cached_property
    def scored(self) -> dict[int, set[str]]:
        """Nodes by attempt, where there were several."""
        return {number: set(names) for number, names in self.scores.group_by("attempt").agg("node").iter_rows()}

    @cached_property
    def holds(self) -> dict[int, list[Any]]:
        """Claims and volumes that a pod has once it has its node, by attempt."""
        rows = self.events.filter(pl.col("event") == "holds").select("attempt", "message")
        return {number: json.loads(message) for number, message in rows.iter_rows()}

    @cached_property
    def errors(self) -> set[int]:
        """Attempts that ended in an error of the scheduler."""
        return set(self.events.filter(pl.col("event") == "error")["attempt"].to_list())

    def feasible(self, number: int) -> set[str]:
        """Nodes that an attempt left."""
        node = self.chosen[number]["node"]
        return self.scored.get(number, set()) or ({node} if node else set())

    def waiting(self, pod: str) -> dict[str, Any]:
        """A pod before it has a node."""
        body: dict[str, Any] = self.pods[pod]
        known = {name: part for name, part in body.get("status", {}).items() if name == "resourceClaimStatuses"}
        return {**body, "status": known}

    def attempts(self) -> Iterator[Attempt]:
        """All that had an answer, each with what stands before it; others ended in an error of the scheduler."""
        there = {identity(body): manifest(body) for body in self.scenario["nodes"]}
        there |= {identity(body): manifest(body) for body in self.scenario.get("objects", ())}
        objects, nominated = tuple(there.values()), set[str]()
        for event, pod, number, message in self.events.select("event", "pod", "attempt", "message").iter_rows():
            if event == "attempt":
                if number not in self.errors:
                    yield Attempt(number, pod, objects, self._is_kept(pod, nominated))
                if not self.chosen[number]["node"]:
                    continue
                there["Pod", "", pod] = self._placed(pod, self.chosen[number]["node"])
                there |= {identity(body): manifest(body) for body in self.holds.get(number, ())}
                nominated.discard(pod)
            elif event == "nominated":
                nominated.add(pod)
                continue
            elif event == "unschedulable" and not self.chosen[number]["nominated"]:
                nominated.discard(pod)
                continue
            elif event in ("deleted", "preempted", "withdrawn", "released"):
                there.pop(("Pod", "", pod), None)
                nominated.discard(pod)
            elif event == "object":
                body = json.loads(message)
                there[identity(body)] = manifest(body)
            elif event == "gone":
                there.pop(identity(json.loads(message)), None)
            else:
                continue
            objects = tuple(there.values())

    def _is_kept(self, pod: str, nominated: set[str]) -> bool:
        """Whether a nomination has a part: the pod's own, or one of a pod of at least its priority."""
        return any(other == pod or self._priority(other) >= self._priority(pod) for other in nominated)

    def _priority(self, pod: str) -> int:
        spec, values = self.pods[pod]["spec"], self.scenario.get("objects", ())
        named = [body["value"] for body in values if body["metadata"]["name"] == spec.get("priorityClassName")]
        return int(spec.get("priority", named[0] if named else 0))

    def _placed(self, pod: str, node: str) -> Manifest:
        body = self.pods[pod]
        status = {**body.get("status", {}), "phase": "Running"}
        return manifest({**body, "spec": {**body["spec"], "nodeName": node}, "status": status})

    def moment(self, attempt: Attempt) -> ClusterState:
        """The cluster before an attempt; attempts between which nothing changes have the same one."""
        if self._last is None or self._last[0] is not attempt.objects:
            self._last = attempt.objects, ClusterState(attempt.objects)
        return self._last[1]


def identity(body: dict[str, Any]) -> Identity:
    """Of a pod the name has the namespace in it, as recorded events name pods."""
    space, name = body["metadata"].get("namespace", "default"), body["metadata"]["name"]
    if body["kind"] == "Pod":
        return "Pod", "", name if space == "default" else f"{space}/{name}"
    return body["kind"], space, name


def manifest(body: dict[str, Any]) -> Manifest:
    """An object as files have it."""
    return Manifest(f"{body['kind']} {body['metadata']['name']}", body)


class Still(NamedTuple):
    """A cluster that stands still."""

    moment: ClusterState

    def state(self) -> ClusterState:
        """As it is."""
        return self.moment


def spread(attempts: list[Attempt]) -> list[Attempt]:
    """Some of them, from the first to the last."""
    return attempts[:: -(-len(attempts) // LOOKED_AT) or 1]


def sentence(extender: Extender, arguments: dict[str, Any]) -> str:
    """Ours about a pod that no node can host."""
    state, decision = extender._decided(arguments)  # that of the answer, once more
    rows = state.nodes.offered.select(["name", "labels", "extra_resources"]).to_pylist()
    return Refusals(rows).sentence(decision)


PLUGINS = ("NodeAffinity", "TaintToleration", "PodTopologySpread", "InterPodAffinity", "ImageLocality")
"""Recorded scores of preferences, in the order of ours; where a plugin skipped all pods its column may be missing."""


@pytest.mark.parametrize("folder", CASES, ids=lambda path: path.name)
def test_scores_of_preferences_are_the_recorded_ones(folder: Path) -> None:
    recording, scores = Recording(folder), pl.read_parquet(folder / "scores.parquet")
    scored = spread([attempt for attempt in recording.attempts() if attempt.number in recording.scored])
    for attempt in scored:
        extender = Extender(Still(recording.moment(attempt)), "preferred")  # type: ignore[arg-type]
        arguments = {"Pod": recording.pods[attempt.pod], "NodeNames": recording.nodes}
        state, decision = extender._decided(arguments)  # with its points, weighted
        for row in scores.filter(pl.col("attempt") == attempt.number).to_dicts():
            found = decision.points__tn[:, state.positions[row["node"]]].tolist()
            assert found == [row.get(plugin) or 0 for plugin in PLUGINS], (attempt.number, row["node"])


class Comparison(NamedTuple):
    """An attempt made again: the nodes that are left, those that the scheduler left, and both sentences.

    ``lasting`` are the nodes that preemption does not help, ``texts`` those that are left out by their texts.
    """

    found: set[str]
    recorded: set[str]
    sentence: str
    message: str
    lasting: int = 0
    texts: Mapping[str, int] = MappingProxyType({})


def compared(recording: Recording, attempt: Attempt, pod: Any = None) -> Comparison:
    """The attempt, made again, by another pod if one is given."""
    extender = Extender(Still(recording.moment(attempt)), "best_fit")  # type: ignore[arg-type]
    arguments = {"Pod": pod or recording.waiting(attempt.pod), "NodeNames": recording.nodes}
    answer = extender.filter(arguments)
    assert answer["Error"] == "", attempt.pod
    message = recording.chosen[attempt.number]["message"] or ""
    ours = sentence(extender, arguments) if message and not answer["NodeNames"] else ""
    left, texts = set(answer["NodeNames"]), Counter(answer["FailedNodes"].values())
    lasting = len(answer["FailedAndUnresolvableNodes"])
    return Comparison(left, recording.feasible(attempt.number), ours, message, lasting, texts)


def is_exact(recording: Recording, attempt: Attempt) -> bool:
    """Whether the same nodes are expected: the scheduler looked at all, and nothing is named as not honoured."""
    all_of_them = len(recording.nodes) < LEAST_SAMPLED
    return all_of_them and not attempt.kept and not any(name in recording.moment(attempt).notices for name in OPEN)


def cause(recording: Recording, attempt: Attempt, pair: Comparison) -> str:
    """Why other nodes are left; "" if no reason is known. The guide of Kubernetes names all of them."""
    body = recording.waiting(attempt.pod)
    anywhere = in_every_namespace(body)
    if anywhere != body and compared(recording, attempt, anywhere).found == pair.recorded:
        return "namespaceSelector"
    if pair.found < pair.recorded and any(is_apart(mate) for mate in mates(recording, attempt)):
        return "anti-affinity of mates"
    return ""


def in_every_namespace(body: dict[str, Any]) -> dict[str, Any]:
    """The pod as kube-scheduler 1.36 reads its own terms with a namespaceSelector that nothing has to be there for."""
    changed = copy.deepcopy(body)
    for name in ("podAffinity", "podAntiAffinity"):
        for term in changed["spec"].get("affinity", {}).get(name, {}).get(HARD, ()):
            if term.get("namespaceSelector") and selects(term["namespaceSelector"], {}, ""):
                term["namespaceSelector"] = {}
    return changed


def mates(recording: Recording, attempt: Attempt) -> list[Mapping[str, Any]]:
    """Pods of the same gang that are on nodes."""
    group = recording.pods[attempt.pod]["spec"].get("schedulingGroup")
    pods = (item.body for item in attempt.objects if item.kind == "Pod")
    return [body for body in pods if group and body["spec"].get("schedulingGroup") == group]


def is_apart(body: Any) -> bool:
    """Whether a pod has required anti-affinity."""
    return bool(body["spec"].get("affinity", {}).get("podAntiAffinity", {}).get(HARD))


def says_the_same(pair: Comparison) -> bool:
    """Whether the recorded sentence begins with ours; some kinds have other words or numbers in the scheduler's."""
    others = any(all(text in pair.message for text in texts) for texts in OTHER_WORDS)
    return others or pair.message.startswith(pair.sentence)


def is_helped_the_same(pair: Comparison) -> bool:
    """Whether preemption is not helpful on as many nodes, where the scheduler tried it."""
    tried = re.search(r" preemption: 0/\d+ nodes are available: (.*)", pair.message)
    if tried is None:
        return True
    none = re.search(r"(\d+) Preemption is not helpful", tried[1])
    return pair.lasting == (int(none[1]) if none else 0)


@pytest.mark.parametrize("folder", CASES, ids=lambda path: path.name)
def test_feasible_nodes_and_refusals_are_the_recorded_ones(folder: Path) -> None:
    recording = Recording(folder)
    every, counts = list(recording.attempts()), Counter[str]()
    placed = [attempt for attempt in every if recording.chosen[attempt.number]["node"]]
    refused = [attempt for attempt in every if not recording.chosen[attempt.number]["node"]]
    looked_at = sorted([*spread(placed), *spread(refused)], key=lambda attempt: attempt.number)
    for attempt in looked_at:
        pair = compared(recording, attempt)
        if pair.recorded == pair.found:
            assert attempt.kept or says_the_same(pair), attempt.number
            assert attempt.kept or is_helped_the_same(pair), (attempt.number, pair)
            counts["same"] += 1
        elif is_exact(recording, attempt):
            reason = cause(recording, attempt, pair)
            assert reason, attempt.number
            counts[reason] += 1
        else:
            assert pair.recorded <= pair.found, attempt.number
            counts["fewer recorded"] += 1
    print(f"{folder.name}: {len(looked_at)} attempts, {dict(counts)}")

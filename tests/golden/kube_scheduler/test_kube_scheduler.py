"""The nodes that a real kube-scheduler found feasible for pods, attempt by attempt, beside what the extender answers.

Its scores of what pods and nodes prefer are those of the policy ``preferred``, to the last point.

Recorded events are replayed: pods stand where they were bound, and some of the attempts are made again. Where all is
honoured that a pod asks, the same nodes are left, and a refusal has the recorded sentence. Where something is named as
not honoured, or the scheduler looked at some nodes alone or kept room for a pod that it had nominated, the recorded
nodes are among ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest

from fastsim.decisions.kube_extender import Extender
from fastsim.decisions.live_cluster import ClusterState
from fastsim.decisions.refusals import Refusals
from fastsim.kubernetes.objects import Manifest
from tests.conftest import LONG, SHARED

FOLDER = SHARED / "golden" / "kube-scheduler"
CASES = sorted(path.parent for path in FOLDER.glob("*/scenario.json"))
pytestmark = pytest.mark.skipif(not CASES, reason="reference data not found (set FASTSIM_SHARED)")
LOOKED_AT = 100 if LONG else 6
"""Attempts of each case that are made again, of those that found a node and of the others, most."""
OPEN = ("pods: affinity to other pods that wait", "pods: anti-affinity to other pods that wait")
"""What is named as not honoured and would keep pods from nodes."""


class Attempt(NamedTuple):
    """One attempt: its number, the pod, who stands where, and whether room is kept for another pod."""

    number: int
    pod: str
    bound: dict[str, str]
    kept: bool


class Recording:
    """One recorded case."""

    def __init__(self, folder: Path) -> None:
        self.scenario: dict[str, Any] = json.loads((folder / "scenario.json").read_text(encoding="utf-8"))
        self.events = pl.read_parquet(folder / "events.parquet").sort("seq")
        self.decisions = pl.read_parquet(folder / "decisions.parquet")
        self.scores = pl.read_parquet(folder / "scores.parquet", columns=["attempt", "node"])

    @cached_property
    def pods(self) -> dict[str, Any]:
        """Objects by name."""
        made = [step["create"] for step in self.scenario["steps"] if "create" in step]
        made += [body for step in self.scenario["steps"] for body in step.get("burst", ())]
        return {body["metadata"]["name"]: body for body in made}

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

    def feasible(self, number: int) -> set[str]:
        """Nodes that an attempt left."""
        node = self.chosen[number]["node"]
        return self.scored.get(number, set()) or ({node} if node else set())

    def attempts(self) -> Iterator[Attempt]:
        """All of them, each with what stands before it."""
        bound: dict[str, str] = {}
        nominated: set[str] = set()
        for event, pod, number in self.events.select("event", "pod", "attempt").iter_rows():
            if event == "attempt":
                yield Attempt(number, pod, dict(bound), bool(nominated - {pod}))
                if self.chosen[number]["node"]:
                    bound[pod] = self.chosen[number]["node"]
                    nominated.discard(pod)
            elif event == "nominated":
                nominated.add(pod)
            elif event in ("deleted", "preempted", "withdrawn"):
                bound.pop(pod, None)
                nominated.discard(pod)

    def moment(self, attempt: Attempt) -> ClusterState:
        """The cluster before an attempt."""
        placed = [
            {**self.pods[name], "spec": {**self.pods[name]["spec"], "nodeName": node}, "status": {"phase": "Running"}}
            for name, node in attempt.bound.items()
        ]
        bodies = [*self.scenario["nodes"], *self.scenario.get("objects", ()), *placed]
        return ClusterState([Manifest(f"{body['kind']} {body['metadata']['name']}", body) for body in bodies])


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


@pytest.mark.parametrize("folder", CASES, ids=lambda path: path.name)
def test_feasible_nodes_and_refusals_are_the_recorded_ones(folder: Path) -> None:
    recording = Recording(folder)
    every, same = list(recording.attempts()), 0
    placed = [attempt for attempt in every if recording.chosen[attempt.number]["node"]]
    refused = [attempt for attempt in every if not recording.chosen[attempt.number]["node"]]
    looked_at = [*spread(placed), *spread(refused)]
    for attempt in looked_at:
        moment = recording.moment(attempt)
        extender = Extender(Still(moment), "best_fit")  # type: ignore[arg-type]
        arguments = {"Pod": recording.pods[attempt.pod], "NodeNames": recording.nodes}
        answer = extender.filter(arguments)
        assert answer["Error"] == ""
        message = recording.chosen[attempt.number]["message"]
        assert attempt.kept or not message or message.startswith(sentence(extender, arguments)), attempt
        found, recorded = set(answer["NodeNames"]), recording.feasible(attempt.number)
        evaluated = recording.chosen[attempt.number]["evaluated"]
        some = evaluated is not None and evaluated < len(recording.nodes)
        if some or attempt.kept or any(name in moment.notices for name in OPEN):
            assert recorded <= found, attempt
        else:
            assert recorded == found, attempt
            same += 1
    print(f"{folder.name}: {same} of {len(looked_at)} attempts left the same nodes")

"""What a replay says about every decision is what the plain Python engine finds when it takes the same decision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings

from fastsim.decisions.explain import FIGURE_TEXTS, Explanation, ranks
from fastsim.decisions.replay import Decision, SelectedPod, replayed
from fastsim.engine.online.options import OnlineOptions
from fastsim.engine.online.plan import PodRequest
from fastsim.engine.tables import REASONS
from fastsim.simulation.engines.pods import Prepared
from tests.backends import bits
from tests.reference.online.devices import devices
from tests.reference.online.engine import ReferenceEngine
from tests.reference.online.nodes import STAGES, Node, stage
from tests.reference.online.scores import normalised
from tests.reference.online.select import Choice, Selection
from tests.reference.online.tables import Outcome
from tests.reference.online.waiting_line import Entry
from tests.strategies import Scenario, scenarios, scenarios_per_run

Row = tuple[Any, ...]


class Witnessed(Selection):
    """The twin's selection, writing down what each decision is made from."""

    def __init__(self, select: Selection) -> None:
        super().__init__(select.plan, select.frag, select.seed, select.models)
        self.seen: list[tuple[list[Row], Choice]] = []

    def choose(
        self, nodes: Sequence[Node | None], pod: PodRequest, present: Sequence[Node | None] | None = None
    ) -> Choice:
        """As the twin's, noted."""
        rows = list(self._rows(nodes, pod))
        self.seen.append((rows, super().choose(nodes, pod, present)))
        return self.seen[-1][1]

    def _rows(self, nodes: Sequence[Node | None], pod: PodRequest) -> list[Row]:
        """For every node the check it fails or, if it can host the pod, raw and normalised points and devices."""
        host = [n for n, node in enumerate(nodes) if node is not None and stage(node, pod) == len(STAGES)]
        raw = [self._points(term, nodes, pod, host, self.attempts) for term in self.plan.terms]
        points = [
            normalised(of_term, term.normalise) if host else []
            for of_term, term in zip(raw, self.plan.terms, strict=True)
        ]
        rows: list[Row] = []
        for n, node in enumerate(nodes):
            if node is None:
                rows.append(("absent",))
            elif n not in host:
                rows.append((STAGES[stage(node, pod)],))
            else:
                f = host.index(n)
                taken = devices(node, pod, self.plan, self.frag, self.seed, self.attempts)
                rows.append((None, [of_term[f] for of_term in raw], [of_term[f] for of_term in points], taken))
        return rows


class WitnessedEngine(ReferenceEngine):
    """The twin, remembering which pod each decision was about."""

    tried: list[tuple[int, float]]

    def offer(self, entry: Entry) -> tuple[Outcome, str] | None:
        """As the twin's, noted."""
        self.tried.append((entry.lead.sequence, self.now))
        return super().offer(entry)

    @classmethod
    def played(cls, s: Scenario) -> WitnessedEngine:
        """A whole run."""
        engine = cls(s.cluster, s.workload, s.plan, s.typical, s.seed, s.sample_s)
        engine.tried = []
        engine.select = Witnessed(engine.select)
        while engine.step(math.inf if s.until_s is None else s.until_s):
            pass
        return engine


def prepared(s: Scenario) -> Prepared:
    """A random scenario as the engine wants it."""
    options = OnlineOptions(seed=s.seed, sample_s=s.sample_s, until_s=s.until_s)
    return Prepared(s.cluster, s.workload, None, s.plan, s.typical, options)  # type: ignore[arg-type]


def asked(s: Scenario) -> dict[int, SelectedPod]:
    """Every pod of a random scenario."""
    return {seq: SelectedPod(seq, pod_id, None) for seq, pod_id in enumerate(s.workload.table()["pod_id"].to_pylist())}


def told(decision: Decision) -> list[Row]:
    """What a replay says, in the twin's words."""
    rows: list[Row] = []
    for n, reason in enumerate(decision.reason__n.tolist()):
        if reason:
            rows.append(("absent" if reason < 0 else REASONS[reason],))
        else:
            points = decision.raw__tn[:, n].tolist(), decision.points__tn[:, n].tolist()
            rows.append((None, *points, bits(int(decision.gpus__n[n]))))
    return rows


@given(scenarios())
@settings(max_examples=scenarios_per_run(120), deadline=None, suppress_health_check=list(HealthCheck))
def test_every_decision_is_made_from_what_the_twin_sees(scenario: Scenario) -> None:
    twin = WitnessedEngine.played(scenario)
    assert isinstance(twin.select, Witnessed)
    expected: dict[int, list[Any]] = {}
    for (seq, t_s), (rows, choice) in zip(twin.tried, twin.select.seen, strict=True):
        expected.setdefault(seq, []).append((t_s, rows, -1 if choice.position is None else choice.position,
                                             choice.devices))  # fmt: skip
    found: dict[int, list[Any]] = {}
    for d in replayed(prepared(scenario), asked(scenario), "all"):
        if d.never:
            assert twin.pods[d.pod.seq].reason == d.never and d.reason__n.all()
        else:
            assert d.attempt == len(found.get(d.pod.seq, []))
            found.setdefault(d.pod.seq, []).append((d.t_s, told(d), d.node, bits(d.gpus)))
    assert found == expected


@given(scenarios())
@settings(max_examples=scenarios_per_run(40), deadline=None, suppress_health_check=list(HealthCheck))
def test_the_winner_ranks_first_and_fewer_attempts_are_a_part_of_all(scenario: Scenario) -> None:
    made, pods = prepared(scenario), asked(scenario)
    every = replayed(made, pods, "all")
    explanation = Explanation(made, every)
    for d in every:
        host = d.reason__n == 0
        rank = ranks(explanation.totals(d), host)
        assert sorted(rank[host]) == list(range(1, host.sum() + 1))
        assert (d.node == -1) == (not host.any()) and (d.node < 0 or rank[d.node] == 1)
        if d.node >= 0:
            assert d.gpus == int(d.gpus__n[d.node])
        for name, found, needed in zip(*(explanation.nodes(d)[c] for c in ("failed", "found", "needed")), strict=True):
            assert name is None or (found is None) == (name not in FIGURE_TEXTS)
            assert found is None or found < needed
    for attempt in ("first", "placed"):
        for pod in pods.values():
            kept = replayed(made, {pod.seq: pod}, attempt)
            tries = [d for d in every if d.pod == pod]
            placed = [d for d in tries if d.node >= 0]
            wanted = tries[:1] if attempt == "first" else placed[:1] or tries[-1:]
            assert [(d.attempt, d.t_s, d.node) for d in kept] == [(d.attempt, d.t_s, d.node) for d in wanted]

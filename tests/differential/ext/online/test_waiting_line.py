"""Retries that look only at freed nodes decide as those that try every pod of the line, and as the twin does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import DrawFn

import fastsim as fs
from fastsim.engine.online import run as engine
from fastsim.engine.online.plan import OnlinePlan, ScoreTerm
from fastsim.engine.online.recorder import tables_and_provenance
from fastsim.engine.online.run import OnlineRun
from fastsim.engine.result import Result
from tests.differential.ext.online.test_online import agreed, assert_all_same, options_of
from tests.strategies import PLAIN_QUEUES, Scenario, crowds, ruled, scenarios_per_run

SKIPPING = tuple(rule for rule in PLAIN_QUEUES if rule.endswith("_skip"))
"""Queue rules that let pods pass one that fits nowhere."""
BEHIND_A_HEAD = ("easy",)
"""The queue rule that lets pods pass one that fits nowhere if they do not delay it."""
SEARCHED = pytest.mark.parametrize("queues", [SKIPPING, BEHIND_A_HEAD], ids=["skipping", "easy"])
SCENARIOS = scenarios_per_run(600)


@st.composite
def searched(draw: DrawFn, queues: tuple[str, ...]) -> Scenario:
    """A crowded run without draws, in half of the cases with conditions, gangs, failures and restarts."""
    scenario = draw(ruled(queues, crowded=True) if draw(st.booleans()) else crowds(queues))
    terms = tuple(term if term.kernel != "random" else ScoreTerm("best_fit") for term in scenario.plan.terms)
    pick = "best" if scenario.plan.gpu_pick == "random" else scenario.plan.gpu_pick
    rules = replace(scenario.rules, preempt="none", quotas={})
    return replace(scenario, plan=replace(scenario.plan, terms=terms, gpu_pick=pick), rules=rules)


@contextmanager
def every_pod_is_tried() -> Iterator[None]:
    """As if failed attempts counted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OnlinePlan, "draws", property(lambda plan: True))
        yield


def played(scenario: Scenario) -> tuple[Result, int]:
    """The result of a run whose line is checked after every event, and its searches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "CHECKED", True)
        run = OnlineRun(scenario.cluster, scenario.workload, scenario.plan, scenario.typical, options_of(scenario))
        run.play()
    run.writer.close()
    frames, provenance = tables_and_provenance(run)
    run.release_memo()
    return Result(frames, provenance, {}), run.online.line.searches


@SEARCHED
def test_searches_decide_as_trying_every_pod_does(queues: tuple[str, ...]) -> None:
    seen: Counter[str] = Counter()

    @given(searched(queues))
    @settings(max_examples=SCENARIOS, deadline=None, suppress_health_check=list(HealthCheck))
    def compare(scenario: Scenario) -> None:
        found, searches = played(scenario)
        with every_pod_is_tried():
            expected, tries = played(scenario)
        assert_all_same(found, expected)
        assert tries == 0
        seen.update(runs=1, searched=searches > 0)

    compare()
    assert 2 * seen["searched"] > seen["runs"]


@SEARCHED
def test_searches_decide_as_the_twin_does(queues: tuple[str, ...]) -> None:
    @given(searched(queues))
    @settings(max_examples=SCENARIOS // 3, deadline=None, suppress_health_check=list(HealthCheck))
    def compare(scenario: Scenario) -> None:
        agreed(scenario)

    compare()


@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.RunWarning")  # of options without effect in some
@pytest.mark.parametrize("queue", (*SKIPPING, *BEHIND_A_HEAD))
@pytest.mark.parametrize("failures", ["", "mtbf=90000,mttr=900"])
def test_long_lines_are_searched(queue: str, failures: str) -> None:
    rows: list[dict[str, Any]] = [
        {
            "submit_s": 30.0 * k, "duration_s": 300.0 + 97.0 * (k * 7 % 40),
            "num_gpu": (1.0, 0.5, 2.0, 0.25, 8.0)[k % 5],
            "cpu_milli": 500 + 10 * (k * 13 % 97), "memory_mib": 1000 + k * 29 % 501, "priority": k * 11 % 5,
            "deadline_s": 30.0 * k + 5000.0 * (k % 3),
            "est_duration_s": (300.0 + 97.0 * (k * 7 % 40)) * (0.5, 1.0, 1.0, 2.5, 5.0)[k * 3 % 5],
        } for k in range(1500)
    ]  # fmt: skip
    pods, cluster = fs.Workload.from_polars(pl.DataFrame(rows)), fs.Cluster.uniform(nodes=4, gpu="A100", gpus=8)
    fields: dict[str, Any] = {"policy": "best_fit", "queue": queue, "failures": failures, "on_node_loss": "requeue"}
    found = fs.simulate(cluster, pods, record="placements", **fields)
    with every_pod_is_tried():
        expected = fs.simulate(cluster, pods, record="placements", **fields)
    assert found.placements.equals(expected.placements)
    assert found.summary["wait_mean_s"].item() > 3600

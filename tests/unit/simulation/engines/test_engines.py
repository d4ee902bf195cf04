"""Each engine prepares a run of a scenario, and playing it gives what ``simulate`` gives."""

from __future__ import annotations

from pathlib import Path

import pytest

import fastsim as fs
from fastsim.engine.checkpoints.clock import Checkpoints
from fastsim.engine.checkpoints.state import ENGINES, RunState
from fastsim.engine.checkpoints.writer import CheckpointWriter
from fastsim.errors import PolicyError, ScenarioError
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.engines.choice import engine_named
from fastsim.simulation.engines.engine import Hooks, clock, timing_of
from fastsim.simulation.engines.pods import prepared
from fastsim.simulation.simulate import checked_policy
from tests.engines import RUNS

KEEPERS = {"pods", "shares", "orders", "adaptive"}
"""Engines whose state can be stored."""


@pytest.mark.parametrize("name", RUNS)
def test_a_prepared_run_is_played_once(name: str) -> None:
    scenario = Scenario(**RUNS[name])
    made = engine_named(name).prepared(scenario, checked_policy(scenario))
    seen: list[int] = []
    result = made.play(Hooks(seen.append))
    expected = fs.simulate(**RUNS[name])
    assert result.summary.drop("co2_kg", strict=False).equals(expected.summary.drop("co2_kg", strict=False))
    assert result.jobs.equals(expected.jobs) and len(made.cluster) == expected.provenance["cluster"]["nodes"]
    assert list(made.ahead) == [] and list(made.messages()) == []
    assert seen or name == "monitored"


@pytest.mark.parametrize("name", RUNS)
def test_engines_without_a_keeper_refuse_checkpoints(name: str, tmp_path: Path) -> None:
    assert (engine_named(name).keeper is not None) == (name in KEEPERS) == (name in ENGINES)
    if name not in KEEPERS:
        with pytest.raises(ScenarioError, match="keeps no checkpoints"):
            fs.simulate(**RUNS[name], out=tmp_path / "run", checkpoint_pods=2)


def test_pods_are_prepared_for_policies_of_pods_alone() -> None:
    with pytest.raises(PolicyError, match="one that places pods"):
        prepared(Scenario(**RUNS["shares"]))


def test_seconds_of_a_resumed_run_count_what_was_spent_before(tmp_path: Path) -> None:
    before = RunState("shares", {"note": {"spent": {"wall_s": 100.0, "cpu_s": 50.0}}}, {})
    writer = CheckpointWriter(tmp_path, Checkpoints(), {}, before)
    timing = timing_of(clock(), writer, 1000, solver_s=2.0, rounds=200)
    assert 100 <= timing["wall_s"] < 101 and 50 <= timing["cpu_s"] < 51 and timing["solver_s"] == 2.0
    assert timing["pods_per_s"] == pytest.approx(5 * timing["rounds_per_s"])

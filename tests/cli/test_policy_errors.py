"""Policies of users on the command line: in each engine a wrong answer is exit code 2 and one line, nothing written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fastsim.cli.main import exit_code
from fastsim.engine.adaptive.plan import AdaptivePlan
from fastsim.engine.monitored.plan import MonitoredPlan
from fastsim.engine.online.plan import OnlinePlan, ScoreTerm
from fastsim.engine.orders.plan import OrderPlan
from fastsim.engine.shares.plan import SharePlan
from fastsim.policies import registry
from fastsim.policies.round_policy import RoundRule
from fastsim.simulation.uses.options import ENGINES_OF_SCENARIOS
from tests.engines import RUNS


@dataclass(frozen=True)
class InPods(RoundRule):
    """A scorer that answers with a text."""

    def plan(self, cluster: Any, workload: Any) -> Any:
        """The plan."""
        return OnlinePlan((ScoreTerm("python", scorer=lambda nodes, pod: "a"),))  # type: ignore[arg-type]


@dataclass(frozen=True)
class InShares(RoundRule):
    """An allocator that answers with a number."""

    def begin(self, setting: Any) -> Any:
        """The plan."""
        return SharePlan(SimpleNamespace(allocate=lambda view: 3, state=dict, restore=print))


@dataclass(frozen=True)
class InOrders(RoundRule):
    """A chooser that answers with nothing."""

    ordered = True

    def begin(self, setting: Any) -> Any:
        """The plan."""
        chooser = SimpleNamespace(parts=lambda *given: None, solver_s=0.0)
        return OrderPlan(("arrival",), mechanism="opt", chooser=chooser)


@dataclass(frozen=True)
class InAdaptive(RoundRule):
    """A decider that answers with a list."""

    engine = "adaptive"

    def begin(self, setting: Any) -> Any:
        """The plan."""
        return AdaptivePlan(SimpleNamespace(decide=lambda view: [3], solver_s=0.0))


@dataclass(frozen=True)
class InMonitored(RoundRule):
    """A scheduler that answers with a text."""

    def watch(self) -> Any:
        """The plan."""
        step = SimpleNamespace(arrive=lambda pod, request: None, step=lambda now_s, view: "a")
        return MonitoredPlan(lambda capacity, begin_s: step)


SYNERGY = {"cluster": "synergy:1", "workload": "synth:synergy?jobs=4&rate_per_hour=9&seed=1"}
WRONG: dict[str, tuple[type, dict[str, Any], str]] = {
    "pods": (InPods, RUNS["pods"], "scorer"), "shares": (InShares, RUNS["shares"], "allocate(): found 3"),
    "orders": (InOrders, SYNERGY, "parts(): found None"), "adaptive": (InAdaptive, RUNS["adaptive"], "decide(): found"),
    "monitored": (InMonitored, RUNS["monitored"], "step(): found 'a'"),
}  # fmt: skip
"""By engine: a policy, the fields of a run, and a part of the error."""


def test_every_engine_has_a_policy_that_answers_wrong() -> None:
    assert set(WRONG) == set(ENGINES_OF_SCENARIOS)


@pytest.mark.parametrize("engine", WRONG)
def test_a_wrong_answer_is_exit_code_2_and_one_line(
    engine: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    kind, fields, text = WRONG[engine]
    name = f"mine_{engine}"
    monkeypatch.setitem(registry._classes, name, kind)
    words = ["run", "--cluster", fields["cluster"], "--workload", fields["workload"], "--policy", name]
    code = exit_code([*words, "--out", str(tmp_path / "run")])
    out, err = capfd.readouterr()
    told = [line for line in err.splitlines() if "warning:" not in line]
    assert (code, out, len(told)) == (2, "", 1), err
    assert text in told[0] and ", expected " in told[0] and "Traceback" not in err
    assert not (tmp_path / "run").exists()

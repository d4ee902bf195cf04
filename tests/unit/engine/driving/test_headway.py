"""Work since a job or pod ended stops at its budget, of each kind by itself."""

from __future__ import annotations

import pytest

from fastsim.engine.driving.headway import Headway
from fastsim.errors import ScenarioError
from fastsim.foundation.limits.knobs import DECISIONS, GENERATIONS, ROUND_S, STAYS, STEPS, Knob
from fastsim.foundation.limits.work_budget import CHOICE


@pytest.fixture(autouse=True)
def _small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHOICE, "0.0005")  # 1,000 rounds, 50 decisions, 1,250 generations, 10,000 steps


@pytest.mark.parametrize(("knob", "most", "what"), [
    (ROUND_S, 1000, "1,001 rounds"), (DECISIONS, 50, "51 decisions of the policy"),
    (GENERATIONS, 1250, "1,251 generations of the search"), (STEPS, 10_000, "10,001 steps and samples"),
    (STAYS, 2500, "2,501 stays on nodes"),
], ids=["rounds", "decisions", "generations", "steps", "stays"])  # fmt: skip
def test_work_counts_from_the_last_job_that_ended(knob: Knob, most: int, what: str) -> None:
    headway = Headway("jobs", ROUND_S, DECISIONS, GENERATIONS, STEPS, STAYS)
    headway.add(knob, most, 1.0)
    headway.see(1)
    headway.add(knob, most - 1, 2.0)
    headway.see(1)
    headway.add(knob, 1, 3.0)
    with pytest.raises(ScenarioError, match=f"run at 4 s, 1 jobs ended: found {what} since a .* ended, expected"):
        headway.add(knob, 1, 4.0)


def test_kinds_of_work_have_budgets_of_their_own() -> None:
    headway = Headway("pods", STEPS, STAYS)
    headway.add(STEPS, 10_000, 1.0)
    headway.add(STAYS, 2500, 1.0)
    with pytest.raises(ScenarioError, match="0 pods ended: found 2,501 stays"):
        headway.add(STAYS, 1, 2.0)


def test_what_is_foreseen_is_not_counted() -> None:
    headway = Headway("jobs", ROUND_S)
    headway.add(ROUND_S, 400, 1.0)
    headway.foresee(ROUND_S, 600, 1.0)
    headway.add(ROUND_S, 600, 2.0)
    with pytest.raises(ScenarioError, match="found 1,001 rounds"):
        headway.foresee(ROUND_S, 1, 2.0)

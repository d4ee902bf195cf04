"""Plans that policies return: every field has a rule, and a wrong value is one error with policy and field."""

from __future__ import annotations

import dataclasses
from importlib import import_module
from typing import Any

import pytest

import fastsim as fs
from fastsim.engine.online.plan import OnlinePlan, ScoreTerm
from fastsim.engine.shares.plan import SharePlan
from fastsim.errors import PolicyError
from fastsim.simulation.returned_plans import RULES, returned_plan, rules_of

KINDS: list[type] = [getattr(import_module(module), name) for module, name in (kind.split(":") for kind in RULES)]


def test_every_field_of_a_plan_has_a_rule() -> None:
    for kind in KINDS:
        assert {field.name for field in dataclasses.fields(kind)} == set(rules_of(kind)), kind.__name__


class Odd:
    """A value that no field allows."""


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in KINDS for name in rules_of(kind)])
def test_no_field_takes_just_anything(kind: type, name: str) -> None:
    allowed, expected = rules_of(kind)[name]
    assert not allowed(Odd()) and expected
    assert allowed(b"") is False


class Mine:
    """A policy that returns what it was given."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def plan(self, cluster: Any, workload: Any) -> Any:
        """It."""
        return self.answer


TERM = ScoreTerm("best_fit")
WRONG: list[tuple[Any, str]] = [
    (None, r"policy Mine: plan\(\): found None, expected an OnlinePlan"),
    (TERM, r"policy Mine: plan\(\): found ScoreTerm"),
    (SharePlan, r"policy Mine: plan\(\): found the class SharePlan"),
    (OnlinePlan(TERM), "policy Mine: OnlinePlan: terms: found ScoreTerm"),  # type: ignore[arg-type]
    (OnlinePlan((TERM,), gpu_pick="bset"), "OnlinePlan: gpu_pick: found 'bset' .*, expected one of best"),
    (OnlinePlan((TERM,), queue="lifo"), "OnlinePlan: queue: found 'lifo'"),
    (OnlinePlan((ScoreTerm("bestfit"),)), "policy Mine: term 0: kernel: found 'bestfit'"),
    (OnlinePlan((ScoreTerm("best_fit", 0.5),)), "term 0: weight: found 0.5"),  # type: ignore[arg-type]
    (OnlinePlan((ScoreTerm("best_fit", 2**63),)), "term 0: weight: found 9223372036854775808"),
    (OnlinePlan((ScoreTerm("python"),)), "term 0: found kernel 'python', None, expected a scorer"),
    (OnlinePlan((ScoreTerm("pod_spread", normalise="min_max_0"),)), "normalise: found 'min_max_0', expected 'none'"),
]


@pytest.mark.parametrize(("answer", "text"), WRONG)
def test_a_wrong_plan_is_one_error(answer: Any, text: str) -> None:
    with pytest.raises(PolicyError, match=text):
        fs.simulate("uniform?nodes=1", "synth:openb?pods=2", Mine(answer))
    with pytest.raises(PolicyError, match=text):
        returned_plan(Mine(answer), "plan", answer, (OnlinePlan,))

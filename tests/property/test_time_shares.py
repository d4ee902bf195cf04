"""What every policy that is a program keeps, whatever the jobs: limits, repetition, and its memory as JSON."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastsim.engine.shares.plan import ALONE, Allocation, RoundPolicy, RoundView
from fastsim.policies import registry
from fastsim.policies.shares.strategy_proof import StrategyProof
from tests.rounds import excess, oracle, setting, view, views
from tests.strategies import scenarios_per_run


def rules() -> list[RoundPolicy]:
    """Every policy that is a program, with every combination of its modes and solutions."""
    made: list[RoundPolicy] = []
    for cls in registry.classes():
        solved = cls is StrategyProof or any(item.name == "solution" for item in fields(cls))
        if solved and cls.__module__.startswith("fastsim."):
            choices = {item.name: item.metadata["choices"] for item in fields(cls) if item.metadata.get("choices")}
            for mode in choices.pop("mode", ("",)):
                for solution in choices.get("solution", ("",)):
                    given_ = {name: value for name, value in (("mode", mode), ("solution", solution)) if value}
                    policy: Any = cls(**given_)
                    made.append(policy)
    return made


RULES = rules()


def same(one: Allocation, two: Allocation) -> bool:
    """Whether two allocations have the same bytes."""
    return all(
        getattr(one, name).tobytes() == getattr(two, name).tobytes() for name in ("first", "second", "share__rg")
    )


def test_there_are_policies() -> None:
    assert len(RULES) >= 20


@settings(max_examples=scenarios_per_run(300))
@given(views(sizes=(1, 2, 4)), st.sampled_from(RULES))
def test_limits_are_kept_and_answers_repeat(seen: RoundView, rule: RoundPolicy) -> None:
    plan = rule.begin(seen.setting)
    found, again = plan.allocator.allocate(seen), rule.begin(seen.setting).allocator.allocate(seen)
    assert found is not None and again is not None and same(found, again)
    # The bar of the recordings.
    assert excess(seen, found) < 1e-6 and found.share__rg.max() <= 1
    count = len(seen)
    assert found.first[:count].tolist() == seen.job_id.tolist() and set(found.second[:count].tolist()) == {ALONE}
    pairs = list(zip(found.first[count:].tolist(), found.second[count:].tolist(), strict=True))
    assert pairs == sorted(set(pairs)) and all(one < two for one, two in pairs)
    assert plan.pairs or not pairs


@settings(max_examples=scenarios_per_run(150))
@given(views(), st.sampled_from(RULES))
def test_a_policy_that_is_resumed_goes_on_as_it_would_have(seen: RoundView, rule: RoundPolicy) -> None:
    whole, first, second = (rule.begin(seen.setting).allocator for _ in range(3))
    later = replace(seen, now_s=seen.now_s + 300, steps_left=seen.steps_left * 0.5)
    whole.allocate(seen), first.allocate(seen)
    second.restore(json.loads(json.dumps(first.state())))
    one, two = whole.allocate(later), second.allocate(later)
    assert one is not None and two is not None and same(one, two)
    assert whole.state() == second.state()


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_no_jobs_and_jobs_that_run_nowhere(rule: RoundPolicy) -> None:
    where = setting(oracle([[0.0, 0.0], [1.0, 2.0]]), [1, 1])
    allocator = rule.begin(where).allocator
    assert allocator.allocate(view(where, [])) is None
    found = allocator.allocate(view(where, [0, 0]))
    assert found is not None and excess(view(where, [0, 0]), found) < 1e-6
    # Without heterogeneity nobody looks whether a job runs.
    assert found.share__rg.max() == 0 or getattr(rule, "mode", "") == "base"


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_one_job_with_room_has_all_its_time(rule: RoundPolicy) -> None:
    where = setting(oracle([[1.0, 2.0]]), [3, 3])
    found = rule.begin(where).allocator.allocate(view(where, [0]))
    assert found is not None
    # A bound is met by some of the time; the solver's centre is somewhere between that and all of it.
    assert 0.5 <= found.share__rg.sum() <= 1 + 1e-6
    assert np.isfinite(found.share__rg).all()

"""Parameters of the round policies: checked when made, written as a text that reads back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from fastsim.errors import PolicyError
from fastsim.policies import registry
from fastsim.policies.online.weighted_sum import Summand
from fastsim.policies.orders import Order
from fastsim.policies.round_policy import ShareRule
from fastsim.policies.shares.max_min_fairness import MaxMinFairness


@dataclass(frozen=True)
class Free(ShareRule):
    """A policy with a parameter that is any text."""

    words: str = field(default="", metadata=registry.about("anything"))


def test_the_text_form_reads_back() -> None:
    assert str(MaxMinFairness()) == "max_min_fairness"
    policy = MaxMinFairness(mode="base", solution="vertex")
    assert str(policy) == "max_min_fairness(mode=base, solution=vertex)"
    assert registry.parse(str(policy)) == policy
    assert str(Free(words="a: b")) == "Free(words='a: b')"


def test_a_value_that_is_no_choice_is_refused() -> None:
    with pytest.raises(PolicyError, match="parameter solution: found 'middle', expected one of centered, vertex"):
        MaxMinFairness(solution="middle")


def test_who_does_not_tell_models_apart_visits_them_in_random_order() -> None:
    assert [MaxMinFairness(mode=mode).visit for mode in ("base", "perf", "packed")] == [
        "shuffled",
        "fastest",
        "fastest",
    ]


def test_a_policy_that_is_not_registered_is_called_by_its_class() -> None:
    @dataclass(frozen=True)
    class Youngest(Order):
        key: ClassVar[tuple[str, ...]] = ("-arrival",)

    @dataclass(frozen=True)
    class Emptiest(Summand):
        step: int = 1

    assert str(Youngest()) == "Youngest" and str(Youngest(place=True)) == "Youngest(place=True)"
    assert str(Emptiest()) == "Emptiest" and str(Emptiest(step=2)) == "Emptiest(step=2)"

"""Descheduling steps as text."""

from __future__ import annotations

import pytest

from fastsim.errors import PolicyError, ScenarioError
from fastsim.policies.deschedule_text import deschedule_from


def test_a_step_has_a_policy_a_ratio_and_perhaps_a_time() -> None:
    after, during = deschedule_from("frag_one_pod:0.05"), deschedule_from("cos_sim:0.1@3600")
    assert (after.ratio, after.at_s) == (0.05, None)
    assert (during.ratio, during.at_s) == (0.1, 3600)
    assert deschedule_from(after) is after


@pytest.mark.parametrize("text", ["frag_one_pod", "frag_one_pod:x", "frag_one_pod:2", "frag_one_pod:0.1@-1"])
def test_a_step_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(ScenarioError, match="deschedule"):
        deschedule_from(text)


def test_an_unknown_policy_gets_a_suggestion() -> None:
    with pytest.raises(PolicyError, match="cos_sim"):
        deschedule_from("cos_sin:0.1")

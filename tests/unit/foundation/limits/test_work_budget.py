"""Tests of the budget of work: what is refused, in which words, and the setting that raises it."""

from __future__ import annotations

import math
import re

import pytest

from fastsim.errors import ScenarioError
from fastsim.foundation.limits.work_budget import CHOICE, Work, amount_text, factor, refuse_excess, remedy
from fastsim.reports.guides import guide


@pytest.mark.parametrize("work", list(Work))
def test_what_is_within_the_budget_begins(work: Work) -> None:
    refuse_excess("here", 0, work)
    refuse_excess("here", work.usual, work)


def test_what_exceeds_it_is_refused_in_one_line_with_the_setting_that_allows_it() -> None:
    with pytest.raises(ScenarioError) as refused:
        refuse_excess("cluster", 2_500_000, Work.NODES)
    assert str(refused.value) == (
        "cluster: found 2,500,000 nodes, expected at most 1,000,000 nodes; FASTSIM_BUDGET=3 allows it"
    )


@pytest.mark.parametrize("amount", [10**400, 1e300, math.inf])
def test_no_amount_is_too_large_for_the_message(amount: float) -> None:
    with pytest.raises(ScenarioError, match="FASTSIM_BUDGET multiplies what is allowed"):
        refuse_excess("workload", amount, Work.PODS)
    assert amount_text(1e300, Work.PODS) == "1e+300 pods or jobs"
    assert amount_text(10**400, Work.PODS) == "more than 1e308 pods or jobs"
    assert remedy(10, Work.NODES, "take fewer") == "take fewer, or FASTSIM_BUDGET=1 allows it"


def test_the_environment_raises_and_lowers_every_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHOICE, "3")
    refuse_excess("cluster", 2_500_000, Work.NODES)
    monkeypatch.setenv(CHOICE, "0.5")
    with pytest.raises(ScenarioError, match="at most 500,000 nodes"):
        refuse_excess("cluster", 600_000, Work.NODES)


@pytest.mark.parametrize("text", ["much", "0", "-1", "nan", "inf"])
def test_a_factor_that_is_none_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHOICE, text)
    with pytest.raises(ScenarioError, match="FASTSIM_BUDGET: found"):
        factor()


def test_the_guide_lists_every_budget() -> None:
    limits = guide("exactness").partition("\n## Limits\n")[2].partition("\n## ")[0]
    numbers = set(re.findall(r"\d[\d,]*\d", limits))
    assert {work.name for work in Work if f"{work.usual:,}" not in numbers} == set()

"""Series: runs that differ in their seeds only are one, and are named after what differs."""

from __future__ import annotations

from typing import Any

import pytest

from fastsim.engine.result import Result
from fastsim.reports.charts.series import distinct_names, seed_text, series_of


def run(seed: int = 0, **scenario: Any) -> Result:
    """A result with provenance alone."""
    known = {"policy": scenario.get("policy", "fgd"), "scenario": {**scenario, "seed": seed}, "options": {"seed": seed}}
    return Result({}, known, {})


def test_seeds_make_one_series() -> None:
    runs = [run(seed, policy=policy, workload=f"synth:openb?pods=9&seed={seed}&tune=1.3&tune_seed={seed}")
            for policy in ("fgd", "pwr") for seed in (1, 2, 3)]  # fmt: skip
    found = series_of(runs)
    assert [one.name for one in found] == ["fgd", "pwr"]
    assert [[seed_text(result) for result in one.runs] for one in found] == [["1", "2", "3"]] * 2


def test_a_name_tells_what_differs() -> None:
    found = series_of([run(policy="las", round_s=60.0), run(policy="las", round_s=360.0), run(policy="las")])
    assert [one.name for one in found] == ["round_s=60.0", "round_s=360.0", "las"]
    assert series_of([run(policy="fgd"), run(7, policy="fgd")])[0].name == "fgd"


@pytest.mark.parametrize(
    ("first", "second"),
    [("synth:openb?pods=9&seed=1", "synth:openb?pods=9&seed=22"), ("synth:openb?seed=1&pods=9", "synth:openb?pods=9"),
     ("synth:openb?seed=1", "synth:openb")],
)  # fmt: skip
def test_where_a_seed_stands_makes_no_difference(first: str, second: str) -> None:
    assert len(series_of([run(workload=first), run(workload=second)])) == 1


def test_given_names_come_first_and_equal_ones_are_one() -> None:
    found = series_of([run(1), run(2), run(3)], ["a", "b", "a"])
    assert [(one.name, len(one.runs)) for one in found] == [("a", 2), ("b", 1)]


def test_runs_without_texts_are_told_apart_by_what_they_ran_on() -> None:
    known = [{"policy": "fgd", "cluster": {"sha256": "c" * 64}, "workload": {"sha256": text * 64}} for text in "ab"]
    found = series_of([Result({}, item, {}) for item in known])
    assert [one.name for one in found] == ["a" * 8, "b" * 8]
    assert seed_text(found[0].runs[0]) == "?"


@pytest.mark.parametrize(
    ("names", "expected"),
    [(["a", "a"], ["a", "a (2)"]), (["a", "a", "a (2)"], ["a", "a (3)", "a (2)"]),
     (["a (2)", "a", "a", "a"], ["a (2)", "a", "a (3)", "a (4)"]), ([], [])],
)  # fmt: skip
def test_a_number_makes_a_name_that_no_other_has(names: list[str], expected: list[str]) -> None:
    assert distinct_names(names) == expected

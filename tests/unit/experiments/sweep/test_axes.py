"""Axes: products, lists that go together, and all mistakes at once."""

from __future__ import annotations

from typing import Any

import pytest

from fastsim.errors import InputError, ScenarioError
from fastsim.experiments.sweep.axes import Mistakes, axes_of, choices_of, cutoffs_of, is_cut, located

KEYS = ("cluster", "policy", "jobs", "seed")


def listed(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Values of each combination."""
    mistakes = Mistakes()
    axes, _ = axes_of(values, KEYS, "x", mistakes)
    mistakes.check("x")
    return [choice.values for choice in choices_of(axes)]


def test_the_last_key_varies_fastest() -> None:
    found = listed({"seed": [0, 1], "policy": ["a", "b"], "cluster": "c"})
    assert found == [{"policy": p, "seed": s} for p in "ab" for s in (0, 1)]
    assert listed({"cluster": "c"}) == [{}]


def test_lists_that_go_together() -> None:
    found = listed({"zip": [{"cluster": ["c", "d"], "jobs": [1, 2]}], "policy": ["p", "q"]})
    assert found == [{"cluster": c, "jobs": n, "policy": p} for c, n in (("c", 1), ("d", 2)) for p in "pq"]
    assert len(listed({"zip": [{"cluster": ["c", "d"]}, {"jobs": [1, 2], "seed": [0, 1]}]})) == 4


def test_choices_know_where_they_stand() -> None:
    axes, fixed = axes_of({"zip": {"seed": [7, 8]}, "policy": ["a"], "jobs": 3}, KEYS, "x", Mistakes())
    assert fixed == {"jobs": 3}
    assert [choice.paths for choice in choices_of(axes)] == [
        {"policy": "policy[0]", "seed": f"zip[0].seed[{k}]"} for k in (0, 1)
    ]


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"zip": [{"jobs": [1, 2], "seed": [1]}]}, r"x: zip\[0\]: found 2 of jobs, 1 of seed, expected lists of one"),
        ({"zip": [{"jobs": []}]}, "lists of one length, not empty"),
        ({"zip": [{"moon": [1]}]}, r"x: zip\[0\]\.moon: found an unknown key"),
        ({"zip": ["a"]}, r"x: zip\[0\]: found 'a', expected a table of lists"),
        ({"zip": [{"seed": [1]}], "seed": 4}, "x: seed: found given twice"),
        ({"zip": [{"seed": [1]}, {"seed": [2]}]}, "x: seed: found given twice"),
    ],
)
def test_mistakes(values: dict[str, Any], match: str) -> None:
    with pytest.raises(ScenarioError, match=match):
        listed(values)


def test_all_mistakes_are_told() -> None:
    with pytest.raises(
        ScenarioError, match=r"x: found 2 mistakes, expected values that runs take; x: zip\[0\]: .*; x: policy"
    ):
        listed({"zip": [3], "policy": []})


def test_cutoffs() -> None:
    rates = cutoffs_of({"4:4:4": {"fifo": 2}}, "x")
    chosen = {"cluster": "gavel:4:4:4?per_server=4:4:4", "policy": "fifo"}
    assert [is_cut(chosen | {"rate_per_hour": rate}, rates) for rate in (1.9, 2.0)] == [False, True]
    assert not is_cut(chosen, rates) and not is_cut(chosen | {"policy": "las", "rate_per_hour": 9}, rates)
    assert not is_cut(chosen | {"rate_per_hour": "many"}, rates)  # the run itself names it


def test_a_mistake_gets_its_place() -> None:
    error = located(InputError("policy 'x'", "an unknown name", "one of a"), "f.toml", "policy[1]", "policy")
    assert str(error) == "f.toml: policy[1] 'x': found an unknown name, expected one of a"
    error = located(InputError("synth.jobs", "0", "1"), "f.toml", "workload", "workload")
    assert str(error) == "f.toml: workload: synth.jobs: found 0, expected 1"

"""Answers of scorers that are no points of nodes: one error with the scorer and what it returned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastsim as fs
from fastsim.errors import PolicyError

WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "nothing": (lambda n: None, "found None"),
    "a number": (lambda n: 1, r"found an array of int64 with shape \(\)"),
    "too few": (lambda n: n.cpu_free[:1], r"found an array of int64 with shape \(1,\)"),
    "two axes": (lambda n: n.cpu_free[:, None], r"found an array of int64 with shape \(3, 1\)"),
    "ragged": (lambda n: [[1], [1, 2], 3], "found .*(list)"),
    "words": (lambda n: ["a"] * 3, "found an array of <U1"),
    "objects": (lambda n: np.array([None] * 3), "found an array of object"),
    "complex": (lambda n: n.cpu_free * 1j, "found an array of complex128"),
    "masked": (lambda n: np.ma.masked_less(np.arange(3), 1), "found an array with masked values"),
    "wide": (lambda n: np.array([2**64 - 1] * 3, np.uint64), "found points up to 18446744073709551615"),
    "no numbers": (lambda n: n.cpu_free * np.nan, "found nan for the node at position 0"),
    "a text": (lambda n: "abc", "found an array of <U3 with shape"),
    "a generator": (lambda n: (x for x in range(3)), "found a generator"),
}
"""Scorers of three nodes, and what is found."""


@pytest.mark.parametrize("case", WRONG)
def test_points_that_are_none_are_refused(case: str) -> None:
    answer, found = WRONG[case]
    scorer = fs.policies.PythonScorer(lambda nodes, pod: answer(nodes))
    with pytest.raises(PolicyError, match=rf"scorer .*: {found}.*, expected "):
        fs.simulate("uniform?nodes=3&gpu=T4&gpus=1", "synth:openb?pods=2", scorer)


@pytest.mark.parametrize(
    "points", [[1, 2, 3], (1.5, 2, 3), np.array([True, False, True]), np.arange(3, dtype=np.uint64)]
)
def test_any_sequence_of_numbers_is_points(points: Any) -> None:
    scorer = fs.policies.PythonScorer(lambda nodes, pod: points)
    assert fs.simulate("uniform?nodes=3&gpu=T4&gpus=1", "synth:openb?pods=2", scorer).summary["pods"].item() == 2

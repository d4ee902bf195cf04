"""Conditions: what an expression means for a label, and which rows are refused."""

from __future__ import annotations

import pytest

from fastsim.hardware.node_constraints import (
    NONE,
    ONE_OF,
    Conditions,
    Constraint,
    conditions_of,
    conjunction,
    conjunction_text,
    constraint_fault,
    eligible,
    further,
    holds,
)

LABELS = {"name": "n0", "zone": "a", "rack": "12", "size": "big"}


@pytest.mark.parametrize(
    ("key", "op", "values", "expected"),
    [
        ("zone", "In", ("a", "b"), True), ("zone", "In", ("b",), False), ("none", "In", ("a",), False),
        ("zone", "NotIn", ("a",), False), ("zone", "NotIn", ("b",), True), ("none", "NotIn", ("a",), True),
        ("zone", "Exists", (), True), ("none", "Exists", (), False),
        ("zone", "DoesNotExist", (), False), ("none", "DoesNotExist", (), True),
        ("rack", "Gt", ("9",), True), ("rack", "Gt", ("12",), False), ("rack", "Lt", ("13",), True),
        ("rack", "Lt", ("-1",), False), ("size", "Gt", ("0",), False), ("none", "Lt", ("9",), False),
    ],
)  # fmt: skip
def test_expressions(key: str, op: str, values: tuple[str, ...], expected: bool) -> None:
    assert holds(Constraint(key, op, values), LABELS) is expected


def test_alternatives_hold_if_all_expressions_of_one_do() -> None:
    here, far = Constraint("zone", "In", ("a",)), Constraint("rack", "Gt", ("20",))
    for terms, expected in ([[here, far], [here]], True), ([[here, far], [far]], False), ([[far], [here]], True):
        assert holds(Constraint("x", ONE_OF, tuple(map(conjunction_text, terms))), LABELS) is expected
    assert conjunction(conjunction_text([here, far])) == (here, far)


def test_all_expressions_and_the_pin_must_hold() -> None:
    near, far = Constraint("zone", "In", ("a",)), Constraint("zone", "In", ("b",))
    assert eligible(NONE, LABELS) and eligible(Conditions(constraints=(near,), pinned_node="n0"), LABELS)
    assert not eligible(Conditions(constraints=(near, far)), LABELS)
    assert not eligible(Conditions(pinned_node="n1"), LABELS)
    assert eligible(Conditions(constraints=(Constraint("name", "In", ("n0",)),)), LABELS)


def test_a_row_without_further_requests_has_no_conditions() -> None:
    row = {"num_gpu": 0, "gpu_memory_mib": 8, "extra_resources": [("nic", 0)], "group": "g", "max_per_node": None}
    assert conditions_of(row) == NONE
    assert conditions_of({"num_gpu": 1, "group": None, "max_per_node": 2}) == NONE


def test_instances_are_further_resources() -> None:
    names = [("nvidia.com/mig-1g.5gb", 2), ("mig-1g.5gb", 1), ("nic", 1)]
    row = {"num_gpu": 0, "extra_resources": names, "mig": "2g.10gb+1g.5gb"}
    assert conditions_of(row).extra_resources == (("mig-1g.5gb", 4), ("mig-2g.10gb", 1), ("nic", 1))
    assert further(None, None) == ()


def test_a_row_with_everything() -> None:
    row = {
        "num_gpu": 1, "gpu_memory_mib": 8, "extra_resources": [("nic", 2), ("fpga", 1)], "pinned_node": "n0",
        "constraints": [{"key": "zone", "op": "Exists", "values": None}], "group": "g", "max_per_node": 0,
    }  # fmt: skip
    expected = Conditions(8, (("fpga", 1), ("nic", 2)), "n0", (Constraint("zone", "Exists"),), "g", 0)
    assert conditions_of(row) == expected


@pytest.mark.parametrize(
    ("key", "op", "values", "expected"),
    [
        ("zone", "In", ["a"], None), ("rack", "Gt", ["-3"], None), ("zone", "Exists", None, None),
        ("", "In", ["a"], "a key"), ("zone", "in", ["a"], "an operator of In, NotIn"),
        ("zone", "In", [], "one value or more for In"), ("zone", "NotIn", None, "one value or more for NotIn"),
        ("rack", "Lt", ["1", "2"], "one whole number for Lt"), ("rack", "Gt", ["1.5"], "one whole number for Gt"),
        ("zone", "In", [None], "values that are texts"),
        ("x", "OneOf", ['[["zone", "In", ["a"]]]'], None), ("x", "OneOf", ["zone"], "for OneOf lists of key"),
        ("x", "OneOf", ['[["zone", "OneOf", ["a"]]]'], "for OneOf lists"), ("x", "OneOf", ["[[1, 2, []]]"], "for"),
        ("x", "OneOf", ['[["zone", "In", []]]'], "one value or more for In"),
    ],
)  # fmt: skip
def test_expressions_that_mean_nothing(key: str, op: str, values: list[str], expected: str | None) -> None:
    fault = constraint_fault({"key": key, "op": op, "values": values})
    assert fault is expected if expected is None else str(fault).startswith(expected)

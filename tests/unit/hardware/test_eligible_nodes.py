"""Marks of all nodes: what ``eligible`` says of each."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from fastsim.hardware.eligible_nodes import EligibleNodes
from fastsim.hardware.node_constraints import ONE_OF, Conditions, Constraint, conjunction_text, eligible

LABELS = [{"name": f"n{number}", "zone": "ab"[number % 2], **({"gpu": str(number)} if number else {})}
          for number in range(4)]  # fmt: skip
NAMED = Constraint("name", "In", ("n1", "n3", "n9"))
CONSTRAINTS = [
    NAMED, Constraint("name", "NotIn", ("n1",)), Constraint("zone", "In", ("b",)), Constraint("gpu", "Exists"),
    Constraint("gpu", "Gt", ("1",)), Constraint("any", ONE_OF, (conjunction_text([NAMED]),)),
]  # fmt: skip
CONDITIONS = st.builds(
    Conditions, constraints=st.lists(st.sampled_from(CONSTRAINTS), max_size=3).map(tuple),
    pinned_node=st.sampled_from([None, None, "n0", "n3", "n9"]),
)  # fmt: skip


@given(st.lists(CONDITIONS, max_size=5))
def test_marks_are_those_of_each_node(listed: list[Conditions]) -> None:
    nodes = EligibleNodes(LABELS)
    for conditions in listed:
        assert nodes.marks(conditions).tolist() == [eligible(conditions, own) for own in LABELS]

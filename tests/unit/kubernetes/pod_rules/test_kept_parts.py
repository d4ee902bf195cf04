"""Values of equal parts are made once; their notices count for each pod."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

from fastsim.kubernetes.pod_rules.kept_parts import PAUSE, KeptParts, SharedParts
from tests.objects import pod


def test_a_value_is_made_once_and_its_notices_count_each_time() -> None:
    kept, notices = KeptParts(), Counter[str]()
    made = []

    def make(noticed: Counter[str]) -> list[int]:
        noticed["seen"] += 1
        made.append(1)
        return [len(made)]

    first = kept.of("request", lambda: {"a": [1]}, make, notices)
    assert kept.of("request", lambda: {"a": [1]}, make, notices) is first
    assert kept.of("request", lambda: {"a": [1]}, make) is first and made == [1] and notices == {"seen": 2}
    assert kept.of("request", lambda: {"a": [True]}, make) == [2] and kept.of("nodes", lambda: {"a": [1]}, make) == [3]


def test_parts_of_the_same_objects_are_looked_at_once() -> None:
    kept, notices = KeptParts(), Counter[str]()
    whole, other = {"a": [1], "b": 2}, {"a": [1], "b": 3}
    looked = []

    def parts() -> list[int]:
        looked.append(1)
        return [1]

    def make(noticed: Counter[str]) -> list[int]:
        noticed["seen"] += 1
        return [7]

    first = kept.of("request", parts, make, notices, [whole])
    assert kept.of("request", parts, make, notices, [whole]) is first and looked == [1] and notices == {"seen": 2}
    assert kept.of("request", parts, make, notices, [other]) is first and looked == [1, 1]
    assert kept.of("nodes", parts, make, whole=[whole]) is not first


def test_parts_that_are_no_json_are_read_each_time() -> None:
    kept = KeptParts()
    assert kept.of("request", object, lambda _: [1]) is not kept.of("request", object, lambda _: [1])


def test_lists_are_joined_once() -> None:
    kept, own = KeptParts(), [1]
    both = kept.joined(own, [])
    assert both == [1] and kept.joined(own, []) == [1] and kept.joined(None, []) is None
    assert kept.same((1,), lambda: [2]) is kept.same((1,), lambda: [3])


def pods(*numbers: int) -> list[dict[str, Any]]:
    """Pods whose names and volumes differ, and whose labels, containers and tolerations do not."""
    return [
        pod(f"p{n}", {"cpu": 1}, labels={"app": "a"}, volumes=[{"name": f"v{n}"}], tolerations=[{"key": "k"}],
            status={"phase": "Pending"}) for n in numbers
    ]  # fmt: skip


def test_equal_parts_are_one_object_and_the_pods_stay_what_they_are() -> None:
    shared, items = SharedParts(), pods(1, 2, 3, 4, 5, 6)
    before = copy.deepcopy(items)
    shared.share(items[:3])
    shared.share(items[3:])
    assert items == before
    first, last = items[0], items[5]
    assert first["spec"]["containers"] is last["spec"]["containers"]
    assert first["metadata"]["labels"] is last["metadata"]["labels"]
    assert first["spec"]["tolerations"] is last["spec"]["tolerations"] and first["spec"] is not last["spec"]


def test_equal_numbers_of_two_types_are_not_shared() -> None:
    one, true = ({"spec": {"priority": [number]}, "metadata": {}} for number in (1, True))
    SharedParts().share([one, true])
    assert one["spec"]["priority"][0] is not true["spec"]["priority"][0]


def test_parts_that_differ_are_left_out_for_a_while() -> None:
    shared = SharedParts()
    shared.share(pods(*range(20)))
    for _ in range(PAUSE - 1):
        again = pods(1, 1)
        shared.share(again)
        assert again[0]["spec"]["volumes"] is not again[1]["spec"]["volumes"]
    again = pods(1, 1)
    shared.share(again)
    shared.share(again := pods(1, 1))
    assert again[0]["spec"]["volumes"] is again[1]["spec"]["volumes"]

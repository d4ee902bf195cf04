"""Values of equal parts are made once; their notices count for each pod."""

from __future__ import annotations

from collections import Counter

from fastsim.kubernetes.pod_rules.kept_parts import KeptParts


def test_a_value_is_made_once_and_its_notices_count_each_time() -> None:
    kept, notices = KeptParts(), Counter[str]()
    made = []

    def make(noticed: Counter[str]) -> list[int]:
        noticed["seen"] += 1
        made.append(1)
        return [len(made)]

    first = kept.of("request", {"a": [1]}, make, notices)
    assert kept.of("request", {"a": [1]}, make, notices) is first
    assert kept.of("request", {"a": [1]}, make) is first and made == [1] and notices == {"seen": 2}
    assert kept.of("request", {"a": [True]}, make) == [2] and kept.of("nodes", {"a": [1]}, make) == [3]


def test_parts_that_are_no_json_are_read_each_time() -> None:
    kept = KeptParts()
    assert kept.of("request", object(), lambda _: [1]) is not kept.of("request", object(), lambda _: [1])


def test_lists_are_joined_once() -> None:
    kept, own = KeptParts(), [1]
    both = kept.joined(own, [])
    assert both == [1] and kept.joined(own, []) == [1] and kept.joined(None, []) is None
    assert kept.same((1,), lambda: [2]) is kept.same((1,), lambda: [3])

"""Declared memory is charged in full and given back."""

from __future__ import annotations

import pytest

from fastsim.policies.monitored.declared_memory import Charges


@pytest.mark.parametrize(("one_release", "first"), [(False, ["a", "c"]), (True, ["a"])])
def test_pods_are_charged_and_let_go(one_release: bool, first: list[str]) -> None:
    charges = Charges(100, one_release)
    for pod, request_mib in (("a", 60), ("b", 30), ("c", 50)):
        charges.place(pod, request_mib)
    assert (charges.available_mib, charges.running) == (-40, ["a", "b", "c"])
    assert charges.release(lambda pod: pod != "b") == first
    assert charges.release(lambda pod: pod != "b") == (["c"] if one_release else [])
    assert (charges.available_mib, charges.running) == (70, ["b"])
    assert charges.release(lambda pod: False) == []

"""Slots of GPUs: one pod at a time, or units of declared memory."""

from __future__ import annotations

import pytest

from fastsim.errors import PolicyError
from fastsim.policies.monitored.exclusive_and_gpushare import SlotScheduler
from fastsim.policies.registry import parse
from tests.unit.policies.monitored.test_knots import Readings


def test_units_are_packed_and_who_does_not_fit_lets_others_pass() -> None:
    view, asked = Readings(0, 0), SlotScheduler(100, [1000, 500])
    for pod, request in enumerate((450, 700, 401, 100)):
        asked.arrive(pod, request)
    placed = [(one.pod, one.gpu) for one in asked.step(3.0, view).bindings]
    assert placed == [(0, 1), (1, 0), (3, 0)]
    view.done = {0}
    assert [(one.pod, one.gpu, one.at_s) for one in asked.step(4.0, view).bindings] == [(2, 1, 4.0)]


def test_one_pod_at_a_time() -> None:
    view, asked = Readings(0, 0), SlotScheduler(0, [1000, 500])
    for pod in range(3):
        asked.arrive(pod, 9999)
    assert [(one.pod, one.gpu) for one in asked.step(0.0, view).bindings] == [(0, 0), (1, 1)]
    view.done = {1}
    assert [(one.pod, one.gpu) for one in asked.step(0.0, view).bindings] == [(2, 1)]


def test_as_policies() -> None:
    assert [str(parse(text)) for text in ("exclusive", "gpushare", "gpushare(unit_mib=1)")] == [
        "exclusive", "gpushare", "gpushare(unit_mib=1)"
    ]  # fmt: skip
    with pytest.raises(PolicyError, match="unit_mib"):
        parse("gpushare(unit_mib=0)")

"""Orders as policies: their keys, their texts, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fastsim.engine.orders.plan import OrderPlan
from fastsim.errors import PolicyError
from fastsim.policies import registry
from fastsim.policies.orders import LeastAttainedService, Order, OwnOrder, Tiresias
from tests.views import setting

KEYS = {
    "fcfs": ("arrival",),
    "srtf": ("-starving", "remaining", "arrival"),
    "srsf": ("-starving", "service_left", "arrival"),
    "las": ("-starving", "service", "arrival"),
    "las(per_gpu=False)": ("-starving", "attained", "arrival"),
    "tiresias": ("-starving", "level", "arrival"),
    "ftf": ("-starving", "-finish_ratio", "arrival"),
    "ftf(ftf_smallest_first=True)": ("-starving", "finish_ratio", "arrival"),
    "round_robin": ("-starving", "last", "arrival"),
    "drf": ("-starving", "dominant", "arrival"),
    "tetris": ("-starving", "packing", "arrival"),
    "edf": ("-starving", "column(deadline_s)", "arrival"),
}


def plan(text: str) -> OrderPlan:
    policy: Any = registry.parse(text)
    found: OrderPlan = policy.begin(setting([1], [[1]]))
    return found


@pytest.mark.parametrize("text", KEYS)
def test_an_order_is_a_key(text: str) -> None:
    assert plan(text).order == KEYS[text]
    assert str(registry.parse(text)) == text


@pytest.mark.parametrize("name", sorted({text.partition("(")[0] for text in KEYS}))
def test_descriptions_are_complete(name: str) -> None:
    described = registry.describe(name)
    assert described.title.endswith(".") and "key[j] =" in described.text and described.engine == "orders"
    assert all(parameter.text for parameter in described.parameters)
    assert described.citation.startswith("@")


def test_a_user_writes_an_order() -> None:
    text = "order(key='-column(value), remaining')"
    assert plan(text).order == ("-starving", "-column(value)", "remaining", "arrival")
    assert str(registry.parse(text)) == text and plan("order").order == ("-starving", "arrival")
    assert plan("order(key='gpus,arrival,-column(b)') + tune").order == ("-starving", "gpus", "arrival", "-column(b)")
    described = registry.describe("order")
    assert described.engine == "orders" and "key[j] =" in described.text


@pytest.mark.parametrize(
    ("text", "mechanism", "place"),
    [("las", "fair", False), ("las + tune", "tune", False), ("srtf+greedy+place", "greedy", True),
     ("drf + place + opt", "opt", True), ("fifo + tune", "tune", False), ("fcfs + fair", "fair", False)],
)  # fmt: skip
def test_mechanisms_are_added(text: str, mechanism: str, place: bool) -> None:
    found = plan(text)
    assert (found.mechanism, found.place) == (mechanism, place)
    assert (found.chooser is not None) == (mechanism == "opt")
    assert registry.parse(str(registry.parse(text))) == registry.parse(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("las + tune + greedy", "a second mechanism, greedy"),
        ("fgd + tune", "'tune' added to fgd, expected an order of jobs before it"),
        ("max_min_fairness + place", "expected an order of jobs before it, such as las . tune"),
        ("fifo(mode=perf) + tune", "expected fifo . tune, without parameters"),
        ("las(mechanism=half)", "parameter mechanism: found 'half'"),
        ("las(starving_h=0)", "policy las, parameter starving_h: found 0, expected hours above 0"),
        ("las(admit=0)", "policy las, parameter admit: found 0, expected a number above 0"),
        ("tiresias(first_h=0)", "parameter first_h: found 0, expected a number above 0"),
        ("tiresias(queues=0)", "parameter queues: found 0"),
        ("tiresias(factor=1)", "parameter factor: found 1, expected a number above 1"),
        ("order(key='age')", r"policy order, parameter key: found 'age', expected 1 to 3 of .*column\(age\)"),
        ("order(key='gpus,arrival,last,weight')", "parameter key: found 4 terms, expected 1 to 3 of arrival, starving"),
        ("order(key='')", "parameter key: found ''"),
        ("order(key=3)", "parameter key: found 3, expected a word or a quoted text"),
        ("las(place=2)", "parameter place: found 2, expected True or False"),
    ],
)
def test_nonsense_is_refused(text: str, words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        registry.parse(text)


def test_queues_of_tiresias_end_at_powers() -> None:
    assert Tiresias(queues=3, first_h=2.0, factor=5.0).level_s == (7200.0, 36_000.0)
    assert Tiresias(queues=1).level_s == ()


def test_the_switch_of_the_original_makes_las_narrow() -> None:
    assert LeastAttainedService(las_serves_few=True).narrow and not Order().narrow


def test_limits_may_be_parts_of_an_hour_and_of_the_cluster() -> None:
    half = plan("las(starving_h=0.5, admit=0.25)")
    assert (half.starving_s, half.admit) == (1800.0, 0.25)
    assert Tiresias(first_h=0.5).level_s == (1800.0,)
    assert plan("las").starving_s == 3_600_000.0  # 1000 h
    assert Tiresias().level_s == (3600.0,)


@pytest.mark.parametrize("wrong", [True, "many", math.nan])
@pytest.mark.parametrize("name", ["starving_h", "admit", "first_h", "factor", "queues"])
def test_a_limit_is_a_number(name: str, wrong: Any) -> None:
    with pytest.raises(PolicyError, match=f"parameter {name}: found"):
        Tiresias(**{name: wrong})


def test_a_key_of_an_object_is_a_text() -> None:
    wrong: Any = ("gpus",)
    with pytest.raises(PolicyError, match=r"parameter key: found .*gpus.*, expected 1 to 3 of arrival"):
        OwnOrder(key=wrong)


def test_an_order_that_is_not_registered_has_the_name_of_its_class() -> None:
    class Widest(Order):
        key = ("-gpus", "arrival")

    assert str(Widest()) == "Widest" and str(Widest(starving_h=2.0)) == "Widest(starving_h=2.0)"

"""Numbers of requests that the free devices of a node satisfy."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from fastsim.kubernetes.devices.device_allocation import (
    EXCLUSIVE,
    Bundle,
    Devices,
    FreeDevices,
    Pick,
    SharedAttribute,
    Whole,
)  # fmt: skip
from fastsim.kubernetes.devices.device_expressions import Domains
from fastsim.kubernetes.devices.resource_slices import PublishedDevice

KEY = ("d", "a", "gpu", "slices")


def part(name: str, takes: int = 0, **attributes: Any) -> PublishedDevice:
    seen = {"driver": "d", "attributes": Domains({"d": attributes}), "capacity": Domains()}
    return PublishedDevice(("d", "a", name), "a", seen, consumes=((KEY, Fraction(takes)),) if takes else ())


def free(*devices: PublishedDevice, slices: int = 7) -> FreeDevices:
    return FreeDevices(devices, {KEY: Fraction(slices)})


def ids(*names: str) -> Devices:
    return frozenset(("d", "a", name) for name in names)


def test_devices_are_counted_while_they_are_free() -> None:
    rest = free(part("x"), part("y"), part("z"))
    assert rest.amount(Pick(ids("x", "y", "elsewhere"))) == 2 and rest.amount(Whole(ids("x", "y"))) == EXCLUSIVE
    rest.take(part("x"))
    assert rest.amount(Pick(ids("x", "y"))) == 1 and rest.amount(Whole(ids("x", "y"))) == EXCLUSIVE - 1
    assert rest.amount(Whole(ids("elsewhere"))) == 0


def test_devices_with_counters_exclude_each_other() -> None:
    """Counters that a device takes are not there for others: a whole GPU of 7 slices, halves of 3, singles of 1."""
    listed = [part("whole", 7), part("h0", 3), part("h1", 3), *(part(f"s{n}", 1) for n in range(7))]
    rest = free(*listed)
    singles, halves = Pick(ids(*(f"s{n}" for n in range(7)))), Pick(ids("h0", "h1"))
    assert (rest.amount(singles), rest.amount(halves), rest.amount(Pick(ids("whole")))) == (7, 2, 1)
    assert rest.displaced(listed[0], rest.picked(singles)) == 7 and rest.displaced(listed[1], rest.picked(singles)) == 3
    assert rest.displaced(listed[3], rest.picked(singles)) == 1 and rest.displaced(listed[3], rest.picked(halves)) == 0
    rest.take(listed[1])
    assert (rest.amount(singles), rest.amount(halves), rest.amount(Pick(ids("whole")))) == (4, 1, 0)


def bundle(*requests: Any, key: str = "root", distinct: bool = False) -> Bundle:
    every = frozenset((number, 0) for number in range(len(requests)))
    return Bundle(tuple((one,) for one in requests), (SharedAttribute(key, distinct, every),))


def test_bundles_share_an_attribute() -> None:
    """matchAttribute: all devices have the attribute, with one value; 3 and 5 GPUs of two roots are 1 and 2 pairs."""
    names = [f"g{n}" for n in range(8)]
    listed = [part(name, root="r0" if n < 3 else "r1") for n, name in enumerate(names)]
    rest = free(*listed, part("bare"))
    assert rest.amount(bundle((ids(*names, "bare"), 2))) == 3 and rest.amount(bundle((ids(*names), 5))) == 1
    assert rest.amount(bundle((ids(*names), 6))) == 0 and rest.amount(bundle((ids("bare"), 1))) == 0


def test_bundles_of_two_kinds_stand_together() -> None:
    listed = [part("g0", root=1), part("g1", root=1), part("g2", root=2), part("n0", root=1), part("n1", root="2")]
    rest = free(*listed)
    assert rest.amount(bundle((ids("g0", "g1", "g2"), 1), (ids("n0", "n1"), 1))) == 1


def test_distinct_values_are_taken_from_the_most_frequent() -> None:
    listed = [part(f"g{n}", root=root) for n, root in enumerate([0, 0, 1, 2])]
    assert free(*listed).amount(bundle((ids("g0", "g1", "g2", "g3"), 2), distinct=True)) == 2


def test_alternatives_are_tried_in_their_order() -> None:
    either = Bundle((((ids("x"), 1), (ids("y", "z"), 2)),), ())
    rest = free(part("x"), part("y"), part("z"))
    assert [one.identity[2] for one in rest.allocated(either) or ()] == ["x"] and rest.amount(either) == 2


def test_a_search_that_is_too_long_finds_nothing() -> None:
    """20 devices, of which no 8 have four different pairs of values, are not searched for ever."""
    listed = [part(f"g{n}", root=n % 7) for n in range(20)]
    every = ids(*(f"g{n}" for n in range(20)))
    assert free(*listed).amount(bundle((every, 8), distinct=True)) == 0

"""Requests for devices as further resources: names, order, amounts."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fastsim.kubernetes.devices.device_allocation import EXCLUSIVE
from fastsim.kubernetes.devices.device_demands import DeviceResources, Supply
from fastsim.kubernetes.devices.device_requests import Classes, claim_spec
from fastsim.kubernetes.devices.resource_slices import published
from tests.objects import claim, device, device_class, manifest, request, resource_slice

DOMAIN = "device.attributes['d.example.com']"


def further(nodes: dict[str, list[dict[str, Any]]], *claims: dict[str, Any]) -> tuple[list[Counter[str]], Any]:
    """What each claim takes, and what each node offers."""
    slices = [resource_slice(name, *listed, driver="d.example.com") for name, listed in nodes.items()]
    found = published([manifest(item) for item in slices], [], [{"name": name} for name in nodes], Counter())
    supply = Supply(found, Classes([manifest(device_class("d", "true"))]))
    asked = [supply.asked(claim_spec(item["spec"], "claim")) for item in claims]
    resources = DeviceResources(supply, asked)
    offered = {name: resources.offered(supply.free(name)) for name in nodes}
    return [resources.taken(one) for one in asked], offered


def parts(*models: str) -> list[dict[str, Any]]:
    return [device(f"d{number}", attributes={"model": model}) for number, model in enumerate(models)]


def asking(text: str = "true", **more: Any) -> dict[str, Any]:
    return claim("c", request("r", "d", text, **more))


def test_requests_that_mean_the_same_devices_share_a_resource() -> None:
    """On nodes of one model a request for the model and one for any device are the same."""
    taken, offered = further({"a": parts("x", "x")}, asking(), asking(f"{DOMAIN}.model == 'x'", count=2))
    assert taken == [{"devices:d": 1}, {"devices:d": 2}] and offered == {"a": {"devices:d": 2}}


def test_a_smaller_set_takes_of_the_larger_ones() -> None:
    taken, offered = further({"a": parts("x", "y", "y")}, asking(), asking(f"{DOMAIN}.model == 'x'"))
    assert taken == [{"devices:d:2": 1}, {"devices:d:1": 1, "devices:d:2": 1}]
    assert offered == {"a": {"devices:d:1": 1, "devices:d:2": 3}}


def test_sets_apart_take_nothing_of_each_other() -> None:
    taken, _ = further({"a": parts("x", "y")}, asking(f"{DOMAIN}.model == 'y'"), asking(f"{DOMAIN}.model == 'x'"))
    assert [len(one) for one in taken] == [1, 1]


def test_all_devices_are_a_number_where_nodes_are_alike() -> None:
    taken, offered = further({"a": parts("x", "x"), "b": parts("x", "x")}, asking(allocationMode="All"), asking())
    assert taken == [{"devices:d": 2}, {"devices:d": 1}]
    taken, offered = further({"a": parts("x", "x"), "b": parts("x")}, asking(allocationMode="All"), asking())
    assert taken[0] == {"devices:d:1": EXCLUSIVE} or taken[0] == {"devices:d:2": EXCLUSIVE}
    [name] = taken[0]
    assert taken[1][name] == 1 and {one[name] for one in offered.values()} == {EXCLUSIVE}

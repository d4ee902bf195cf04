"""Requests of claims and classes: what is read, what is meant, what is refused."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from fastsim.kubernetes.devices.device_requests import (
    ALL,
    Alternative,
    Classes,
    DeviceConstraint,
    DeviceRequest,
    UnknownRequest,
    claim_spec,
    of_resource,
    tolerated,
)  # fmt: skip
from fastsim.kubernetes.devices.resource_slices import published
from tests.objects import claim, device, device_class, gpu, manifest, request, resource_slice


def spec(*requests: dict[str, Any], **devices: Any) -> Any:
    return claim_spec(claim("c", *requests, **devices)["spec"], "claim c")


def meant(asked: Alternative, *devices: dict[str, Any], classes: Any = None) -> list[str]:
    found = published([manifest(resource_slice("a", *devices))], [], [{"name": "a"}], Counter())
    listed = Classes([manifest(item) for item in classes or [device_class()]])
    return [one.identity[2] for one in listed.meant(asked, found.devices)]


def test_the_default_is_one_device() -> None:
    """Without allocationMode it is ExactCount, and without count it is one."""
    assert spec(request()).requests == (DeviceRequest("gpu", (Alternative("gpu.nvidia.com"),)),)
    [one] = spec(request(count=4, allocationMode="ExactCount")).requests
    [every] = spec(request(allocationMode="All", adminAccess=True)).requests
    assert one.alternatives[0].number == 4
    assert every.alternatives[0].number == ALL and every.alternatives[0].admin
    assert spec().requests == ()


def test_alternatives_and_older_requests() -> None:
    """firstAvailable lists subrequests; before v1beta2 the fields stood in the request itself."""
    bodies = [{"name": "big", "deviceClassName": "h"}, {"name": "small", "deviceClassName": "a", "count": 2}]
    [found] = spec({"name": "gpu", "firstAvailable": bodies}).requests
    assert [(one.device_class, one.number) for one in found.alternatives] == [("h", 1), ("a", 2)]
    assert found.names == ("big", "small")
    [older] = spec({"name": "gpu", "deviceClassName": "h", "count": 3}).requests
    assert older.alternatives == (Alternative("h", number=3),)


def test_constraints_name_requests_or_alternatives() -> None:
    """References to subrequests are <request>/<subrequest>; the request alone means all of them; none are all."""
    asked = DeviceRequest("gpu", (Alternative("a"), Alternative("b")), ("x", "y"))
    assert DeviceConstraint("d/r").concerns(asked, 1) and DeviceConstraint("d/r", requests=("gpu",)).concerns(asked, 0)
    one = DeviceConstraint("d/r", requests=("gpu/y", "nic"))
    assert one.concerns(asked, 1) and not one.concerns(asked, 0)
    found = spec(request(), constraints=[{"matchAttribute": "d/r"}, {"distinctAttribute": "d/s", "requests": ["gpu"]}])
    assert found.constraints == (DeviceConstraint("d/r"), DeviceConstraint("d/s", True, ("gpu",)))


@pytest.mark.parametrize(("body", "text"), [
    (request(allocationMode="Some"), "request with Some"), (request(count=0), "a count of 0"),
    (request(count=True), "a count of True"), (request(later=1), "request with later"),
    (request(count=40), "40 devices in a claim"), ({"name": "gpu"}, "no class"),
])  # fmt: skip
def test_what_is_not_known_is_refused(body: dict[str, Any], text: str) -> None:
    """Clients must refuse to handle requests with unknown modes; a claim has at most 32 devices."""
    with pytest.raises(UnknownRequest, match=text):
        spec(body)
    with pytest.raises(UnknownRequest, match="constraint"):
        spec(request(), constraints=[{"later": 1}])
    with pytest.raises(UnknownRequest, match="claim with score"):
        spec(request(), score={})
    assert spec(request(), config=[{"opaque": {}}]).requests


def test_selectors_of_class_and_request_must_hold() -> None:
    """All selectors of the class and of the request must be satisfied."""
    listed = [gpu("a"), gpu("h", "NVIDIA H100"), gpu("m", type="mig")]
    assert meant(Alternative("gpu.nvidia.com"), *listed) == ["a", "h"]
    model = "device.attributes['gpu.nvidia.com'].productName.contains('H100')"
    assert meant(Alternative("gpu.nvidia.com", (model,)), *listed) == ["h"]


def test_the_first_selector_that_does_not_hold_ends_the_others() -> None:
    one = device("n", attributes={"kind": "nic"})
    assert meant(Alternative("gpu.nvidia.com", ("device.attributes['x'].y == 1",)), one, classes=[
        device_class("gpu.nvidia.com", "device.attributes['gpu.nvidia.com'].kind == 'gpu'")]) == []  # fmt: skip
    with pytest.raises(UnknownRequest, match=r"no such key: y for device gpu.nvidia.com/a/g"):
        meant(Alternative("gpu.nvidia.com", ("device.attributes['x'].y == 1",)), gpu("g"))
    with pytest.raises(UnknownRequest, match=r"all\(a, true\)\": a is not supported"):
        meant(Alternative("gpu.nvidia.com", ("device.attributes['x'].all(a, true)",)))
    with pytest.raises(UnknownRequest, match="device class other does not exist"):
        meant(Alternative("other"), gpu("g"))


def test_capacity_is_the_least_that_a_device_must_have() -> None:
    """A capacity request is the same as a selector that compares the capacity with it."""
    [asked] = spec(request(capacity={"requests": {"memory": "60Gi"}})).requests
    assert meant(asked.alternatives[0], gpu("a"), gpu("h", memory="80Gi"), gpu("x", memory="60Gi")) == ["h", "x"]


def test_taints_are_tolerated_by_key_value_and_effect() -> None:
    """A toleration with Exists covers all values; an empty key with Exists all taints; no effect all effects."""
    listed = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    found = published([manifest(resource_slice("a", device("d", taints=listed)))], [], [{"name": "a"}], Counter())
    cases = {
        (("k", "Equal", "v", ""),): True, (("k", "Exists", "", "NoSchedule"),): True, (("", "Exists", "", ""),): True,
        (("k", "Equal", "w", ""),): False, (("k", "Exists", "", "NoExecute"),): False, (): False,
        (("x", "Exists", "", ""),): False, (("", "Equal", "v", ""),): False,
    }  # fmt: skip
    for tolerations, expected in cases.items():
        assert tolerated(Alternative("c", tolerations=tolerations), found.devices[0]) is expected
    [asked] = spec(request(tolerations=[{"key": "k", "value": "v"}])).requests
    assert asked.alternatives[0].tolerations == (("k", "Equal", "v", ""),)


def test_resources_stand_for_classes() -> None:
    """Of two classes for a resource the one created later counts, or the first by name; all have an implicit name."""
    old, new = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
    listed = [
        device_class(name, meta={"creationTimestamp": made}, extendedResourceName=resource)
        for name, made, resource in (("a", old, "x.com/d"), ("b", new, "x.com/d"), ("d", old, "y.com/d"),
                                     ("c", old, "y.com/d"))
    ]  # fmt: skip
    found = Classes([manifest(item) for item in [*listed, device_class("e")]]).resources
    assert (found["x.com/d"], found["y.com/d"]) == ("b", "c") and "" not in found
    assert found["deviceclass.resource.kubernetes.io/e"] == "e"
    assert of_resource("e", 2).requests[0].alternatives == (Alternative("e", number=2),)

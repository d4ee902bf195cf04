"""Devices in ResourceSlices: pools, nodes, attributes, taints, counters."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from fastsim.errors import InputError
from fastsim.kubernetes.devices.resource_slices import Published, PublishedDevice, published
from tests.objects import device, gpu, manifest, resource_slice

NODES = [{"name": "a", "rack": "1"}, {"name": "b", "rack": "2"}, {"name": "c", "rack": "2"}]


def found(*slices: dict[str, Any], rules: Any = ()) -> tuple[Published, Counter[str]]:
    notices: Counter[str] = Counter()
    return published([manifest(item) for item in slices], [manifest(item) for item in rules], NODES, notices), notices


def names(*slices: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one.identity[2], one.node) for one in found(*slices)[0].devices]


def only(one: dict[str, Any], **spec: Any) -> PublishedDevice:
    [device] = found(resource_slice("a", one, **spec))[0].devices
    return device


def test_only_the_highest_generation_of_a_pool_counts() -> None:
    """A consumer uses the slices with the highest generation of a pool and ignores all others."""
    old = resource_slice("a", gpu("g0"), gpu("g1"), name="old", pool={"generation": 3})
    assert names(old, resource_slice("a", gpu("g2"), pool={"generation": 10})) == [("g2", "a")]
    assert names(old, resource_slice("a", gpu("n0"), driver="nic.example.com")) == [
        ("g0", "a"),
        ("g1", "a"),
        ("n0", "a"),
    ]


def test_devices_of_an_incomplete_pool_do_not_count() -> None:
    """With fewer slices than resourceSliceCount the view of a pool is not complete; kube-scheduler passes over it."""
    all_of_it, notices = found(resource_slice("a", gpu("g0"), pool={"resourceSliceCount": 2}))
    assert not all_of_it.devices and all_of_it.incomplete == {"a"}
    assert list(notices) == ["nodes: pool gpu.nvidia.com/a is incomplete, so its devices do not count"]


def test_nodes_of_a_pool_with_two_devices_of_one_name_offer_none() -> None:
    """Each device in a pool must have a unique name."""
    twice = [resource_slice("a", gpu("g0"), name=name, pool={"resourceSliceCount": 2}) for name in "xy"]
    others = resource_slice("a", gpu("n0"), driver="nic.example.com")
    all_of_it, notices = found(*twice, others, resource_slice("b", gpu("g0")))
    assert [one.node for one in all_of_it.devices] == ["b"]
    assert list(notices) == ["nodes: pool gpu.nvidia.com/a has two devices of one name, so its nodes offer none"]


def test_devices_that_several_nodes_reach_are_dealt_to_them() -> None:
    """allNodes and nodeSelector make devices available on more than one node; each can be allocated once."""
    selector = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["2"]}]}]}
    listed = [device(f"d{number}") for number in range(3)]
    assert names(resource_slice(None, *listed, nodeSelector=selector)) == [("d0", "b"), ("d1", "c"), ("d2", "b")]
    assert names(resource_slice(None, *listed, allNodes=True)) == [("d0", "a"), ("d1", "b"), ("d2", "c")]
    _, notices = found(resource_slice(None, *listed, allNodes=True))
    assert notices == {"nodes: devices that several nodes reach, of which one each can use them": 3}
    assert names(resource_slice(None, *listed)) == [] and names(resource_slice("elsewhere", *listed)) == []


def test_nodes_can_be_set_for_each_device() -> None:
    """With perDeviceNodeSelection every device names its own nodes."""
    own = [device("d0", nodeName="c"), device("d1", nodeName="a")]
    assert names(resource_slice(None, *own, perDeviceNodeSelection=True)) == [("d0", "c"), ("d1", "a")]


def test_attributes_have_types_and_domains() -> None:
    """Names without a domain are of the driver's; an attribute has one value of one type, or a list of them."""
    one = only(device("d", {"memory": "1Gi", "net.example.com/lanes": "4"}, attributes={
        "model": "x", "cores": 4, "fast": True, "net.example.com/root": "r", "kinds": ["p", "q"],
        "version": {"version": "1.2.3"}, "versions": {"versions": ["1.0.0"]},
    }))  # fmt: skip
    assert one.named("gpu.nvidia.com/model") == one.named("model") == "x" and one.named("net.example.com/root") == "r"
    assert (one.named("cores"), one.named("fast"), one.named("kinds")) == (4, True, ["p", "q"])
    assert one.capacity("memory") == 1 << 30 and one.capacity("net.example.com/lanes") == 4
    assert one.named("root") is None and one.capacity("lanes") is None and one.named("version").numbers == (1, 2, 3)


@pytest.mark.parametrize("attribute", [{}, {"int": True}, {"string": 3}, {"version": "1"}, {"ints": ["a"]}, 3])
def test_an_attribute_of_another_form_is_refused(attribute: Any) -> None:
    body = {"name": "d", "attributes": {"x": attribute}}
    with pytest.raises(InputError, match="attributes: x"):
        found(resource_slice("a", body))
    with pytest.raises(InputError, match="generation"):
        found(resource_slice("a", gpu("g"), pool={"generation": "new"}))


def test_devices_of_v1beta1_stand_under_basic() -> None:
    body = {"name": "d", "basic": {"attributes": {"model": {"string": "x"}}, "capacity": {"memory": {"value": "2"}}}}
    assert only(body).named("model") == "x" and only(body).capacity("memory") == 2


def test_taints_come_from_slices_and_rules() -> None:
    """A DeviceTaintRule has the effect of a taint in the slice; effects that are not known are like None."""
    tainted = device("d0", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}, {"key": "i", "effect": "None"}])
    rules = [
        {"kind": "DeviceTaintRule", "metadata": {"name": "r"},
         "spec": {"deviceSelector": selector, "taint": {"key": key, "effect": "NoExecute"}}}
        for key, selector in (("one", {"device": "d1"}), ("pool", {"pool": "a"}), ("all", {}), ("none", None),
                              ("other", {"driver": "other.example.com"}))
    ]  # fmt: skip
    first, second = found(resource_slice("a", tainted, device("d1")), rules=rules)[0].devices
    assert [taint.key for taint in first.taints] == ["k", "pool", "all"]
    assert [taint.key for taint in second.taints] == ["one", "pool", "all"]


def test_counters_are_those_of_the_pool() -> None:
    """Devices of a pool consume counters of its counter sets, which may stand in another slice."""
    takes = [{"counterSet": "gpu-0", "counters": {"memory": {"value": "10Gi"}}}]
    sets = [{"name": "gpu-0", "counters": {"memory": {"value": "40Gi"}}}]
    pool = {"resourceSliceCount": 2}
    parts = resource_slice("a", device("p", consumesCounters=takes), pool=pool)
    all_of_it, _ = found(parts, resource_slice("a", name="counters", sharedCounters=sets, pool=pool))
    key = ("gpu.nvidia.com", "a", "gpu-0", "memory")
    assert all_of_it.counters == {key: Fraction(40 << 30)}
    assert all_of_it.devices[0].consumes == ((key, Fraction(10 << 30)),)


def test_whole_gpus_are_known_by_driver_and_type() -> None:
    assert only(gpu("g")).is_gpu and only(gpu("g")).model == "NVIDIA A100-SXM4-40GB"
    assert only(gpu("g")).memory_mib == 40 << 10 and only(device("g")).memory_mib is None
    assert not only(gpu("g", type="mig")).is_gpu and not only(gpu("g"), driver="nic.example.com").is_gpu
    assert only(gpu("g", type="amdgpu"), driver="gpu.amd.com").is_gpu
    assert only(device("g", attributes={"model": "x"}), driver="gpu.example.com").model == "x"


def test_fields_of_devices_that_are_not_read_are_named() -> None:
    body = device("d", nodeAllocatableResources={}, bindsToNode=True, allowMultipleAllocations=True)
    assert found(resource_slice("a", body))[1] == {
        "nodes: nodeAllocatableResources of devices in ResourceSlices": 1,
        "nodes: devices for several requests at a time, which count as devices for one": 1,
    }

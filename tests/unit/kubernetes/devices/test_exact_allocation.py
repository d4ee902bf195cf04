"""Claims of the one pod that an extender is asked about are tried on the devices that are free on each node."""

from __future__ import annotations

import itertools
import random
from typing import Any, NamedTuple

import pytest

from fastsim.decisions.kube_extender import Extender
from fastsim.decisions.live_cluster import ClusterState
from fastsim.kubernetes.devices.device_allocation import Bundle, Devices, FreeDevices
from fastsim.kubernetes.devices.resource_slices import PublishedDevice
from tests.objects import (
    allocation,
    claim,
    claiming,
    device,
    device_class,
    gpu,
    manifest,
    node,
    request,
    resource_slice,
    template,
)  # fmt: skip

NIC = device_class("nic", "device.driver == 'nic.example.com'")
RUNNING = {"phase": "Running"}


class Still(NamedTuple):
    """A cluster that stands still."""

    moment: ClusterState

    def state(self) -> ClusterState:
        """As it is."""
        return self.moment


def left(pod: dict[str, Any], *objects: dict[str, Any]) -> dict[str, str]:
    """The nodes a and b, each with why it cannot host the pod, "" if it can."""
    moment = ClusterState([manifest(item) for item in (node("a"), node("b"), device_class(), NIC, *objects)])
    answer = Extender(Still(moment), "best_fit").filter({"Pod": pod, "NodeNames": ["a", "b"]})  # type: ignore[arg-type]
    assert answer["Error"] == ""
    return {name: answer["FailedNodes"].get(name, "") for name in ("a", "b")}


def held(node_name: str, *devices: str) -> list[dict[str, Any]]:
    """A pod on a node with devices of the node's pool."""
    own = claim("held", request(), status=allocation(*((node_name, name) for name in devices), users=("r",)))
    return [own, claiming("r", claims=("held",), nodeName=node_name, status=RUNNING)]


def nics(node_name: str, *names: str) -> dict[str, Any]:
    return resource_slice(node_name, *(device(name) for name in names), driver="nic.example.com")


NONE = "cannot allocate all claims"
GPUS = resource_slice("a", *(gpu(f"g{n}", index=n, numa=n // 2) for n in range(4)))


def chosen(name: str, text: str, **more: Any) -> dict[str, Any]:
    """A request for GPUs by their number."""
    return request(name, "gpu.nvidia.com", f"device.attributes['gpu.nvidia.com'].index {text}", **more)


def test_an_alternative_counts_where_the_first_has_too_few_free_devices() -> None:
    either = {"name": "any", "firstAvailable": [
        {"name": "gpus", "deviceClassName": "gpu.nvidia.com", "count": 2},
        {"name": "nic", "deviceClassName": "nic"}]}  # fmt: skip
    used = held("a", "g0", "g1", "g2")
    assert left(claiming("p", "t"), GPUS, nics("a", "n0"), template("t", either), *used) == {"a": "", "b": NONE}
    assert left(claiming("p", "t"), GPUS, template("t", either), *used)["a"] == NONE


def test_devices_of_sets_that_overlap_in_part() -> None:
    """The first two or the last three of four: with the middle ones in use, the first and the last are left."""
    both = template("t", chosen("low", "< 2"), chosen("high", "> 0"))
    assert left(claiming("p", "t"), GPUS, both, *held("a", "g1", "g2"))["a"] == ""
    assert left(claiming("p", "t"), GPUS, both, *held("a", "g0", "g1"))["a"] == NONE


def test_two_claims_of_a_pod_have_devices_of_their_own() -> None:
    two = template("two", request(count=2)), template("one", request())
    assert left(claiming("p", "two", "one"), GPUS, *two, *held("a", "g0"))["a"] == ""
    assert left(claiming("p", "two", "one"), GPUS, *two, *held("a", "g0", "g1"))["a"] == NONE


def test_administrative_access_is_to_devices_that_no_other_request_of_the_claim_has() -> None:
    """A device may be in use by other claims, but is allocated once in one claim."""
    watch = template("t", request("watch", adminAccess=True), request("gpus", count=3))
    assert left(claiming("p", "t"), GPUS, watch, *held("a", "g0"))["a"] == ""
    assert left(claiming("p", "t"), GPUS, watch, *held("a", "g0", "g1"))["a"] == NONE
    every = template("t", request("watch", adminAccess=True), request("gpus", count=4))
    assert left(claiming("p", "t"), GPUS, every)["a"] == NONE
    apart = template("t", request("watch", adminAccess=True)), template("u", request("gpus", count=4))
    assert left(claiming("p", "t", "u"), GPUS, *apart)["a"] == ""


def test_all_devices_of_a_node_are_an_alternative_and_keep_constraints() -> None:
    rule = {"matchAttribute": "gpu.nvidia.com/numa"}
    low = chosen("all", "< 2", allocationMode="All")
    assert left(claiming("p", "t"), GPUS, template("t", low, constraints=[rule]))["a"] == ""
    assert left(claiming("p", "t"), GPUS, template("t", low, constraints=[rule]), *held("a", "g1"))["a"] == NONE
    across = chosen("all", "> 0", allocationMode="All")
    assert left(claiming("p", "t"), GPUS, template("t", across, constraints=[rule]))["a"] == NONE
    either = {"name": "any", "firstAvailable": [
        {"name": "all", "deviceClassName": "gpu.nvidia.com", "allocationMode": "All"},
        {"name": "nic", "deviceClassName": "nic", "count": 2}]}  # fmt: skip
    assert left(claiming("p", "t"), GPUS, nics("b", "n0", "n1"), template("t", either), *held("a", "g0")) == {
        "a": NONE, "b": ""}  # fmt: skip


def test_a_device_that_several_nodes_reach_counts_on_each() -> None:
    fabric = resource_slice(None, device("f0"), driver="nic.example.com", allNodes=True)
    wanted = template("t", request("f", "nic"))
    assert left(claiming("p", "t"), fabric, wanted) == {"a": "", "b": ""}
    status = allocation(("shared", "f0"), driver="nic.example.com", users=("r",))
    used = [
        claim("held", request("f", "nic"), status=status),
        claiming("r", claims=("held",), nodeName="b", status=RUNNING),
    ]
    assert left(claiming("p", "t"), fabric, wanted, *used) == {"a": NONE, "b": NONE}


def test_other_pods_that_wait_take_nothing() -> None:
    other = claiming("q", "two")
    assert left(claiming("p", "two"), GPUS, template("two", request(count=4)), other)["a"] == ""


def by_trying(bundle: Bundle, free: set[Any]) -> bool:
    """Whether requests can have devices: every choice for every request, until one has none twice."""
    choices = []
    for place, alternatives in enumerate(bundle.requests):
        own = []
        for number, (devices, count) in enumerate(alternatives):
            admin = (place, number) in bundle.administrative
            usable = sorted(devices if admin else devices & free)
            own += [(bundle.claims[place], admin, set(taken)) for taken in itertools.combinations(usable, count)]
        choices.append(own)
    for picked in itertools.product(*choices):
        plain = [one for _, admin, taken in picked if not admin for one in taken]
        of_claim = [(claim_number, one) for claim_number, _, taken in picked for one in taken]
        if len(set(plain)) == len(plain) and len(set(of_claim)) == len(of_claim):
            return True
    return False


@pytest.mark.parametrize("seed", range(200))
def test_an_allocation_is_found_if_trying_everything_finds_one(seed: int) -> None:
    rng = random.Random(seed)
    listed = [PublishedDevice(("d", "a", f"g{n}"), "a", {"attributes": {}, "capacity": {}}) for n in range(5)]
    names = [one.identity for one in listed]

    def some() -> tuple[Devices, int]:
        return frozenset(rng.sample(names, rng.randrange(6))), rng.randrange(1, 4)

    requests = tuple(tuple(some() for _ in range(rng.choice((1, 1, 2)))) for _ in range(rng.randrange(1, 4)))
    places = [(place, number) for place, own in enumerate(requests) for number in range(len(own))]
    admin = frozenset(one for one in places if rng.random() < 0.25)
    bundle = Bundle(requests, (), admin, tuple(sorted(rng.randrange(2) for _ in requests)))
    free = FreeDevices(listed, {})
    for one in listed:
        if rng.random() < 0.3:
            free.take(one)
    assert (free.allocated(bundle) is not None) == by_trying(bundle, free.free)

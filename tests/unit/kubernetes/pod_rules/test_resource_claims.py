"""Dumps of clusters with Dynamic Resource Allocation, worked out by hand; each test says the rule that it follows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.decisions.explain import explained
from fastsim.kubernetes.pod_rules.resource_claims import CHOICE, PARTLY, UNEQUAL, UNKNOWN_DEVICES
from fastsim.kubernetes.snapshot import Snapshot
from tests.objects import (
    allocation,
    claim,
    claiming,
    cluster_of,
    device,
    device_class,
    gpu,
    manifest,
    node,
    pod,
    request,
    resource_slice,
    template,
    workload_of,
)  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.PodNeverFits",
                                        "ignore::fastsim.simulation.run_warnings.PodTooLarge")  # fmt: skip
OWN, RUNNING = "device.attributes['gpu.nvidia.com']", {"phase": "Running"}
MODEL = f"{OWN}.productName.contains"
TWO_GPUS = [node("a"), node("b"), resource_slice("a", gpu("g0"), gpu("g1")), device_class(), template("one", request())]


class Placed:
    """Pods of a dump after a run: their nodes, notices, columns of nodes, and kube-scheduler's sentences."""

    def __init__(self, *objects: dict[str, Any]) -> None:
        self.snapshot = Snapshot([manifest(item) for item in objects])
        self.cluster = cluster_of(self.snapshot)
        self.result = fs.simulate(self.cluster, workload_of(self.snapshot), "best_fit")
        found = self.result.placements.select("native_id", "node").iter_rows()
        self.nodes = {name.removeprefix("default/"): where for name, where in found}
        self.notices = dict(self.snapshot.notices)

    def column(self, name: str) -> list[Any]:
        """A column of the nodes."""
        found: list[Any] = self.cluster.nodes[name].to_pylist()
        return found

    def sentence(self, pod_name: str) -> str:
        """Why no node can host a pod."""
        explanation = explained(self.result, [f"default/{pod_name}"])
        return explanation.summary(explanation.decisions[0])


def on(*objects: dict[str, Any]) -> dict[str, str | None]:
    return Placed(*objects).nodes


def refused(found: Placed) -> list[str]:
    """Reasons why pods fit nowhere, behind the first pod of each."""
    beginning = "pods: fit nowhere because of their claims: "
    listed = {text.removeprefix(beginning): text for text in found.notices if text.startswith(beginning)}
    examples = found.snapshot.notices.examples
    return sorted(f"{examples[text].removeprefix('default/')}: {reason}" for reason, text in listed.items())


def test_a_claim_takes_a_device() -> None:
    """Each device is allocated to one claim; a pod waits until all its claims can be allocated on one node."""
    found = Placed(*TWO_GPUS, *(claiming(f"p{n}", "one") for n in range(3)))
    assert found.nodes == {"p0": "a", "p1": "a", "p2": None} and not found.notices
    assert (found.column("num_gpu"), found.column("gpu_model")) == ([2, 0], ["A100-40GB", None])
    assert found.result.placements["gpu_ids"].to_list() == [[0], [1], []]
    assert found.sentence("p2") == "0/2 nodes are available: 2 cannot allocate all claims."


def test_a_claim_for_several_devices() -> None:
    """exactly.count devices are allocated to a request, all on one node."""
    both = [*TWO_GPUS, template("two", request(count=2)), template("three", request(count=3))]
    assert on(*both, claiming("p0", "two"), claiming("p1", "one")) == {"p0": "a", "p1": None}
    assert on(*both, resource_slice("b", gpu("g0")), claiming("p0", "three")) == {"p0": None}


def test_pods_have_several_claims_and_requests() -> None:
    """All claims of a pod, and all requests of a claim, must be satisfied together."""
    apart = template("pair", request("x"), request("y"))
    assert on(*TWO_GPUS, apart, claiming("p0", "pair"), claiming("p1", "one")) == {"p0": "a", "p1": None}
    assert on(*TWO_GPUS, apart, claiming("p0", "one", "pair")) == {"p0": None}


def test_selectors_choose_models() -> None:
    """A device must satisfy the selectors of the request, beside those of its class."""
    found = Placed(
        node("a"), node("h"), device_class(), resource_slice("a", gpu("g0"), gpu("g1")),
        resource_slice("h", gpu("g0", "NVIDIA H100 80GB HBM3", "80Gi")),
        template("h100", request("g", "gpu.nvidia.com", f"{MODEL}('H100')")),
        template("large", request("g", "gpu.nvidia.com",
                                  "device.capacity['gpu.nvidia.com'].memory.isGreaterThan(quantity('40Gi'))")),
        template("a100", request("g", "gpu.nvidia.com", f"{MODEL}('A100')", count=2)),
        *(claiming(name, text) for name, text in (("p0", "h100"), ("p1", "large"), ("p2", "a100"))),
    )  # fmt: skip
    assert found.nodes == {"p0": "h", "p1": None, "p2": "a"} and not found.notices
    resources = [dict(listed) for listed in found.column("extra_resources")]
    assert resources == [{"devices:gpu.nvidia.com:2": 2}, {"devices:gpu.nvidia.com:1": 1}]


def test_sets_inside_each_other_on_one_node() -> None:
    """2 A100 and 1 H100: one pod needs the H100, others take any; as many fit as the best choice allows."""
    mixed = [node("a"), device_class(), template("any", request()),
             resource_slice("a", gpu("g0"), gpu("g1"), gpu("h", "NVIDIA H100", "80Gi")),
             template("h100", request("g", "gpu.nvidia.com", f"{MODEL}('H100')"))]  # fmt: skip
    found = Placed(*mixed, claiming("p0", "any"), claiming("p1", "any"), claiming("p2", "h100"), claiming("p3", "any"))
    assert found.nodes == {"p0": "a", "p1": "a", "p2": "a", "p3": None}
    assert found.notices.pop(CHOICE) == 4 and len(found.notices) == 1


def test_sets_that_overlap_in_part_fit_less_and_are_named() -> None:
    """x y z, of which one claim means x or y and the other y or z: all three fit in Kubernetes, here it may be two."""
    parts = [device(name, attributes={"low": name in "xy", "high": name in "yz"}) for name in "xyz"]
    classes = [device_class(name, f"device.attributes['d.example.com'].{name}") for name in ("low", "high")]
    found = Placed(node("a"), resource_slice("a", *parts, driver="d.example.com"), *classes,
                   *(template(name, request("r", name)) for name in ("low", "high")),
                   claiming("p0", "low"), claiming("p1", "low"), claiming("p2", "high"))  # fmt: skip
    assert sum(where == "a" for where in found.nodes.values()) >= 2 and found.notices == {PARTLY: 3}


def test_a_pod_without_its_claim_fits_nowhere() -> None:
    """A pod whose ResourceClaim or template does not exist is not scheduled; a claim that is deleted is not used."""
    gone = claim("gone", request(), meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    found = Placed(*TWO_GPUS, gone, claiming("p0", "nix"), claiming("p1", claims=("nix", "gone")),
                   pod("p2", resourceClaims=[{"name": "x"}]), claiming("p3", claims=("gone",)))  # fmt: skip
    assert set(found.nodes.values()) == {None}
    assert refused(found) == [
        'p0: resourceclaim "nix" not found', 'p1: resourceclaim "gone" is being deleted',
        'p2: resourceclaim "x" not found',
    ]  # fmt: skip
    assert found.sentence("p0") == '0/2 nodes are available: resourceclaim "nix" not found.'


def test_a_pod_with_claims_fits_nowhere_without_any_object() -> None:
    found = Placed(node("a"), claiming("p0", "one"))
    assert found.nodes == {"p0": None} and refused(found) == ['p0: resourceclaim "one" not found']


def test_an_expression_that_is_not_supported_is_named() -> None:
    """What cannot be evaluated makes the pod fit nowhere; it is never placed as if it asked for nothing."""
    text = f"{OWN}.all(a, a != '')"
    hard = template("hard", request("g", "gpu.nvidia.com", text))
    found = Placed(*TWO_GPUS, hard, claiming("p0", "hard"), claiming("p1", "hard"), claiming("p2", "one"))
    assert found.nodes == {"p0": None, "p1": None, "p2": "a"}
    assert refused(found) == [f"p0: selector {text!r}: a is not supported"] and sum(found.notices.values()) == 2


def test_an_expression_without_a_value_is_named() -> None:
    """A reference to an unknown attribute is an error, and allocation is aborted."""
    bad = template("bad", request("g", "gpu.nvidia.com", f"{OWN}.nix == 'x'"))
    found = Placed(*TWO_GPUS, bad, claiming("p0", "bad"))
    assert found.nodes == {"p0": None}
    assert refused(found)[0].endswith("no such key: nix for device gpu.nvidia.com/a/g0")


def test_a_class_that_is_not_there_is_named() -> None:
    """A request must name a DeviceClass, without which the pod is unschedulable."""
    found = Placed(*TWO_GPUS, template("other", request("g", "other")), claiming("p0", "other"))
    assert found.nodes == {"p0": None} and refused(found) == ["p0: device class other does not exist"]
    assert found.sentence("p0").endswith(
        "available: resourceclaim cannot be honoured: device class other does not exist."
    )


def test_allocated_claims_hold_their_devices() -> None:
    """status.allocation lists the devices of a claim; they are no others' while it is allocated."""
    held = claim("c", request(), status=allocation(("a", "g1"), users=("r",)))
    found = Placed(*TWO_GPUS, held, claiming("r", claims=("c",), nodeName="a", status=RUNNING),
                   claiming("p0", "one"), claiming("p1", "one"))  # fmt: skip
    assert found.nodes == {"r": "a", "p0": "a", "p1": None}
    assert found.result.placements["gpu_ids"].to_list() == [[1], [0], []]


def test_claims_without_pods_hold_their_devices() -> None:
    """A claim keeps its devices until it is deallocated, whether a pod uses it or not."""
    held = claim("c", request(), status=allocation(("a", "g1")))
    assert on(*TWO_GPUS, held, claiming("p0", "one"), claiming("p1", "one")) == {"p0": "a", "p1": None}


def test_a_pod_with_an_allocated_claim_goes_to_its_node() -> None:
    """The allocation's node selector says where the devices are available; the claim takes no further ones."""
    held = claim("c", request(), status=allocation(("a", "g1")))
    found = Placed(
        *TWO_GPUS, held, claiming("p0", claims=("c",)), claiming("p1", claims=("c",), nodeSelector={"x": "y"})
    )
    assert found.nodes == {"p0": "a", "p1": None} and not found.notices
    small = node("a", amounts={"pods": "1"})
    found = Placed(small, *TWO_GPUS[1:], held, claiming("p0", claims=("c",)), claiming("p1", claims=("c",)))
    assert found.nodes == {"p0": "a", "p1": None}
    assert (
        found.sentence("p1") == "0/2 nodes are available: 1 Too many pods, 1 resourceclaim not available on the node."
    )


def test_running_pods_share_a_claim() -> None:
    """Several pods may use one claim, and its devices with it; they count once."""
    held = claim("c", request(), status=allocation(("a", "g0"), users=("r0", "r1")))
    sharing = [claiming(name, claims=("c",), nodeName="a", status=RUNNING) for name in ("r0", "r1")]
    assert on(*TWO_GPUS, held, *sharing, claiming("p0", "one"), claiming("p1", "one")) == {
        "r0": "a", "r1": "a", "p0": "a", "p1": None}  # fmt: skip


def test_waiting_pods_that_share_a_claim_follow_the_first() -> None:
    """The first pod decides where a shared claim gets its devices; the node of the others is not known before."""
    found = Placed(*TWO_GPUS, claim("c", request()), claiming("p0", claims=("c",)), claiming("p1", claims=("c",)))
    assert found.nodes == {"p0": "a", "p1": None}
    assert refused(found) == ['p1: resourceclaim "c" is shared, and its devices are not chosen yet']


def test_a_claim_is_reserved_for_256_pods_at_most() -> None:
    users = tuple(f"u{number}" for number in range(256))
    held = claim("c", request(), status=allocation(("a", "g0"), users=users))
    found = Placed(*TWO_GPUS, held, claiming("p0", claims=("c",)), claiming("u7", claims=("c",)))
    assert found.nodes == {"p0": None, "u7": "a"} and refused(found) == [
        'p0: resourceclaim "c" is reserved for 256 pods'
    ]


def test_claims_of_templates_are_found_by_the_status() -> None:
    """resourceClaimStatuses has the name of the claim that was generated; without a name none was needed."""
    held = claim("p0-one-x", request(), status=allocation(("a", "g0"), users=("p0",)))
    status = {"resourceClaimStatuses": [{"name": "one", "resourceClaimName": "p0-one-x"}]}
    bound = claiming("p0", "one", nodeName="a", status=RUNNING | status)
    assert on(*TWO_GPUS, held, bound, claiming("p1", "one"), claiming("p2", "one")) == {
        "p0": "a",
        "p1": "a",
        "p2": None,
    }
    none = {"resourceClaimStatuses": [{"name": "nix"}]}
    assert on(*TWO_GPUS, claiming("p0", "nix", status=none)) == {"p0": "a"} or on(
        *TWO_GPUS, claiming("p0", "nix", status=none)) == {"p0": "b"}  # fmt: skip


def test_running_pods_whose_devices_are_not_known_take_any() -> None:
    bound = claiming("r", "one", nodeName="a", status=RUNNING)
    found = Placed(*TWO_GPUS, bound, claiming("p0", "one"), claiming("p1", "one"))
    assert found.nodes == {"r": "a", "p0": "a", "p1": None} and found.notices == {UNKNOWN_DEVICES: 1}


def test_all_devices_of_a_node() -> None:
    """allocationMode All takes every matching device of the node, at least one, and none may be in use."""
    every = template("all", request(allocationMode="All"))
    assert on(*TWO_GPUS, every, claiming("p0", "all"), claiming("p1", "one")) == {"p0": "a", "p1": None}
    assert on(*TWO_GPUS, every, claiming("p0", "one"), claiming("p1", "all")) == {"p0": "a", "p1": None}


def test_all_devices_of_nodes_of_several_sizes() -> None:
    every, three = template("all", request(allocationMode="All")), resource_slice("b", *map(gpu, ("g0", "g1", "g2")))
    found = Placed(*TWO_GPUS, three, every, claiming("p0", "all"), claiming("p1", "all"), claiming("p2", "one"))
    assert sorted(str(where) for where in found.nodes.values()) == ["None", "a", "b"] and not found.notices
    held = claim("c", request(), status=allocation(("b", "g1"), users=("r",)))
    found = Placed(
        *TWO_GPUS,
        three,
        every,
        held,
        claiming("r", claims=("c",), nodeName="b", status=RUNNING),
        *(claiming(name, "all") for name in ("p0", "p1")),
        *(claiming(name, "one") for name in ("p2", "p3")),
    )
    assert found.nodes == {"r": "b", "p0": "a", "p1": None, "p2": "b", "p3": "b"}


def test_devices_of_an_incomplete_pool_are_not_given() -> None:
    """No request has devices of a pool that is being updated, and none has all devices of a node beside such a pool."""
    part = resource_slice("a", gpu("g0"), pool={"resourceSliceCount": 2})
    every = template("all", request(allocationMode="All"))
    found = on(node("a"), part, *TWO_GPUS[3:], every, claiming("p0", "all"), claiming("p1", "one"))
    assert found == {"p0": None, "p1": None}
    beside = resource_slice("a", gpu("g0"), name="b", pool={"name": "b"})
    found = on(node("a"), part, beside, *TWO_GPUS[3:], every, claiming("p0", "all"), claiming("p1", "one"))
    assert found == {"p0": None, "p1": "a"}


def test_the_first_alternative_that_a_node_can_give() -> None:
    """firstAvailable is tried in its order on every node: an H100, or else two A100."""
    either = {"name": "g", "firstAvailable": [
        {"name": "h", "deviceClassName": "gpu.nvidia.com",
         "selectors": [{"cel": {"expression": f"{MODEL}('H100')"}}]},
        {"name": "a", "deviceClassName": "gpu.nvidia.com", "count": 2},
    ]}  # fmt: skip
    hopper = resource_slice("b", *(gpu(name, "NVIDIA H100 80GB HBM3", "80Gi") for name in ("g0", "g1")))
    found = Placed(*TWO_GPUS, hopper, template("either", either), *(claiming(f"p{n}", "either") for n in range(3)))
    assert sorted(str(where) for where in found.nodes.values()) == ["None", "a", "b"]
    assert found.notices == {UNEQUAL: 3}
    assert on(*TWO_GPUS, template("either", either), claiming("p0", "either"), claiming("p1", "one")) == {
        "p0": "a", "p1": None}  # fmt: skip


def test_administrative_access_takes_nothing() -> None:
    """adminAccess ignores all other claims to a device; the devices must be there."""
    admin = template("admin", request(adminAccess=True, count=2))
    every = template("every", request(adminAccess=True, allocationMode="All"))
    watching = [claiming("w0", "admin"), claiming("w1", "every")]
    found = on(*TWO_GPUS, admin, every, claiming("a0", "one"), claiming("a1", "one"), *watching, claiming("w2", "one"))
    assert found == {"a0": "a", "a1": "a", "w0": "a", "w1": "a", "w2": None}
    too_many = template("admin", request(adminAccess=True, count=3))
    assert on(*TWO_GPUS, too_many, claiming("w0", "admin")) == {"w0": None}
    status = allocation(("a", "g0"), users=("r",))
    status["allocation"]["devices"]["results"][0]["adminAccess"] = True
    bound = claiming("r", claims=("c",), nodeName="a", status=RUNNING)
    found = on(*TWO_GPUS, claim("c", request(adminAccess=True), status=status), bound, claiming("p0", "one"),
               claiming("p1", "one"))  # fmt: skip
    assert found == {"r": "a", "p0": "a", "p1": "a"}


ROOTS = [node("a"), device_class(), template("one", request()),
         resource_slice("a", *(gpu(f"g{n}", root="r0" if n < 3 else "r1") for n in range(5)))]  # fmt: skip


def test_devices_share_an_attribute() -> None:
    """matchAttribute: all devices of the requests have the same value; 3 and 2 GPUs of two roots are two pairs."""
    pair = template("pair", request(count=2), constraints=[{"matchAttribute": "gpu.nvidia.com/root"}])
    found = Placed(*ROOTS, pair, *(claiming(f"p{n}", "pair") for n in range(3)), claiming("q", "one"))
    assert found.nodes == {"p0": "a", "p1": "a", "p2": None, "q": "a"}
    assert on(*ROOTS, template("four", request(count=4), constraints=[{"matchAttribute": "gpu.nvidia.com/root"}]),
              claiming("p0", "four")) == {"p0": None}  # fmt: skip


def test_a_gpu_and_a_network_card_share_a_root() -> None:
    """A constraint over requests of two drivers: one GPU and one card of the same PCIe root."""
    key = "resource.kubernetes.io/pcieRoot"
    cards = [device("n0", attributes={key: "x"}), device("n1", attributes={key: "z"})]
    both = [node("a"), device_class(), device_class("nic", "device.driver == 'nic.example.com'"),
            resource_slice("a", *(gpu(f"g{n}", **{key.replace("/", "__"): root}) for n, root in enumerate("xxy"))),
            resource_slice("a", *cards, driver="nic.example.com"), template("one", request()),
            template("pair", request(), request("n", "nic"), constraints=[{"matchAttribute": key}])]  # fmt: skip
    found = on(*both, claiming("p0", "pair"), claiming("p1", "pair"), claiming("q0", "one"), claiming("q1", "one"))
    assert found == {"p0": "a", "p1": None, "q0": "a", "q1": "a"}


def test_devices_differ_in_an_attribute() -> None:
    """distinctAttribute: no two devices have one value."""
    apart = template("apart", request(count=2), constraints=[{"distinctAttribute": "gpu.nvidia.com/root"}])
    assert on(*ROOTS, apart, *(claiming(f"p{n}", "apart") for n in range(3))) == {"p0": "a", "p1": "a", "p2": None}


def mig_node(partitions: int = 7) -> list[dict[str, Any]]:
    """A GPU that is taken whole, or in parts of one of its 7 slices of memory."""
    sets = [{"name": "gpu-0", "counters": {"slices": {"value": "7"}}}]
    parts = [{**gpu("gpu-0"), "consumesCounters": [{"counterSet": "gpu-0", "counters": {"slices": {"value": "7"}}}]}]
    for number in range(partitions):
        takes = [{"counterSet": "gpu-0", "counters": {"slices": {"value": "1"}}}]
        parts.append({**gpu(f"mig-{number}", type="mig", profile="1g.5gb"), "consumesCounters": takes})
    return [
        node("a"), device_class(), device_class("mig.nvidia.com", f"{OWN}.type == 'mig'"), template("one", request()),
        template("part", request("m", "mig.nvidia.com")), resource_slice("a", *parts, sharedCounters=sets),
    ]  # fmt: skip


def test_partitions_and_whole_gpus_exclude_each_other() -> None:
    """Devices consume counters that they share: the whole GPU and its parts are not allocated together."""
    parts = [claiming(f"p{number}", "part") for number in range(8)]
    found = on(*mig_node(), *parts, claiming("w", "one"))
    assert [found[f"p{number}"] for number in range(8)] == ["a"] * 7 + [None] and found["w"] is None
    assert on(*mig_node(), claiming("a", "one"), claiming("p", "part")) == {"a": "a", "p": None}
    held = claim("c", request("m", "mig.nvidia.com"), status=allocation(("a", "mig-3"), users=("r",)))
    running = claiming("r", claims=("c",), nodeName="a", status=RUNNING)
    found = on(*mig_node(), held, running, claiming("b", "one"), *parts)
    assert found["b"] is None and sum(where == "a" for where in found.values()) == 7


def test_tainted_devices_need_a_toleration() -> None:
    """A taint with NoSchedule keeps claims away that do not tolerate it."""
    bad = {**gpu("g1"), "taints": [{"key": "broken", "effect": "NoSchedule"}]}
    listed = [node("a"), device_class(), resource_slice("a", gpu("g0"), bad), template("one", request()),
              template("brave", request(tolerations=[{"key": "broken", "operator": "Exists"}])),
              template("all", request(allocationMode="All"))]  # fmt: skip
    assert on(*listed, claiming("p0", "one"), claiming("p1", "one"), claiming("p2", "brave")) == {
        "p0": "a", "p1": None, "p2": "a"}  # fmt: skip
    assert on(*listed, claiming("p0", "all")) == {"p0": None}


BRIDGE = device_class("gpu.nvidia.com", extendedResourceName="nvidia.com/gpu")


def test_a_resource_of_pods_stands_for_devices() -> None:
    """DeviceClass.spec.extendedResourceName: pods that ask for nvidia.com/gpu get devices of the class."""
    listed = [node("a"), BRIDGE, resource_slice("a", gpu("g0"), gpu("g1")), template("one", request())]
    plain = [pod(f"p{number}", {"nvidia.com/gpu": 1}) for number in range(2)]
    found = Placed(*listed, plain[0], claiming("q", "one"), plain[1])
    assert found.nodes == {"p0": "a", "q": None, "p1": "a"} or found.nodes == {"p0": "a", "p1": "a", "q": None}
    assert found.column("num_gpu") == [2] and not found.notices
    assert on(*listed, pod("p", {"deviceclass.resource.kubernetes.io/gpu.nvidia.com": 2}), claiming("q", "one")) == {
        "p": "a", "q": None}  # fmt: skip
    assert on(*TWO_GPUS, pod("p", {"nvidia.com/gpu": 1})) == {"p": "a"}


def test_nodes_with_a_device_plugin_offer_the_resource_themselves() -> None:
    """On a node whose allocatable has the resource the plugin gives it, on others the class does."""
    plugin = node("b", amounts={"nvidia.com/gpu": "1"}, labels={"nvidia.com/gpu.product": "Tesla-T4"})
    listed = [node("a"), plugin, BRIDGE, resource_slice("a", gpu("g0")), template("one", request())]
    pods = [pod(f"p{number}", {"nvidia.com/gpu": 1}) for number in range(3)]
    assert sorted(map(str, on(*listed, *pods).values())) == ["None", "a", "b"]
    assert on(*listed, claiming("a0", "one"), claiming("a1", "one"), pods[0]) == {"a0": "a", "a1": None, "p0": "b"}
    bound = pod("r", {"nvidia.com/gpu": 1}, nodeName="b", status=RUNNING)
    assert sorted(map(str, on(*listed, bound, *pods).values())) == ["None", "None", "a", "b"]


def test_a_resource_that_is_no_gpu_stands_for_devices() -> None:
    cards = resource_slice("a", device("n0"), device("n1"), driver="nic.example.com")
    nic = device_class("nic", "device.driver == 'nic.example.com'", extendedResourceName="example.com/nic")
    listed = [node("a"), node("b", amounts={"example.com/nic": "1"}), cards, nic]
    asking = [pod(f"p{number}", {"example.com/nic": 1}) for number in range(4)]
    assert sorted(map(str, on(*listed, *asking).values())) == ["None", "a", "a", "b"]
    held = claim("c", request("n", "nic"), status=allocation(("a", "n0"), driver="nic.example.com", users=("r",)))
    status = RUNNING | {"extendedResourceClaimStatus": {"resourceClaimName": "c"}}
    bound = pod("r", {"example.com/nic": 1}, nodeName="a", status=status)
    assert sorted(map(str, on(*listed, held, bound, *asking).values())) == ["None", "None", "a", "a", "b"]


def test_pods_of_workloads_have_claims_of_their_own() -> None:
    """Every pod of a Deployment gets a claim of the template."""
    body = claiming("x", "one")
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w"},
                  "spec": {"replicas": 3, "template": {"metadata": {}, "spec": body["spec"]}}}  # fmt: skip
    assert sorted(map(str, on(*TWO_GPUS, deployment).values())) == ["None", "a", "a"]


def test_devices_of_other_nodes_in_use_belong_to_the_pod_that_uses_them() -> None:
    """A device that all nodes reach is one device, wherever it is in use."""
    cards = resource_slice(None, *(device(f"n{n}") for n in range(3)), driver="nic.example.com", allNodes=True)
    nic = device_class("nic", "device.driver == 'nic.example.com'")
    status = allocation(("shared", "n0"), driver="nic.example.com", users=("r",))
    held, running = claim("c", status=status), claiming("r", claims=("c",), nodeName="b", status=RUNNING)
    listed = [node("a"), node("b"), nic, cards, template("nic", request("n", "nic"))]
    assert sorted(map(str, on(*listed, *(claiming(f"p{n}", "nic") for n in range(4))).values())) == [
        "None", "a", "a", "b"]  # fmt: skip
    found = on(*listed, held, running, *(claiming(f"p{n}", "nic") for n in range(3)))
    assert sorted(map(str, found.values())) == ["None", "a", "b", "b"]


def test_a_pod_of_higher_priority_takes_the_devices_of_another() -> None:
    """Preemption evicts pods of less priority whose devices let the pod have its claims."""
    held = claim("c", request(count=2), status=allocation(("a", "g0"), ("a", "g1"), users=("r",)))
    running = claiming("r", claims=("c",), nodeName="a", status=RUNNING, priority=0)
    snapshot = Snapshot([manifest(item) for item in [*TWO_GPUS, held, running, claiming("p", "one", priority=9)]])
    result = fs.simulate(cluster_of(snapshot), workload_of(snapshot), "best_fit", queue="fifo", preempt="priority")
    last = result.placements.sort("start_s", maintain_order=True).filter(pl.col("native_id") == "default/p")
    assert last["node"].to_list() == ["a"]


def test_a_claim_that_runs_keeps_its_pod_where_it_is() -> None:
    """A running pod with more devices than slices list keeps its node; what is left is counted from the slices."""
    held = claim("c", request(), status=allocation(("a", "gone"), users=("r",)))
    found = on(*TWO_GPUS, held, claiming("r", claims=("c",), nodeName="a", status=RUNNING), claiming("p", "one"))
    assert found == {"r": "a", "p": "a"}


def test_the_tables_keep_what_claims_ask_for(tmp_path: Path) -> None:
    """Tables of nodes and pods have the further resources, so a run of them places the same pods."""
    snapshot = Snapshot([manifest(item) for item in [*TWO_GPUS, *(claiming(f"p{n}", "one") for n in range(3))]])
    cluster_of(snapshot).to_parquet(tmp_path / "nodes.parquet")
    workload_of(snapshot, marked=True).write(tmp_path / "pods.parquet")
    nodes, pods = (str(tmp_path / f"{name}.parquet") for name in ("nodes", "pods"))
    result = fs.simulate(nodes, pods, "best_fit")
    assert result.placements["node"].to_list() == ["a", "a", None]


def test_alternatives_of_several_devices_do_not_mix() -> None:
    """Two of three x, or two of three y: 6 devices are two pairs, not three; the first alternative counts here."""
    parts = [device(f"{kind}{n}", attributes={"kind": kind}) for kind in "xy" for n in range(3)]
    selectors = [[{"cel": {"expression": f"device.attributes['d.example.com'].kind == '{kind}'"}}] for kind in "xy"]
    bodies = [
        {"name": f"s{n}", "deviceClassName": "d", "count": 2, "selectors": one} for n, one in enumerate(selectors)
    ]
    found = Placed(node("a"), resource_slice("a", *parts, driver="d.example.com"), device_class("d", "true"),
                   template("pair", {"name": "r", "firstAvailable": bodies}),
                   *(claiming(f"p{number}", "pair") for number in range(3)))  # fmt: skip
    assert found.nodes == {"p0": "a", "p1": None, "p2": None} and found.notices == {UNEQUAL: 3}

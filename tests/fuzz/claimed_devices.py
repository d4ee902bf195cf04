"""Devices and claims of Kubernetes with changed parts; expressions that select devices."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from fastsim.kubernetes.devices.device_expressions import (
    Domains,
    EvaluationFault,
    UnsupportedExpression,
    expression_of,
    version_of,
)  # fmt: skip
from tests.fuzz import mutation, trial
from tests.fuzz.kubernetes import prepare
from tests.fuzz.trial import Trial
from tests.objects import (
    allocation,
    claim,
    claiming,
    device,
    device_class,
    gpu,
    node,
    pod,
    request,
    resource_slice,
    template,
)  # fmt: skip

_OWN = "device.attributes['gpu.nvidia.com']"
_SETS = [{"name": "gpu-0", "counters": {"slices": {"value": "7"}}}]
_TAKES = {"consumesCounters": [{"counterSet": "gpu-0", "counters": {"slices": {"value": "1"}}}]}
_TAINTED = {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}
_SELECTOR = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}
_EITHER = {"name": "g", "firstAvailable": [{"name": "a", "deviceClassName": "gpu.nvidia.com", "count": 2},
                                           {"name": "b", "deviceClassName": "any"}]}  # fmt: skip
_STATUS = {"phase": "Running", "resourceClaimStatuses": [{"name": "one", "resourceClaimName": "c1"}]}
OBJECTS: list[dict[str, Any]] = [
    node("n1", {"zone": "a"}), node("n2", {"zone": "b"}, {}, {"example.com/nic": "2"}),
    resource_slice("n1", gpu("g0"), gpu("g1", root="r"), {**gpu("m0", type="mig"), **_TAKES}, sharedCounters=_SETS),
    resource_slice("n2", {**gpu("g0", "NVIDIA H100"), **_TAINTED}, device("x"), pool={"resourceSliceCount": 2}),
    resource_slice(None, device("c0"), device("c1"), driver="nic.example.com", nodeSelector=_SELECTOR),
    device_class(), device_class("any", "true"),
    device_class("nic", "device.driver == 'nic.example.com'", extendedResourceName="example.com/nic"),
    claim("c0", request(), status=allocation(("n1", "g0"), users=("r0",))),
    claim("c1", request("a", "any", count=2), constraints=[{"matchAttribute": "gpu.nvidia.com/root"}]),
    template("one", request("g", "gpu.nvidia.com", f"{_OWN}.productName.contains('A100')")),
    template("all", request(allocationMode="All", tolerations=[{"operator": "Exists"}])),
    template("admin", request(adminAccess=True)), template("either", _EITHER),
    {"kind": "DeviceTaintRule", "metadata": {"name": "t"},
     "spec": {"deviceSelector": {"pool": "n1", "device": "g1"}, "taint": {"key": "q", "effect": "NoExecute"}}},
    claiming("r0", claims=("c0",), nodeName="n1", status={"phase": "Running"}),
    claiming("r1", "one", nodeName="n1", status=_STATUS),
    *(claiming(f"p-{name}", name) for name in ("one", "all", "admin", "either")),
    claiming("p-claims", claims=("c0", "c1")), pod("p-nic", {"example.com/nic": 1}),
]  # fmt: skip
EXPRESSIONS = (
    f"device.driver == 'gpu.nvidia.com' && {_OWN}.type == 'gpu'", f"!({_OWN}.index in [1, 2, -3]) || {_OWN}.mig",
    "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0",
    f"cel.bind(own, {_OWN}, own.?nix.orValue('') == '' ? own.index < 2.5 : false)",
    f"{_OWN}.driverVersion.isGreaterThan(semver('12.4.0')) && {_OWN}.productName.matches('^A(1|2)00$')",
    f"has({_OWN}.type) && 'type' in {_OWN} && {_OWN}.productName.startsWith(\"A\\x31\")",
)  # fmt: skip
_DEVICE = {
    "driver": "gpu.nvidia.com", "allowMultipleAllocations": False,
    "attributes": Domains({"gpu.nvidia.com": {"type": "gpu", "productName": "A100", "index": 1, "mig": False,
                                              "driverVersion": version_of("12.4.1")}}),
    "capacity": Domains({"gpu.nvidia.com": {"memory": Fraction(40 << 30)}}),
}  # fmt: skip


def _json(draw: random.Random) -> bytes:
    chosen = OBJECTS if draw.random() < 0.5 else draw.sample(OBJECTS, draw.randint(2, len(OBJECTS)))
    changed = mutation.tree(chosen, draw)
    written = json.dumps({"apiVersion": "v1", "kind": "List", "items": changed})
    return mutation.raw(written, draw) if draw.random() < 0.1 else written.encode()


def expressions() -> Trial:
    """Expressions, which are true, false, without a value, or not supported."""

    def text(draw: random.Random) -> str:
        return mutation.text(EXPRESSIONS, draw)

    def read(given: str) -> None:
        try:
            assert expression_of(given).holds(_DEVICE) in (True, False)
        except (UnsupportedExpression, EvaluationFault) as error:
            assert str(error)

    return trial.of(text, read)


TARGETS: dict[str, Callable[[], Trial]] = {
    "Kubernetes devices": partial(prepare, _json, "-devices.json"),
    "device expressions": expressions,
}
"""Trials by name."""

"""Requests for devices: what ResourceClaims, their templates and DeviceClasses ask for.

A claim has requests, each for a number of devices or for all of a node, or with alternatives of which the first that a
node can give counts; and constraints, by which an attribute of the devices is the same, or different. A device is meant
if it satisfies the selectors of the class and of the request, has the capacities asked for, and no taint that the
request does not tolerate. What cannot be read so is an UnknownRequest, and then the pod fits nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from fastsim.kubernetes.devices.device_expressions import (
    EvaluationFault,
    Expression,
    UnsupportedExpression,
    expression_of,
)  # fmt: skip
from fastsim.kubernetes.devices.resource_slices import DeviceTaint, PublishedDevice
from fastsim.kubernetes.objects import Manifest, mapping, sequence
from fastsim.kubernetes.quantity import quantity

CLASS = "DeviceClass"
IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""Beginning of the resources that every class has, with its name behind it."""
ALL = 0
"""The number of devices of a request for all devices of a node."""
MOST_DEVICES = 32
"""Most devices of one claim."""
READ = ("deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity", "name")
"""Fields of a request; one with another field is unknown."""
OF_CLAIM, HARMLESS = ("requests", "constraints"), ("config",)
"""Fields of a claim that are read, and those without influence on its devices; a claim with another is unknown."""


class UnknownRequest(Exception):
    """A request that cannot be honoured, with the reason."""


class Alternative(NamedTuple):
    """Devices of one class: their number, or ``ALL``, and what is asked of each."""

    device_class: str
    selectors: tuple[str, ...] = ()
    number: int = 1
    admin: bool = False
    tolerations: tuple[tuple[str, str, str, str], ...] = ()
    capacity: tuple[tuple[str, Fraction], ...] = ()


class DeviceRequest(NamedTuple):
    """A request of a claim: its name, and alternatives with their own names, of which the first possible counts."""

    name: str
    alternatives: tuple[Alternative, ...]
    names: tuple[str, ...] = ("",)


class DeviceConstraint(NamedTuple):
    """An attribute that must be the same for all devices of some requests, or different; no names are all requests."""

    attribute: str
    distinct: bool = False
    requests: tuple[str, ...] = ()

    def concerns(self, request: DeviceRequest, number: int) -> bool:
        """Whether it is about an alternative of a request."""
        return not self.requests or not {request.name, f"{request.name}/{request.names[number]}"}.isdisjoint(
            self.requests
        )


class ClaimSpec(NamedTuple):
    """The requests of a claim."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()


class Classes:
    """DeviceClasses by name, and the resources of pods that stand for their devices."""

    def __init__(self, classes: Sequence[Manifest]) -> None:
        self._selectors = {item.name: tuple(_selectors(item.part("spec"), item.where)) for item in classes}
        # Of two classes for one resource the later one counts, or the first by name.
        ordered = sorted(classes, key=lambda item: item.name, reverse=True)
        ordered.sort(key=lambda item: str(item.part("metadata").get("creationTimestamp") or ""))
        named = {str(item.part("spec").get("extendedResourceName") or ""): item.name for item in ordered}
        self.resources = {f"{IMPLICIT}{item.name}": item.name for item in classes} | named
        self.resources.pop("", None)

    def meant(self, asked: Alternative, devices: Sequence[PublishedDevice]) -> list[PublishedDevice]:
        """The devices that are meant, whatever their taints; UnknownRequest if a selector cannot be evaluated."""
        if asked.device_class not in self._selectors:
            raise UnknownRequest(f"device class {asked.device_class} does not exist")
        texts = (*self._selectors[asked.device_class], *asked.selectors)
        try:
            expressions = [expression_of(text) for text in texts]
        except UnsupportedExpression as error:
            text = next(text for text in texts if not is_supported(text))
            raise UnknownRequest(f"selector {text!r}: {error} is not supported") from None
        return [device for device in devices if _meant(expressions, device) and _is_enough(asked, device)]


def is_supported(text: str) -> bool:
    """Whether an expression can be evaluated."""
    try:
        expression_of(text)
    except UnsupportedExpression:
        return False
    return True


def _meant(expressions: Sequence[Expression], device: PublishedDevice) -> bool:
    for expression in expressions:
        try:
            if not expression.holds(device.seen):
                return False
        except EvaluationFault as error:
            text = f"selector {expression.text!r}: {error} for device {'/'.join(device.identity)}"
            raise UnknownRequest(text) from None
    return True


def _is_enough(asked: Alternative, device: PublishedDevice) -> bool:
    """Whether a device has the capacities asked for."""
    return all((device.capacity(name) or Fraction(-1)) >= amount for name, amount in asked.capacity)


def tolerated(asked: Alternative, device: PublishedDevice) -> bool:
    """Whether a request tolerates every taint of a device."""
    return all(any(_tolerates(one, taint) for one in asked.tolerations) for taint in device.taints)


def claim_spec(spec: Mapping[str, Any], where: str) -> ClaimSpec:
    """The requests in the ``spec`` of a claim or of a template's claim."""
    devices = mapping(spec, "devices", where)
    if unknown := sorted(key for key in devices if key not in (*OF_CLAIM, *HARMLESS)):
        raise UnknownRequest(f"claim with {unknown[0]}")
    requests = tuple(_request(entry, where) for entry in sequence(devices, "requests", where))
    constraints = []
    for entry in sequence(devices, "constraints", where):
        attribute = entry.get("matchAttribute") or entry.get("distinctAttribute")
        if not attribute:
            raise UnknownRequest(f"constraint {dict(entry)!r}")
        listed = entry.get("requests") or []
        if not isinstance(listed, list):
            raise UnknownRequest(f"constraint {dict(entry)!r}")
        names = tuple(map(str, listed))
        constraints.append(DeviceConstraint(str(attribute), not entry.get("matchAttribute"), names))
    least = sum(min(alternative.number for alternative in request.alternatives) for request in requests)
    if least > MOST_DEVICES:
        raise UnknownRequest(f"{least} devices in a claim, of which {MOST_DEVICES} are the most")
    return ClaimSpec(requests, tuple(constraints))


def of_resource(device_class: str, count: int) -> ClaimSpec:
    """The claim of a pod that asks for a resource of a class."""
    return ClaimSpec((DeviceRequest("container", (Alternative(device_class, number=count),)),))


def _request(entry: Mapping[str, Any], where: str) -> DeviceRequest:
    """A request; before version v1 of the API its fields stand in the request itself."""
    name = str(entry.get("name") or "")
    listed = sequence(entry, "firstAvailable", where)
    exactly = mapping(entry, "exactly", where) or (entry if entry.get("deviceClassName") else {})
    bodies = listed or [exactly]
    alternatives = tuple(_alternative(body, f"{where}: request {name}") for body in bodies)
    return DeviceRequest(name, alternatives, tuple(str(body.get("name") or "") for body in bodies))


def _alternative(body: Mapping[str, Any], where: str) -> Alternative:
    unknown = sorted(key for key in body if key not in READ)
    mode, count = str(body.get("allocationMode") or "ExactCount"), body.get("count")
    if unknown or mode not in ("ExactCount", "All") or not body.get("deviceClassName"):
        raise UnknownRequest(f"request with {unknown[0] if unknown else mode if mode != 'ExactCount' else 'no class'}")
    count = 1 if count is None else count
    if type(count) is not int or count < 1:
        raise UnknownRequest(f"request with a count of {count!r}")
    amounts = mapping(mapping(body, "capacity", where), "requests", where)
    return Alternative(
        device_class=str(body["deviceClassName"]),
        selectors=tuple(_selectors(body, where)),
        number=ALL if mode == "All" else count,
        admin=bool(body.get("adminAccess")),
        tolerations=tuple(_tolerations(body, where)),
        capacity=tuple((str(name), quantity(amount, f"{where}: capacity")) for name, amount in sorted(amounts.items())),
    )


def _selectors(body: Mapping[str, Any], where: str) -> Iterator[str]:
    for entry in sequence(body, "selectors", where):
        expression = mapping(entry, "cel", where).get("expression")
        # A selector of a kind that is to come is one that no expression can be.
        yield str(expression or "")


def _tolerations(body: Mapping[str, Any], where: str) -> Iterator[tuple[str, str, str, str]]:
    for entry in sequence(body, "tolerations", where):
        key, operator = str(entry.get("key") or ""), str(entry.get("operator") or "Equal")
        yield key, operator, str(entry.get("value") or ""), str(entry.get("effect") or "")


def _tolerates(toleration: tuple[str, str, str, str], taint: DeviceTaint) -> bool:
    key, operator, value, effect = toleration
    if effect not in ("", taint.effect) or key not in ("", taint.key):
        return False
    return operator == "Exists" or (operator == "Equal" and bool(key) and value == taint.value)

"""Nodes where the claims of one pod can have their devices at one moment, found as kube-scheduler finds them.

Requests of all claims of the pod are tried together on the free devices of each node, with every alternative. Nothing
is an amount here, so sets of devices may overlap, and a device that several nodes reach counts on each of them; but it
holds only as long as no device is taken or given back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fastsim.kubernetes.devices.device_allocation import Bundle, Devices, FreeDevices, SharedAttribute
from fastsim.kubernetes.devices.device_demands import Supply
from fastsim.kubernetes.devices.device_requests import ALL, MOST_DEVICES, Alternative, ClaimSpec
from fastsim.kubernetes.devices.resource_slices import PublishedDevice

NONE: tuple[Devices, int] = (frozenset(), 1)
"""Devices and number of an alternative that a node cannot give."""


class ExactAllocation:
    """The free devices of each node, and the claims that they can satisfy."""

    def __init__(self, supply: Supply, free: Mapping[str, FreeDevices]) -> None:
        self._supply, self._free = supply, free
        self._reached: dict[str, list[PublishedDevice]] = {}
        for device in supply.of.values():
            for node in device.reach:
                self._reached.setdefault(node, []).append(device)

    def nodes(self, claims: Sequence[ClaimSpec]) -> list[str]:
        """Names of the nodes that have devices for all claims together; UnknownRequest if one cannot be honoured."""
        found = []
        for name in dict.fromkeys([*self._free, *self._reached]):
            near = self._near(name)
            if near.allocated(self._bundle(near, claims)) is not None:
                found.append(name)
        return found

    def _near(self, node: str) -> FreeDevices:
        """The devices that a node reaches."""
        own = self._free[node] if node in self._free else self._supply.free(node)
        others = [(self._free[device.node], device) for device in self._reached.get(node, ()) if device.node != node]
        return own.beside(others) if others else own

    def _bundle(self, near: FreeDevices, claims: Sequence[ClaimSpec]) -> Bundle:
        """The requests of all claims, with the devices of one node that they mean."""
        listed = [(number, request) for number, spec in enumerate(claims) for request in spec.requests]
        rules = []
        for number, spec in enumerate(claims):
            places = [place for place, (own, _) in enumerate(listed) if own == number]
            for rule in spec.constraints:
                concerned = frozenset(
                    (place, alternative) for place in places
                    for alternative in range(len(listed[place][1].alternatives))
                    if rule.concerns(listed[place][1], alternative)
                )  # fmt: skip
                rules.append(SharedAttribute(rule.attribute, rule.distinct, concerned))
        return Bundle(
            tuple(tuple(self._meant(near, one) for one in request.alternatives) for _, request in listed), tuple(rules),
            frozenset(
                (place, number) for place, (_, request) in enumerate(listed)
                for number, one in enumerate(request.alternatives) if one.admin
            ),
            tuple(number for number, _ in listed),
        )  # fmt: skip

    def _meant(self, near: FreeDevices, asked: Alternative) -> tuple[Devices, int]:
        """The devices among some that an alternative means, and how many of them it takes."""
        devices = self._supply.all_of_nodes(asked) if asked.number == ALL else self._supply.meant(asked)
        own = devices & near.devices.keys()
        if asked.number != ALL:
            return own, asked.number
        return (own, len(own)) if 0 < len(own) <= MOST_DEVICES else NONE

"""Ports of the node that Kubernetes' pods take, as node expressions, groups and rules of a pod table.

Two pods that take the same port and protocol cannot share a node, unless both name an address and these differ. A
waiting pod stays off the nodes where pods hold its ports. Pods of which any two clash form a group, of which one may
be on a node; a pod that is in a group by its anti-affinity stays in that one. Where waiting pods of different groups
clash, a rule of the column ``near`` keeps each from nodes with a pod of a set: those that take a port of a list.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from fastsim.errors import InputError
from fastsim.hardware.node_constraints import Constraint, NearRule
from fastsim.kubernetes.controllers import PodManifest
from fastsim.kubernetes.objects import sequence
from fastsim.kubernetes.pod_rules.node_affinity import OVER

EVERY_ADDRESS = "0.0.0.0"
"""Address of a port that is taken on all addresses of the node; the address of ports that name none."""
PROTOCOLS = ("TCP", "UDP", "SCTP")
"""Protocols of ports, the usual one first."""
MOST_PORT = 65_535
"""The largest number of a port."""
TAKEN = "hostPort:"
"""Beginning of the names of groups by port, and of the first value of expressions against nodes with taken ports."""
TAKING = "taking a port of"
"""How the name of a set says which pods it has."""


class HostPort(NamedTuple):
    """A port of the node: protocol, address, number."""

    protocol: str
    address: str
    number: int

    def clashes(self, other: HostPort) -> bool:
        """Whether two pods with these ports cannot share a node."""
        same = self.address == other.address or EVERY_ADDRESS in (self.address, other.address)
        return same and self.protocol == other.protocol and self.number == other.number

    @property
    def text(self) -> str:
        """Protocol, address and number: ``TCP/8080``, ``UDP/10.0.0.1:53``."""
        address = "" if self.address == EVERY_ADDRESS else f"{self.address}:"
        return f"{self.protocol}/{address}{self.number}"


Ports = frozenset[HostPort]
NONE: Ports = frozenset()
"""Ports of a pod that takes none."""


class PortRules(NamedTuple):
    """Rules of ports for one pod: its group, node expressions, rules about pods near, the sets that it is in."""

    group: str | None = None
    constraints: tuple[Constraint, ...] = ()
    near: tuple[NearRule, ...] = ()
    sets: tuple[str, ...] = ()


NO_PORTS = PortRules()
"""What follows for a pod that takes no ports."""


class PortKind(NamedTuple):
    """Properties of a pod that rules of ports depend on: its ports, and its group by anti-affinity."""

    ports: Ports
    apart: str | None


class HostPorts:
    """Ports of the pods of a cluster; ``apart`` is the group that a pod has by anti-affinity, None without one."""

    def __init__(
        self, pods: Iterable[PodManifest] = (), apart: Callable[[PodManifest], str | None] = lambda pod: None
    ) -> None:
        self._pods, self._apart = pods, apart
        self._known: dict[tuple[PortKind, bool], PortRules] = {}
        self._groups: dict[PortKind, str] = {}

    def rules(self, pod: PodManifest) -> PortRules:
        """The rules for this pod; a pod on a node has its group only."""
        ports = ports_of(pod)
        if not ports:
            return NO_PORTS
        key = PortKind(ports, self._apart(pod)), bool(pod.node)
        rules = self._known.get(key)
        if rules is None:
            found = PortRules(self._group(key[0])) if pod.node else self._rules(key[0])
            rules = self._known[key] = found._replace(sets=self._sets.of(ports))
        return rules

    @cached_property
    def _sets(self) -> PortSets:
        """Sets of pods that rules of pods that wait count."""
        return PortSets(name for kind in self._split[1] for name in self._named(kind))

    @cached_property
    def _split(self) -> tuple[dict[PortKind, set[str]], set[PortKind]]:
        """Nodes of each kind of pods that are on nodes, and the kinds of waiting pods."""
        there: dict[PortKind, set[str]] = {}
        waiting: set[PortKind] = set()
        for pod in self._pods:
            gone = pod.status.get("phase") in OVER or (not pod.node and pod.is_held)
            ports = frozenset() if gone else ports_of(pod)
            if ports and pod.node:
                there.setdefault(PortKind(ports, self._apart(pod)), set()).add(pod.node)
            elif ports:
                waiting.add(PortKind(ports, self._apart(pod)))
        return there, waiting

    def _rules(self, kind: PortKind) -> PortRules:
        nodes = {name for other, names in self._split[0].items() if self._unrelated(kind, other) for name in names}
        taken = (Constraint("name", "NotIn", (_name(kind.ports), *sorted(nodes))),) if nodes else ()
        near = tuple(NearRule("ports", name, "name") for name in self._named(kind))
        return PortRules(self._group(kind), taken, near)

    def _named(self, kind: PortKind) -> list[str]:
        """The set of pods from which a kind stays away, if pods wait that clash with it and are not in its group."""
        waiting = self._split[1]
        return [name_of_set(kind.ports)] if any(self._unrelated(kind, other) for other in waiting) else []

    def _unrelated(self, kind: PortKind, other: PortKind) -> bool:
        """Whether pods of two kinds clash without being of one group."""
        return clash(kind.ports, other.ports) and self._group(kind) != self._group(other)

    def _group(self, kind: PortKind) -> str:
        """The group of a kind: that of its anti-affinity, or all kinds that clash with it and with each other."""
        if kind.apart is not None:
            return kind.apart
        if kind not in self._groups:
            mates = self._clashing(kind.ports)
            mutual = all(self._clashing(ports) == mates for ports in mates)
            self._groups[kind] = _name(min(mates, key=_order) if mutual else kind.ports)
        return self._groups[kind]

    def _clashing(self, ports: Ports) -> frozenset[Ports]:
        """Sets of ports that clash with this one, itself among them."""
        there, waiting = self._split
        return frozenset({ports, *(kind.ports for kind in (*there, *waiting) if clash(ports, kind.ports))})


class PortSets:
    """Sets of pods that take a port of a list, by their names; other names are passed over."""

    def __init__(self, names: Iterable[str]) -> None:
        self._lists = {name: frozenset(map(_port, json.loads(name)[1])) for name in names if is_port_set(name)}
        self._known = dict[Ports, tuple[str, ...]]()

    def __bool__(self) -> bool:
        return bool(self._lists)

    def of(self, ports: Ports) -> tuple[str, ...]:
        """Names of the sets that pods with these ports are in."""
        if ports not in self._known:
            self._known[ports] = tuple(sorted(name for name, listed in self._lists.items() if clash(ports, listed)))
        return self._known[ports]


def name_of_set(ports: Ports) -> str:
    """The name of the set of pods that clash with these ports."""
    return json.dumps([TAKING, sorted(port.text for port in ports)])


def is_port_set(name: str) -> bool:
    """Whether a name is that of such a set."""
    return name.startswith(json.dumps([TAKING])[:-1])


def _port(text: str) -> HostPort:
    """The port of its text."""
    protocol, _, rest = text.partition("/")
    address, _, number = rest.rpartition(":")
    return HostPort(protocol, address or EVERY_ADDRESS, int(number))


def ports_of(pod: PodManifest) -> Ports:
    """Ports of the node that a pod takes; on the node's own network these are all ports of its containers."""
    containers = sequence(pod.spec, "containers", pod.where)
    if not pod.spec.get("initContainers") and not any(one.get("ports") for one in containers):
        return NONE
    return frozenset(_ports(pod))


def clash(first: Ports, second: Ports) -> bool:
    """Whether pods with these ports cannot share a node."""
    return any(one.clashes(other) for one in first for other in second)


def _ports(pod: PodManifest) -> Iterator[HostPort]:
    starting = (item for item in sequence(pod.spec, "initContainers", pod.where) if item.get("restartPolicy"))
    side_cars = [item for item in starting if item["restartPolicy"] == "Always"]
    for container in (*sequence(pod.spec, "containers", pod.where), *side_cars):
        for port in sequence(container, "ports", pod.where):
            number = port.get("hostPort") or (port.get("containerPort") if pod.spec.get("hostNetwork") else None)
            if not number:
                continue
            protocol = port.get("protocol") or PROTOCOLS[0]
            if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MOST_PORT:
                raise InputError(f"{pod.where}: ports: hostPort", repr(number), f"1 to {MOST_PORT:,}")
            if protocol not in PROTOCOLS:
                raise InputError(f"{pod.where}: ports: protocol", repr(protocol), f"one of {', '.join(PROTOCOLS)}")
            yield HostPort(str(protocol), str(port.get("hostIP") or EVERY_ADDRESS), number)


def _order(ports: Ports) -> tuple[int, int, str]:
    """Sort key of sets of ports: the fewest ports first, then those on all addresses."""
    return len(ports), sum(port.address != EVERY_ADDRESS for port in ports), _name(ports)


def _name(ports: Ports) -> str:
    """A set of ports as the name of a group."""
    return TAKEN + ",".join(sorted(port.text for port in ports))

"""Ports of nodes that pods take: which clash, the groups they form, and placements of dumps with them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fastsim as fs
from fastsim.decisions.explain import explained
from fastsim.errors import InputError
from fastsim.hardware.node_constraints import Constraint, NearRule
from fastsim.kubernetes.controllers import pods
from fastsim.kubernetes.nodes import HOSTNAME
from fastsim.kubernetes.pod_rules.host_ports import HostPort, HostPorts, PortRules, PortSets, name_of_set, ports_of
from fastsim.kubernetes.pod_rules.node_affinity import HARD, Places
from fastsim.scenario.scenario import Scenario
from tests.objects import manifest, node, pod, written

RUNS: dict[str, Any] = {"status": {"phase": "Running"}}
HTTP, DNS = {"hostPort": 80}, {"hostPort": 53, "protocol": "UDP"}
INSIDE = {"hostPort": 80, "hostIP": "10.0.0.1"}
OUTSIDE = {"hostPort": 80, "hostIP": "10.0.0.2"}


def takes(name: str, *ports: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A pod with these ports."""
    made = pod(name, {"cpu": 1}, **more)
    made["spec"]["containers"][0]["ports"] = list(ports)
    return made


def runs(name: str, where: str, *ports: dict[str, Any], **more: Any) -> dict[str, Any]:
    return takes(name, *ports, nodeName=where, **RUNS, **more)


def rules(*objects: dict[str, Any]) -> PortRules:
    """The rules for the first of some pods."""
    listed = list(pods([manifest(item) for item in objects], Places(), Counter()))
    return HostPorts(listed).rules(listed[0])


def placed(path: Path, *objects: dict[str, Any]) -> dict[str, str | None]:
    """The node of each pod."""
    text = f"kubernetes:{written(path / 'a.json', *objects)}"
    rows = fs.simulate(text, text, "best_fit").placements.select("native_id", "node").rows()
    return {name.removeprefix("default/"): where for name, where in rows}


def apart() -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": "w"}}, "topologyKey": HOSTNAME}
    return {"labels": {"app": "w"}, "affinity": {"podAntiAffinity": {HARD: [term]}}}


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [(HTTP, HTTP, True), (HTTP, {"hostPort": 81}, False), ({"hostPort": 53}, DNS, False), (HTTP, INSIDE, True),
     (INSIDE, OUTSIDE, False), (INSIDE, INSIDE, True), ({**HTTP, "hostIP": "0.0.0.0"}, OUTSIDE, True),
     (HTTP, {"containerPort": 80}, False)],
)  # fmt: skip
def test_which_ports_clash(tmp_path: Path, first: dict[str, Any], second: dict[str, Any], same: bool) -> None:
    for left, right in ((first, second), (second, first)):
        waits = {"a": None if same else "n"}
        assert placed(tmp_path, node("n"), runs("r", "n", left), takes("a", right)) == {"r": "n", **waits}


def test_the_node_whose_port_is_free(tmp_path: Path) -> None:
    there = [node("m"), node("n"), runs("r", "m", HTTP, DNS), runs("over", "n", HTTP)]
    there[-1]["status"] = {"phase": "Succeeded"}
    assert placed(tmp_path, *there, takes("a", HTTP), takes("b", HTTP), takes("c")) == {
        "r": "m", "a": "n", "b": None, "c": "m",
    }  # fmt: skip


def test_ports_of_a_pod() -> None:
    (network,) = pods([manifest(takes("a", {"containerPort": 80}, HTTP, hostNetwork=True))], Places(), Counter())
    assert ports_of(network) == {HostPort("TCP", "0.0.0.0", 80)}
    starting = [{"name": "i", "ports": [HTTP]}, {"name": "s", "restartPolicy": "Always", "ports": [DNS]}]
    (pod_,) = pods([manifest(takes("a", initContainers=starting))], Places(), Counter())
    assert ports_of(pod_) == {HostPort("UDP", "0.0.0.0", 53)}  # those of side-cars, not those that end


def test_pods_of_which_any_two_clash_are_a_group() -> None:
    web = PortRules("hostPort:TCP/80")
    assert rules(takes("a", HTTP), takes("b", INSIDE), runs("r", "n", HTTP, DNS)) == web
    assert rules(takes("a", INSIDE), takes("b", HTTP)) == web
    assert rules(runs("r", "n", HTTP), takes("b", HTTP)) == web
    assert rules(takes("a"), takes("b", HTTP)) == PortRules()


def test_clashes_beyond_a_group_are_expressions_and_rules_about_pods_near() -> None:
    group, away = "hostPort:TCP/80", Constraint("name", "NotIn", ("hostPort:TCP/80", "m", "n"))
    running = [runs("r", "n", INSIDE), runs("s", "m", OUTSIDE)]
    assert rules(takes("a", HTTP), *running) == PortRules(group, (away,))
    assert rules(takes("a", HTTP), *running, takes("b", HTTP)) == PortRules(group, (away,))
    gated = takes("b", INSIDE, schedulingGates=[{"name": "g"}])
    assert rules(takes("a", HTTP), *running, gated) == PortRules(group, (away,))
    own, theirs = '["taking a port of", ["TCP/80"]]', '["taking a port of", ["TCP/10.0.0.1:80"]]'
    near = (NearRule("ports", own, "name"),)
    assert rules(takes("a", HTTP), *running, takes("b", INSIDE)) == PortRules(group, (away,), near, (theirs, own))
    found = rules(runs("s", "m", OUTSIDE), runs("r", "n", INSIDE), takes("a", HTTP), takes("b", INSIDE))
    assert found.near == () and found.sets == (own,), "a pod on a node counts for those that wait"


def test_sets_have_the_pods_that_take_a_port_of_theirs() -> None:
    ports = {name: frozenset({port}) for name, port in (
        ("all", HostPort("TCP", "0.0.0.0", 80)), ("one", HostPort("TCP", "10.0.0.1", 80)),
        ("six", HostPort("TCP", "fd00::1", 80)), ("dns", HostPort("UDP", "0.0.0.0", 80)),
    )}  # fmt: skip
    names = {name: name_of_set(listed) for name, listed in ports.items()}
    sets = PortSets([*names.values(), "another"])
    held = {name: {of for of in names if names[of] in sets.of(listed)} for name, listed in ports.items()}
    assert held == {"all": {"all", "one", "six"}, "one": {"all", "one"}, "six": {"all", "six"}, "dns": {"dns"}}
    assert not PortSets(["another"]) and sets.of(frozenset()) == ()


def test_waiting_pods_of_other_groups_are_kept_apart_by_their_ports(tmp_path: Path) -> None:
    """One takes the port on all addresses, two on one each, which may share a node."""
    there = [node("m"), node("n"), takes("a", HTTP), takes("b", INSIDE), takes("c", OUTSIDE), takes("d", HTTP, DNS)]
    found = placed(tmp_path, *there)
    assert found["a"] != found["b"] == found["c"] is not None and found["d"] is None
    first = placed(tmp_path, node("n"), takes("b", INSIDE), takes("c", OUTSIDE), takes("d", HTTP))
    assert first == {"b": "n", "c": "n", "d": None}


def test_a_group_by_anti_affinity_and_ports_are_kept_apart(tmp_path: Path) -> None:
    nodes = [node(name, {HOSTNAME: name}) for name in "lmn"]
    other = runs("r", "l", HTTP)  # clashes, and is not in the group of the others
    sets = [runs("w0", "m", HTTP, **apart()), takes("w1", HTTP, **apart()), takes("w2", HTTP, **apart())]
    assert placed(tmp_path, *nodes, other, *sets) == {"r": "l", "w0": "m", "w1": "n", "w2": None}
    plain = runs("r", "l", **apart())  # is in the group, and takes no port
    assert placed(tmp_path, *nodes, plain, *sets) == {"r": "l", "w0": "m", "w1": "n", "w2": None}
    assert placed(tmp_path, *nodes, takes("x", HTTP), *sets) == {"w0": "m", "w1": "l", "w2": "n", "x": None}


def test_the_words_about_a_waiting_pod_that_took_the_port(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", node("n"), takes("b", INSIDE), takes("c", OUTSIDE), takes("d", HTTP))
    cluster, workload = fs.Cluster.from_kubernetes(path), fs.Workload.from_kubernetes(path)
    found = explained(Scenario(cluster, workload, "best_fit"), ["d"])
    assert found.summary(found.decisions[0]) == (
        "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
    )
    assert found.frame()["why"].to_list() == ["a pod there has a host port of its own"]


def test_a_port_that_running_pods_have_in_another_file(tmp_path: Path) -> None:
    now = written(tmp_path / "now.json", node("m"), node("n"), runs("r", "m", HTTP))
    more = written(tmp_path / "more.json", takes("a", HTTP), takes("b", INSIDE))
    result = fs.simulate(f"kubernetes:{now}", f"kubernetes:{more}", "best_fit")
    assert dict(result.placements.select("native_id", "node").rows()) == {
        "default/r": "m", "default/a": "n", "default/b": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    "port", [{"hostPort": "http"}, {"hostPort": 70_000}, {"hostPort": True}, {**HTTP, "protocol": "HTTP"}], ids=str
)
def test_bad_ports_are_named(port: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="Pod a: ports: "):
        rules(takes("a", port))

"""Documented preferences, which forbid no node, each on a dump worked by hand and a policy that scores them alone.

Nodes with equal points go by their names, so a pod that prefers none goes to the first.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

import fastsim as fs
from tests.documented.dumps import FORMS, Dump, places, unexpected
from tests.documented.test_rules_of_pods import CPU, HARD, HOST, RUNS, SOFT, ZONE, expression, in_zone, spread
from tests.objects import node, pod

Preferring = partial(Dump, policy="preferred")
WEB = {"app": "w"}
PAIR = [node("n1", {HOST: "n1"}), node("n2", {HOST: "n2", "disk": "ssd"})]
SQUARE = [in_zone("a1", "a"), in_zone("a2", "a"), in_zone("b1", "b"), in_zone("b2", "b")]
MIB = 1 << 20


def liking(name: str, *terms: tuple[int, dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A pod with preferred node affinity: weights and expressions."""
    listed = [{"weight": weight, "preference": {"matchExpressions": [item]}} for weight, item in terms]
    return pod(name, CPU, affinity={"nodeAffinity": {SOFT: listed}}, **more)


def near(kind: str, *terms: tuple[int, dict[str, str]], topology: str = HOST) -> dict[str, Any]:
    """Preferred affinity or anti-affinity: weights and labels of the other pods."""
    return {kind: {SOFT: [
        {"weight": weight, "podAffinityTerm": {"topologyKey": topology, "labelSelector": {"matchLabels": labels}}}
        for weight, labels in terms
    ]}}  # fmt: skip


def runs(name: str, where: str, **more: Any) -> dict[str, Any]:
    return pod(name, CPU, nodeName=where, status=RUNS, **more)


def avoided(name: str, **labels: str) -> dict[str, Any]:
    return node(name, labels, {"taints": [{"key": "k", "value": "v", "effect": "PreferNoSchedule"}]})


def with_image(name: str, mib: int, *names: str) -> dict[str, Any]:
    item = node(name)
    return {**item, "status": {**item["status"], "images": [{"names": [*names], "sizeBytes": mib * MIB}]}}


def of_image(name: str, image: str) -> dict[str, Any]:
    item = pod(name, CPU)
    return {**item, "spec": {**item["spec"], "containers": [{**item["spec"]["containers"][0], "image": image}]}}


SSD, NVME = expression("disk", "In", "ssd"), expression("disk", "In", "nvme")
DUMPS = [
    Preferring("the scheduler prefers nodes with the labels of preferred node affinity",
               [*PAIR, liking("a", (1, SSD)), pod("b", CPU)], {"a": "n2", "b": "n1"}),
    Preferring("if no node has them, the pod is scheduled all the same",
               [*PAIR, liking("a", (100, NVME))], {"a": "n1"}),
    Preferring("weights of the terms that a node meets are added, and the highest sum is best",
               [node("n1", {"disk": "nvme"}), node("n2", {"disk": "ssd", "gen": "7"}),
                liking("a", (60, NVME), (40, SSD), (30, expression("gen", "Exists")))], {"a": "n2"}),
    Preferring("an empty preferred term is no preference",
               [*PAIR, pod("a", CPU, affinity={"nodeAffinity": {SOFT: [{"weight": 9, "preference": {}}]}})],
               {"a": "n1"}),
    Preferring("a taint PreferNoSchedule is avoided if that is possible",
               [avoided("n1"), node("n2"), pod("a", CPU)], {"a": "n2"}),
    Preferring("it is not avoided by pods that tolerate it",
               [avoided("n1"), node("n2"), pod("a", CPU, tolerations=[{"key": "k", "operator": "Exists"}]),
                pod("b", CPU, tolerations=[{"key": "k", "operator": "Exists", "effect": "NoSchedule"}])],
               {"a": "n1", "b": "n2"}),
    Preferring("the only node may have it", [avoided("n1"), pod("a", CPU)], {"a": "n1"}),
    Preferring("preferred affinity draws a pod to the domain of the others",
               [*SQUARE, runs("x", "b2", labels=WEB), pod("a", CPU, affinity=near("podAffinity", (1, WEB))),
                pod("b", CPU, affinity=near("podAffinity", (1, WEB), topology=ZONE))],
               {"x": "b2", "a": "b2", "b": "b1"}),
    Preferring("preferred anti-affinity keeps pods apart while there is another node",
               [*PAIR, *(pod(name, CPU, labels=WEB, affinity=near("podAntiAffinity", (100, WEB))) for name in "abc")],
               {"a": "n1", "b": "n2", "c": "n1"}),
    Preferring("a topology key that no node has brings no points",
               [*PAIR, runs("x", "n2", labels=WEB),
                pod("a", CPU, affinity=near("podAffinity", (9, WEB), topology=ZONE))],
               {"x": "n2", "a": "n1"}),
    Preferring("heavier terms outweigh lighter ones",
               [*PAIR, runs("x", "n1", labels=WEB), runs("y", "n1", labels={"app": "y"}), pod("a", CPU, affinity={
                   **near("podAffinity", (10, WEB)), **near("podAntiAffinity", (11, {"app": "y"}))})],
               {"x": "n1", "y": "n1", "a": "n2"}),
    Preferring("preferences of pods that run count for the pods that they select",
               [*PAIR, runs("x", "n1", affinity=near("podAntiAffinity", (5, WEB))), pod("a", CPU, labels=WEB),
                pod("b", CPU)], {"x": "n1", "a": "n2", "b": "n1"}),
    Preferring("so does their required affinity, a little",
               [*PAIR, runs("x", "n2", labels={"app": "x"}, affinity={"podAffinity": {HARD: [
                   {"topologyKey": HOST, "labelSelector": {"matchLabels": WEB}}]}}), pod("a", CPU, labels=WEB)],
               {"x": "n2", "a": "n2"}),
    Preferring("ScheduleAnyway gives precedence to nodes that reduce the skew",
               [*SQUARE, *(runs(f"x{n}", "a2", labels=WEB) for n in range(2)), *(
                   pod(name, CPU, labels=WEB, topologySpreadConstraints=spread(1, when="ScheduleAnyway"))
                   for name in "abc")], {"x0": "a2", "x1": "a2", "a": "b1", "b": "b1", "c": {"a1", "b1"}}),
    Preferring("a node without the topology key has the lowest score",
               [node("a0"), in_zone("b1", "b"), runs("x", "b1", labels=WEB),
                pod("a", CPU, labels=WEB, topologySpreadConstraints=spread(1, when="ScheduleAnyway"))],
               {"x": "b1", "a": "b1"}),
    Preferring("nodes that have the images of the pod are favoured",
               [node("n1"), with_image("n2", 900, "repo/big:1", "repo/big@sha256:00"), of_image("a", "repo/big:1"),
                of_image("b", "repo/other:1")], {"a": "n2", "b": "n1"}),
    Preferring("an image without a tag is the latest one",
               [node("n1"), with_image("n2", 900, "repo/big:latest"), of_image("a", "repo/big")], {"a": "n2"}),
    Preferring("small images are worth no point",
               [node("n1"), with_image("n2", 40, "repo/small:1"), of_image("a", "repo/small:1")], {"a": "n1"}),
    Preferring("a taint to avoid weighs more than node affinity",
               [avoided("n1", disk="ssd"), node("n2"), liking("a", (100, SSD))], {"a": "n2"}),
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dump", DUMPS, ids=str)
def test_pods_are_where_the_preference_says(dump: Dump, form: str, tmp_path: Path) -> None:
    assert unexpected(dump, form, tmp_path) == {}


@pytest.mark.parametrize("dump", DUMPS[:1], ids=str)
def test_a_policy_without_scores_of_them_says_so_once(dump: Dump, tmp_path: Path) -> None:
    text = f"kubernetes:{tmp_path / 'dump.json'}"
    places(dump, "json", tmp_path)
    with pytest.warns(fs.ColumnIgnored, match=r"preferences \(without a policy such as gpu_packing \+ preferred\)"):
        fs.simulate(text, text, "gpu_packing", record="summary")

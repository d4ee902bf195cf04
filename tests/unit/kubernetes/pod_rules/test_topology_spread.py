"""Rules of spread over topologies: columns of a pod table, sets of pods, and runs with them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fastsim as fs
from fastsim.cli.main import exit_code
from fastsim.decisions.explain import explained
from fastsim.decisions.kube_extender import Extender
from fastsim.decisions.live_cluster import LiveSnapshot
from fastsim.errors import InputError
from fastsim.hardware.node_constraints import Constraint
from fastsim.kubernetes.controllers import PodManifest, pods
from fastsim.kubernetes.nodes import Taint
from fastsim.kubernetes.pod_rules.node_affinity import Places
from fastsim.kubernetes.pod_rules.topology_spread import (
    LOOSE,
    Peer,
    label_constraints,
    peer_of,
    rules_with,
    spread_notices,
    spread_rules,
    with_sets,
)
from fastsim.kubernetes.snapshot import Snapshot
from tests.objects import manifest, node, pod, workload_of, written

ZONE = "topology.kubernetes.io/zone"
WEB = {"app": "web"}
TEXT = "node(s) didn't match pod topology spread constraints"


def rule(**more: Any) -> dict[str, Any]:
    """A rule about pods of the app, zone by zone."""
    selector = {"matchLabels": WEB}
    stated = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {**stated, **more}


def read(body: dict[str, Any]) -> PodManifest:
    [listed] = pods([manifest(body)], Places(), Counter())
    return listed


def rules(*stated: dict[str, Any], places: Places | None = None, **spec: Any) -> list[dict[str, Any]]:
    body = pod("w", labels={**WEB, "hash": "7"}, topologySpreadConstraints=list(stated), **spec)
    return spread_rules(read(body), places or Places())


def web(name: str, *stated: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return pod(name, {"cpu": "1"}, labels=WEB, topologySpreadConstraints=list(stated or (rule(),)), **spec)


def zones(**counts: int) -> list[dict[str, Any]]:
    """So many nodes of each zone: x0, x1, y0."""
    return [node(f"{zone}{n}", labels={ZONE: zone}) for zone, count in counts.items() for n in range(count)]


def nodes_of(path: Path, **options: Any) -> dict[str, str | None]:
    """The node of each pod after a run."""
    result = fs.simulate(cluster=f"kubernetes:{path}", workload=f"kubernetes:{path}", policy="best_fit", **options)
    frame = result.placements.sort("attempt")
    return dict(zip(frame["native_id"].str.strip_prefix("default/"), frame["node"], strict=True))


def test_a_rule_has_its_set_label_and_limits() -> None:
    [plain] = rules(rule())
    assert plain == {"pods": '["default", {"matchLabels": {"app": "web"}}]', "topology": ZONE, "max_skew": 1,
                     "min_domains": 1, "counted": []}  # fmt: skip
    [more] = rules(
        rule(maxSkew=3, minDomains=2, matchLabelKeys=["hash", "absent"], topologyKey="kubernetes.io/hostname")
    )
    assert more["topology"] == "name" and (more["max_skew"], more["min_domains"]) == (3, 2)
    assert more["pods"] == ('["default", {"matchExpressions": [{"key": "hash", "operator": "In", "values": ["7"]}], '
                            '"matchLabels": {"app": "web"}}]')  # fmt: skip
    assert label_constraints([plain, more, plain]) == [Constraint(ZONE, "Exists")]


def test_policies_say_which_nodes_count() -> None:
    places = Places(taints=[Taint("only", "gpu", "NoSchedule")])
    ssd = {"key": "disk", "op": "In", "values": ["ssd"]}
    taint = {"key": Taint("only", "gpu", "NoSchedule").label, "op": "DoesNotExist", "values": []}
    spec: dict[str, Any] = {"places": places, "nodeSelector": {"disk": "ssd"}}
    for policies, counted in (
        ({}, [ssd]), ({"nodeAffinityPolicy": "Ignore"}, []), ({"nodeTaintsPolicy": "Honor"}, [ssd, taint]),
        ({"nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}, [taint]),
    ):  # fmt: skip
        assert rules(rule(**policies), **spec)[0]["counted"] == counted
    tolerates = [{"key": "only", "operator": "Exists"}]
    assert rules(rule(nodeTaintsPolicy="Honor"), places=places, tolerations=tolerates)[0]["counted"] == []


def test_rules_of_preference_stand_apart() -> None:
    soft = rule(whenUnsatisfiable="ScheduleAnyway")
    assert rules(soft) == [] and rules(soft, rule()) == rules(rule())
    assert rules_with(read(web("a", soft, rule())), LOOSE, Places()) == rules(rule())
    odd = rule(whenUnsatisfiable="Sometimes")
    assert spread_notices(read(web("a", odd, odd, soft))) == ["pods: topologySpreadConstraints with Sometimes"]


@pytest.mark.parametrize(("more", "text"), [
    ({"topologyKey": ""}, "topologyKey"), ({"maxSkew": 0}, "maxSkew"), ({"maxSkew": "1"}, "maxSkew"),
    ({"minDomains": True}, "minDomains"), ({"nodeTaintsPolicy": "honor"}, "Honor or Ignore"),
    ({"matchLabelKeys": "hash"}, "a list of texts"),
    ({"labelSelector": {"matchExpressions": [{"key": "a"}]}}, "an operator"),
])  # fmt: skip
def test_other_forms_are_refused(more: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        rules(rule(**more))
    with pytest.raises(InputError, match="at most 8"):
        rules(*[rule()] * 9)


def test_pods_are_in_the_sets_that_select_them() -> None:
    body = web("a")
    mine, empty = rules(rule())[0], rules(rule(labelSelector={}))[0]
    either = rules(rule(labelSelector={"matchExpressions": [{"key": "app", "operator": "Exists"}]}))[0]
    gone = {**body, "metadata": {**body["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    other = {**body, "metadata": {**body["metadata"], "namespace": "else"}}
    rows: list[dict[str, Any]] = [
        {"peer": read(item), "spread": None, "spread_sets": None, "near_sets": ()}
        for item in (body, gone, other, pod("p"))
    ]
    assert with_sets(rows) == rows
    rows[0]["spread"] = [mine, empty, either]
    found = [row["spread_sets"] for row in with_sets(rows)]
    assert found == [sorted([mine["pods"], either["pods"]]), None, None, None]
    assert [row["spread_sets"] for row in with_sets(rows[1:], [mine["pods"]])] == [None] * 3
    assert peer_of(read(gone)) == Peer("default", (("app", "web"),), False)


def test_waiting_pods_spread_over_zones(tmp_path: Path) -> None:
    there = [web(f"p{n}") for n in range(4)]
    path = written(tmp_path / "a.json", *zones(x=2, y=1), *there)
    placed = nodes_of(path)
    assert sorted(str(name)[0] for name in placed.values()) == ["x", "x", "y", "y"]


def test_pods_that_run_and_nodes_without_the_label(tmp_path: Path) -> None:
    running = [web(f"r{n}", nodeName="x0", status={"phase": "Running"}) for n in range(2)]
    path = written(tmp_path / "a.json", *zones(x=1, y=1), node("bare"), *running, web("p"))
    assert nodes_of(path)["p"] == "y0"
    decisions = fs.explain(fs.Scenario(cluster=f"kubernetes:{path}", workload=f"kubernetes:{path}", policy="best_fit"),
                           "default/p", attempt="first")  # fmt: skip
    why = dict(zip(decisions["node"], decisions["why"], strict=True))
    assert why["x0"] == "3 pods of its set more than in the domain with the fewest, at most 1"
    assert why["bare"] == f"no label {ZONE}, needs {ZONE} Exists"
    assert dict(zip(decisions["node"], decisions["failed"], strict=True))["x0"] == "spread"


def test_the_message_is_kube_schedulers(tmp_path: Path) -> None:
    full = pod("f", {"cpu": "8"}, nodeName="y0", status={"phase": "Running"})
    running = web("r", nodeName="x0", status={"phase": "Running"})
    path = written(tmp_path / "a.json", *zones(x=1, y=1), node("bare"), running, full, web("p"))
    source = fs.Scenario(cluster=f"kubernetes:{path}", workload=f"kubernetes:{path}", policy="best_fit")
    explanation = explained(source, "default/p", attempt="first")
    assert explanation.summary(explanation.decisions[0]) == (
        f"0/3 nodes are available: 1 Insufficient cpu, 1 {TEXT}, 1 {TEXT} (missing required label)."
    )


def test_the_extender_counts_for_a_pod_it_has_not_seen(tmp_path: Path) -> None:
    running = [pod(f"r{n}", labels=WEB, nodeName="x0", status={"phase": "Running"}) for n in range(2)]
    path = written(tmp_path / "a.json", *zones(x=1, y=1), *running)
    extender = Extender(LiveSnapshot(str(path)), "best_fit")
    answer = extender.filter({"Pod": web("p"), "NodeNames": ["x0", "y0"]})
    assert answer["NodeNames"] == ["y0"] and list(answer["FailedNodes"]) == ["x0"]
    assert answer["FailedAndUnresolvableNodes"] == {}


def test_fewest_domains(tmp_path: Path) -> None:
    wide = [web(f"p{n}", rule(minDomains=3)) for n in range(3)]
    path = written(tmp_path / "a.json", *zones(x=1, y=1), *wide)
    assert sorted(map(str, nodes_of(path, queue="fifo_skip").values())) == ["None", "x0", "y0"]


def test_a_pod_that_starts_opens_domains_to_those_before_it(tmp_path: Path) -> None:
    """p0 may not go beside r; p1 starts in the other zone although it has no rule, and p0 follows at once."""
    running = web("r", nodeName="x0", status={"phase": "Running"})
    full = pod("f", {"cpu": "7500m"}, nodeName="y0", status={"phase": "Running"})
    small = pod("p1", {"cpu": "500m"}, labels=WEB)
    path = written(tmp_path / "a.json", *zones(x=1, y=1), running, full, web("p0"), small)
    placed = nodes_of(path, queue="fifo_skip")
    assert placed["p0"] == "x0" and placed["p1"] in ("x0", "y0")


def test_preemption_counts_what_goes(tmp_path: Path) -> None:
    classes = {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10}
    running = [web(f"r{n}", nodeName="x0", status={"phase": "Running"}) for n in range(2)]
    full = pod("f", {"cpu": "8"}, nodeName="y0", status={"phase": "Running"}, priority=20)
    path = written(tmp_path / "a.json", *zones(x=1, y=1), classes, *running, full, web("p", priorityClassName="high"))
    result = fs.simulate(cluster=f"kubernetes:{path}", workload=f"kubernetes:{path}", policy="best_fit",
                         queue="fifo_skip", preempt="priority")  # fmt: skip
    last = result.placements.sort("attempt").group_by("native_id", maintain_order=True).last()
    assert dict(zip(last["native_id"], last["node"], strict=True))["default/p"] == "x0"
    assert sorted(result.placements.filter(result.placements["reason"] == "preempted")["native_id"]) == [
        "default/r0", "default/r1",
    ]  # fmt: skip


@pytest.mark.parametrize("queue", ["drop", "fifo", "priority_skip", "easy", "conservative", "drf", "smallest_skip"])
@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.OptionUnused")  # of some of the cases
def test_every_queue_keeps_the_rule(tmp_path: Path, queue: str) -> None:
    path = written(tmp_path / "a.json", *zones(x=3, y=1, z=1), *(web(f"p{n:02}") for n in range(24)))
    placed = nodes_of(path, queue=queue)
    count = {zone: sum(str(name).startswith(zone) for name in placed.values()) for zone in "xyz"}
    assert count == {"x": 8, "y": 8, "z": 8}


def test_what_is_read_is_what_a_table_gives(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", *zones(x=1, y=1), *(web(f"p{n}") for n in range(4)))
    workload = workload_of(Snapshot.read(path))
    table = tmp_path / "pods.parquet"
    workload.write(table)
    direct = fs.simulate(cluster=f"kubernetes:{path}", workload=workload, policy="best_fit")
    stored = fs.simulate(cluster=f"kubernetes:{path}", workload=str(table), policy="best_fit")
    assert direct.placements.equals(stored.placements)


def test_strict_refuses_preferences_without_scores_of_them(tmp_path: Path) -> None:
    hard = written(tmp_path / "hard.json", *zones(x=1), web("p"))
    soft = written(tmp_path / "soft.json", *zones(x=1), web("p", rule(whenUnsatisfiable="ScheduleAnyway")))
    for path, policy, code in ((hard, "best_fit", 0), (soft, "best_fit", 2), (soft, "best_fit + preferred", 0)):
        out = str(tmp_path / f"{policy}{code}")
        arguments = [
            "run",
            "--cluster",
            f"kubernetes:{path}",
            "--workload",
            f"kubernetes:{path}",
            "--policy",
            policy,
        ]
        assert exit_code([*arguments, "--out", out, "--strict"]) == code

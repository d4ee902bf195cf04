"""Pods that Kueue gates wait in its queues; pods that other gates hold are left out, and named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastsim.errors import InputError
from fastsim.experiments.capacity_plan import smallest_additions
from fastsim.kubernetes.snapshot import Snapshot
from tests.objects import manifest, node, pod, workload_of, written

ADMISSION, TOPOLOGY = "kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"
QUEUED = {"kueue.x-k8s.io/queue-name": "research"}
LEFT_OUT = "pods: left out, because scheduling gates hold them"


def gated(name: str, *gates: str, labels: dict[str, str] | None = QUEUED, **more: Any) -> dict[str, Any]:
    return pod(name, {"cpu": 4}, labels=labels, schedulingGates=[{"name": gate} for gate in gates], **more)


@pytest.mark.parametrize("gates", [(ADMISSION,), (TOPOLOGY,), (ADMISSION, TOPOLOGY)])
def test_a_pod_that_kueue_gates_waits_and_its_queue_is_its_tenant(gates: tuple[str, ...]) -> None:
    read = Snapshot([manifest(node("n")), manifest(gated("p", *gates))])
    assert workload_of(read).table().select(["native_id", "tenant"]).to_pylist() == [
        {"native_id": "default/p", "tenant": "research"}
    ]
    assert not read.notices


@pytest.mark.parametrize(
    "held", [gated("p", ADMISSION, labels=None), gated("p", "a.com/x"), gated("p", ADMISSION, "a.com/x")]
)
def test_a_pod_that_other_gates_hold_is_left_out(held: dict[str, Any]) -> None:
    read = Snapshot([manifest(item) for item in (node("n"), held, pod("q"))])
    assert workload_of(read).table()["native_id"].to_pylist() == ["default/q"]
    assert read.notices == {LEFT_OUT: 1}


def test_gates_are_a_list() -> None:
    with pytest.raises(InputError, match="schedulingGates: found"):
        workload_of(Snapshot([manifest(pod("p", schedulingGates="none"))]))


def test_gated_pods_count_in_a_plan(tmp_path: Path) -> None:
    """Three pods of 4 CPUs need two nodes of 8."""
    text = f"kubernetes:{written(tmp_path / 'a.json', node('n'), *(gated(f'p{i}', ADMISSION) for i in range(3)))}"
    table = smallest_additions({"cluster": text, "workload": text, "policy": "best_fit"}, ["node:n"])
    assert table["additions"].to_list() == [1]


def test_ports_of_gated_pods_count() -> None:
    """A pod that waits for its queue takes its host port as any other pod that waits."""
    with_port = gated("a", ADMISSION)
    with_port["spec"]["containers"][0]["ports"] = [{"hostPort": 80, "containerPort": 80}]
    other = pod("b")
    other["spec"]["containers"][0]["ports"] = [{"hostPort": 80, "containerPort": 80}]
    rows = workload_of(Snapshot([manifest(item) for item in (node("n"), with_port, other)])).table()
    assert rows["group"].to_pylist() == ["hostPort:TCP/80"] * 2

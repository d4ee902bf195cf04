"""Pods that run on a cluster already count for whatever is offered to it, and taints close nodes to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.cli.main import exit_code
from fastsim.experiments.capacity_plan import smallest_additions
from fastsim.kubernetes.nodes import Taint
from fastsim.kubernetes.snapshot import NotHonoured
from fastsim.workload.importers.running_pods import taints_of
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
    written,
)  # fmt: skip
from tests.unit.kubernetes.test_arrival_order import running

TAINTED = node("closed", spec={"taints": [{"key": "dedicated", "value": "infra", "effect": "NoSchedule"}]})
CONTENT = [{"key": "dedicated", "operator": "Exists"}]


@pytest.fixture
def now(tmp_path: Path) -> str:
    """A cluster of two nodes, one of them tainted, with a pod on the other."""
    return f"kubernetes:{written(tmp_path / 'now.json', TAINTED, node('open'), running('r', 'open', {'cpu': 6}))}"


def places(cluster: Any, workload: Any, **options: Any) -> dict[str, str | None]:
    result = fs.simulate(cluster, workload, "best_fit", **options)
    return dict(result.placements.select("native_id", "node").rows())


def test_pods_of_another_file_meet_taints_and_what_runs(now: str, tmp_path: Path) -> None:
    pods = (pod("a", {"cpu": 4}), pod("b", {"cpu": 2}), pod("c", {"cpu": 4}, tolerations=CONTENT))
    more = f"kubernetes:{written(tmp_path / 'more.json', *pods)}"
    expected = {"default/r": "open", "default/a": None, "default/b": "open", "default/c": "closed"}
    assert places(now, more) == expected
    objects = fs.Cluster.from_kubernetes(now[11:]), fs.Workload.from_kubernetes(more[11:])
    assert places(*objects) == expected
    assert places(f"{now}?empty=true", more) == {"default/a": "open", "default/b": "open", "default/c": "closed"}


def test_the_same_pods_count_once(now: str) -> None:
    assert places(now, now) == {"default/r": "open"}
    assert places(fs.Cluster.from_kubernetes(now[11:]), fs.Workload.from_kubernetes(now[11:])) == {"default/r": "open"}


def test_a_table_of_the_same_pods_counts_them_once(now: str, tmp_path: Path) -> None:
    fs.Workload.from_kubernetes(now[11:]).write(tmp_path / "pods.parquet")
    assert places(now, str(tmp_path / "pods.parquet")) == {"default/r": "open"}


@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.DurationMissing")
def test_pods_of_any_kind_tolerate_nothing(now: str) -> None:
    assert taints_of(fs.Cluster.from_kubernetes(now[11:])) == [Taint("dedicated", "infra", "NoSchedule")]
    request = {"cpu_milli": 2000, "memory_mib": 1, "num_gpu": 0, "gpu_milli": 0, "duration_s": 5.0}
    frame = pl.DataFrame([{"pod_id": n, "submit_s": 7.0 + 10 * n} | request for n in range(2)])
    with pytest.warns(NotHonoured, match="taints close 1 of 2 nodes to pods that are not of Kubernetes"):
        result = fs.simulate(now, fs.Workload.from_arrow(frame), "best_fit")
    rows = result.jobs.join(result.placements.select("pod_id", "node"), on="pod_id").select("submit_s", "state", "node")
    assert rows.rows() == [(7, "running", "open"), (7, "finished", "open"), (17, "finished", "open")]
    assert result.jobs["pod_id"].to_list() == [-1, 0, 1]


def gpu_node(name: str, key: str = "nvidia.com/gpu") -> dict[str, Any]:
    taint = {"key": key, "value": "present", "effect": "NoSchedule"}
    labels = {"nvidia.com/gpu.product": "Tesla-T4", "topology.kubernetes.io/zone": "z"}
    return node(name, labels, {"taints": [taint]}, {"nvidia.com/gpu": "1"})


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.PodNeverFits")
def test_tables_of_nodes_and_pods_keep_taints_and_tolerations(tmp_path: Path, ending: str) -> None:
    """Pods "that do not tolerate the taint" are not placed, whatever nodes and pods were written to on the way."""
    nodes = written(tmp_path / "nodes.json", gpu_node("a"), gpu_node("b", "dedicated"))
    gpu: dict[str, object] = {"nvidia.com/gpu": 1}
    more = written(tmp_path / "pods.json", pod("no", gpu), pod("yes", gpu, tolerations=[{"operator": "Exists"}]),
                   pod("gpu", gpu, tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}]))  # fmt: skip
    cluster = fs.Cluster.from_kubernetes(nodes)
    getattr(cluster, f"to_{ending}")(tmp_path / f"nodes.{ending}")
    assert exit_code(["import", "kubernetes", str(more), "-o", str(tmp_path / "pods.parquet")]) == 0
    expected = {"default/gpu": "a", "default/no": None, "default/yes": "b"}
    for where in (f"kubernetes:{nodes}", str(tmp_path / f"nodes.{ending}")):
        for workload in (f"kubernetes:{more}", str(tmp_path / "pods.parquet")):
            assert places(where, workload) == expected, (where, workload)
    row = fs.Cluster.from_csv(tmp_path / "nodes.csv") if ending == "csv" else cluster
    assert dict(row.nodes["labels"][0].as_py())["topology.kubernetes.io/zone"] == "z"


@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.DurationMissing")
@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.PodNeverFits")
def test_pods_with_gpus_tolerate_the_taint_of_the_resource(tmp_path: Path) -> None:
    """Admission "automatically adds tolerations for such taints to pods requesting extended resources"."""
    nodes = written(tmp_path / "nodes.json", gpu_node("a"), gpu_node("b", "dedicated"))
    request = {"cpu_milli": 1000, "memory_mib": 1, "gpu_milli": 1000, "duration_s": 5.0, "submit_s": 0.0}
    frame = pl.DataFrame([{"pod_id": n, "num_gpu": n} | request | {"gpu_milli": 1000 * n} for n in range(2)])
    text = "taints close 1 of 2 nodes to pods that are not of Kubernetes, and 1 to those of them without GPUs"
    with pytest.warns(NotHonoured, match=text):
        result = fs.simulate(f"kubernetes:{nodes}", fs.Workload.from_arrow(frame), "best_fit")
    assert result.placements.sort("pod_id")["node"].to_list() == [None, "a"]


def test_a_plan_adds_nodes_for_alternatives(tmp_path: Path) -> None:
    """A copy of a node, and a node of a file, have the labels of which one of several terms asks."""
    terms = [{"matchExpressions": [{"key": "pool", "operator": "In", "values": [name]}]} for name in ("x", "y")]
    hard = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    pods = [pod(f"p{number}", {"cpu": 8}, affinity=hard) for number in range(3)]
    now = f"kubernetes:{written(tmp_path / 'now.json', node('a', {'pool': 'x'}), *pods)}"
    more = str(written(tmp_path / "more.json", node("more", {"pool": "y"})))
    for addition in ("node:a", more):
        found = smallest_additions(fs.Scenario(now, now, "best_fit"), [addition], workers=1)
        assert found["additions"].to_list() == [2]


def test_nobody_offered_leaves_who_runs(now: str) -> None:
    none = fs.Workload.from_arrow(fs.Workload.from_kubernetes(now[11:]).table().slice(0, 0))
    with pytest.warns(NotHonoured):
        assert places(now, none) == {"default/r": "open"}


def test_a_plan_counts_what_runs(now: str, tmp_path: Path) -> None:
    more = f"kubernetes:{written(tmp_path / 'more.json', pod('a', {'cpu': 8}), pod('b', {'cpu': 8}))}"
    spare = str(written(tmp_path / "spare.json", node("spare")))
    needed = [
        smallest_additions(fs.Scenario(cluster, more, "best_fit"), [spare], workers=1)["additions"].to_list()
        for cluster in (now, f"{now}?empty=true")
    ]
    assert needed == [[2], [1]]


@pytest.mark.filterwarnings("ignore::fastsim.kubernetes.snapshot.NotHonoured")
def test_amounts_are_in_the_unit_that_the_nodes_were_read_in(tmp_path: Path) -> None:
    """Of 16 times 50 MB pods that run have 15; 47.7 MiB are left, whatever unit other pods ask in."""
    nodes = node("n", amounts={"memory": "800M"})
    held = [running(f"r{number}", "n", {"memory": "50M"}) for number in range(15)]
    now = f"kubernetes:{written(tmp_path / 'now.json', nodes, *held)}"
    for amount, found in (("47Mi", "n"), ("48Mi", None), ("50M", "n"), ("51M", None)):
        more = f"kubernetes:{written(tmp_path / 'more.json', pod('a', {'memory': amount}))}"
        assert places(now, more)["default/a"] == found, amount
        assert len(places(f"{now}?empty=true", more)) == 1


HELD = claim("c", request(), status=allocation(("a", "g1"), users=("r",)))
CLAIMED = (node("a"), node("b"), resource_slice("a", gpu("g0"), gpu("g1")), device_class(), HELD,
           claiming("r", claims=("c",), nodeName="a", status={"phase": "Running"}))  # fmt: skip


def test_claims_of_another_file_meet_the_devices_of_the_cluster(tmp_path: Path) -> None:
    """Templates beside the pods ask for devices of the cluster's slices; copies of a node have its devices."""
    now = f"kubernetes:{written(tmp_path / 'now.json', *CLAIMED)}"
    asking = (template("one", request()), *(claiming(f"p{number}", "one") for number in range(2)))
    more = f"kubernetes:{written(tmp_path / 'more.json', *asking)}"
    assert places(now, more) == {"default/r": "a", "default/p0": "a", "default/p1": None}
    assert places(f"{now}?empty=true", more) == {"default/p0": "a", "default/p1": "a"}
    found = smallest_additions({"cluster": now, "workload": more}, ["node:a", "node:b"], most=5)
    assert found["additions"].to_list() == [1, None]


def test_copies_of_a_node_add_no_devices_that_several_nodes_reach(tmp_path: Path) -> None:
    cards = resource_slice(None, device("n0"), driver="nic.example.com", allNodes=True)
    nic, asking = device_class("nic", "true"), template("nic", request("n", "nic"))
    pods = [claiming(f"p{number}", "nic") for number in range(2)]
    now = f"kubernetes:{written(tmp_path / 'now.json', node('a'), cards, nic, asking, *pods)}"
    assert smallest_additions({"cluster": now, "workload": now}, ["node:a"], most=5)["additions"].to_list() == [None]


def test_claims_of_pods_that_are_placed_anew_have_no_devices(tmp_path: Path) -> None:
    """A pod that is placed anew gets devices anew; those of claims that it alone uses are free."""
    other = resource_slice("b", gpu("g0"))
    full = node("a", amounts={"cpu": "1"})
    bound = claiming("r", claims=("c",), requests={"cpu": "2"}, nodeName="a", status={"phase": "Running"})
    now = f"kubernetes:{written(tmp_path / 'now.json', full, *CLAIMED[1:5], other, bound)}"
    assert places(f"{now}?empty=true", f"{now}?unpin=true") == places(now, f"{now}?unpin=true") == {"default/r": "b"}

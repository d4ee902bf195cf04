"""Pods on partitioned GPUs: a case worked out by hand, and what holds in every run, in both engines."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import polars as pl
from hypothesis import HealthCheck, given, settings

from fastsim.cluster.cluster import Cluster
from fastsim.engine.online.plan import QUEUES
from fastsim.hardware.mig import gpu_milli, instances
from fastsim.scenario.run_rules import Rules
from fastsim.scenario.sort_keys import SERVED
from tests.differential.test_textbook import run, starts
from tests.strategies import scenarios_per_run

LAYOUT = "3g.20gb+2g.10gb+2g.10gb"


def cluster(*layouts: list[str] | str, **columns: Any) -> Cluster:
    """A node of two A100 for each layout; a GPU draws 50 to 400 W."""
    shape = {"cpu_milli": 96_000, "memory_mib": 1000, "num_gpu": 2, "gpu_model": "A100-40GB", **columns}
    return Cluster.mix([(1, {**shape, "name": f"n{i}", "mig": layout}) for i, layout in enumerate(layouts)])


def test_one_partitioned_gpu_beside_a_whole_one() -> None:
    pods: list[dict[str, Any]] = [
        {"mig": "3g.20gb"},
        {"mig": "2*2g.10gb"},
        {"num_gpu": 1, "gpu_milli": 500},
        {"num_gpu": 1, "gpu_milli": 1000},  # the partitioned GPU is not offered to it
        {"mig": "2g.10gb"},  # both are taken
        {"num_gpu": 2, "gpu_milli": 1000},  # the node has one whole GPU
        {"mig": "1g.5gb"},  # no layout has one
        {"mig": "3g.20gb", "num_gpu": 1, "gpu_milli": 500},  # one part is free, the other is not
    ]
    result = run(pods, cluster([LAYOUT, ""]))  # 3/7 and twice 2/7 of a GPU: 428 and 285 milli
    assert result.jobs["reason"].to_list() == [
        "running", "running", "running", "no_gpu", "no_extra", "too_large", "no_extra", "no_extra",
    ]  # fmt: skip
    assert result.placements["gpu_ids"].to_list() == [[], [], [0], [], [], [], [], []]
    rows = result.timeline.filter(pl.col("event") == "arrival")
    assert rows["gpu_milli_capacity"].to_list() == [2000] * 8
    assert rows["gpu_milli_alloc"].to_list() == [428, 998, *[1498] * 6]
    assert rows["arrived_gpu_milli"].to_list() == [428, 998, 1498, 2498, 2783, 4783, 4925, 5853]
    assert rows["active_gpus"].to_list() == [1, 1, *[2] * 6]
    assert rows["active_node_gpus"].to_list() == [2] * 8
    # 50 W each, and 350 W more for a GPU in use or that share of a partitioned one: 0.428 or 0.998.
    assert rows["power_gpu_w"].to_list() == [249.8, 449.3, *[799.3] * 6]


def test_kubernetes_names_and_a_pod_that_waits() -> None:
    one = [("nvidia.com/mig-1g.5gb", 1)]
    pods: list[dict[str, Any]] = [
        {"extra_resources": [("mig-1g.5gb", 13)], "duration_s": 5.0},
        {"extra_resources": [*one, ("mig-1g.5gb", 1)]},  # two of them, under both names
        {"extra_resources": one},
    ]
    nodes = cluster("7*1g.5gb")
    assert starts(run(pods, nodes, queue="fifo")) == [0.0, 5.0, 5.0]
    assert starts(run(pods, nodes, queue="fifo_skip")) == [0.0, 5.0, 2.0]
    assert starts(run(pods, nodes, queue="conservative")) == [0.0, 5.0, 2.0]
    quota = Rules(quotas={"*": {"gpu_milli": 13 * 142}})
    assert run(pods, nodes, rules=quota).jobs["reason"].to_list() == ["finished", "over_quota", "over_quota"]


def test_a_lost_node_takes_its_instances_along() -> None:
    nodes = cluster(LAYOUT, LAYOUT, remove_s=4.0)
    rows = run([{"mig": LAYOUT}, {"mig": "3g.20gb"}, {"duration_s": 9.0}], nodes).timeline
    assert rows["gpu_milli_capacity"].to_list()[-1] == rows["gpu_milli_alloc"].to_list()[-1] == 0
    assert rows["power_gpu_w"].to_list()[-1] == 0


@given(st.data(), st.sampled_from([rule for rule in QUEUES if rule.removesuffix("_skip") not in SERVED]))
@settings(deadline=None, max_examples=scenarios_per_run(60), suppress_health_check=list(HealthCheck))
def test_there_are_never_more_instances_in_use_than_the_layouts_have(data: st.DataObject, queue: str) -> None:
    layouts = st.sampled_from((LAYOUT, "7*1g.5gb", "2*3g.20gb", ""))
    nodes = cluster(*data.draw(st.lists(st.lists(layouts, min_size=2, max_size=2), min_size=1, max_size=3)))
    asks = st.fixed_dictionaries({
        "mig": st.sampled_from((None, "1g.5gb", "2*1g.5gb", "3g.20gb", "2g.10gb+3g.20gb", "2g.10gb")),
        "num_gpu": st.sampled_from((0, 0, 1)), "duration_s": st.sampled_from((None, 2.0, 5.0)),
    })  # fmt: skip
    drawn: list[dict[str, Any]] = data.draw(st.lists(asks, min_size=1, max_size=25))
    pods = [pod | {"gpu_milli": 600 * pod["num_gpu"]} for pod in drawn]
    result = run(pods, nodes, queue=queue)
    placed = result.placements.filter(pl.col("node_id").is_not_null()).rows(named=True)
    for t_s in {row["start_s"] for row in placed}:
        now = [row for row in placed if row["start_s"] <= t_s and (row["end_s"] is None or row["end_s"] > t_s)]
        for node in nodes.nodes.to_pylist():
            partitioned, held = instances(node["mig"], node["num_gpu"])
            here = [pods[row["pod_id"]] for row in now if row["node_id"] == node["node_id"]]
            used = [entry for pod in here if pod["mig"] for entry in instances(pod["mig"], 1)[1]]
            assert all(sum(n for other, n in used if other == name) <= dict(held).get(name, 0) for name, _ in used)
            assert gpu_milli(used) <= 1000 * partitioned
            assert sum(pod["num_gpu"] for pod in here) <= node["num_gpu"] - partitioned

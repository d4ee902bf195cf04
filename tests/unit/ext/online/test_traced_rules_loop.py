"""A run with rules that is listened to is the same run, and its decisions say what the rules had to do with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fastsim as fs
from fastsim.decisions.explain import explained
from fastsim.decisions.replay import AskedPod, Replay
from fastsim.engine.online.plan import QUEUES
from fastsim.engine.online.run import OnlineOptions, run_online
from fastsim.scenario.scenario import Scenario as Spec
from fastsim.simulation.simulate import Prepared
from fastsim.workload import Workload
from fastsim.workload.schema import pod_schema
from tests.strategies import Scenario, ruled, scenarios_per_run

NODE = {"cpu_milli": 4000, "memory_mib": 1000, "num_gpu": 0}


@pytest.mark.parametrize("queue", QUEUES)
@settings(max_examples=scenarios_per_run(20), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_every_decision_is_heard_and_none_is_changed(queue: str, data: st.DataObject) -> None:
    s: Scenario = data.draw(ruled(queues=(queue,), crowded=queue != "drop" and data.draw(st.booleans())))
    options = OnlineOptions(seed=s.seed, until_s=s.until_s, regime=s.regime, record="placements")
    table = s.workload.table()
    asked = {seq: AskedPod(seq, pod_id, None) for seq, pod_id in enumerate(table["pod_id"].to_pylist())}
    policy: Any = None
    replay = Replay(Prepared(s.cluster, s.workload, policy, s.plan, s.typical, options), asked, "all")
    if replay.rules is None:
        return  # a plain run has its own witness
    replay.play()
    replay.give_back()
    result = run_online(s.cluster, s.workload, s.plan, s.typical, options)
    stays = result.placements.filter(pl.col("node_id").is_not_null())
    expected = sorted(stays.select("pod_id", "start_s", "node_id", "gpu_ids").rows())
    heard = [d for d in replay.notes.decisions() if d.node >= 0]
    found = [(d.pod.pod_id, d.t_s, d.node, [g for g in range(64) if d.gpus >> g & 1]) for d in heard]
    assert sorted(found) == expected
    for decision in heard:
        if decision.how == "":
            totals = np.where(decision.reason__n == 0, replay.notes.weights @ decision.points__tn, -(2**62))
            assert decision.node == totals.argmax() and decision.gpus == decision.gpus__n[decision.node]
        elif decision.how == "preemption":
            assert (decision.reason__n != 0).all()


def told(
    rows: list[dict[str, Any]], pod: int, nodes: list[dict[str, Any]], attempt: str = "placed", **options: Any
) -> tuple[str, list[Any], list[Any]]:
    """(reason, failed checks, why) of the last decision about a pod; pods come a second apart."""
    usual = {"cpu_milli": 4000, "memory_mib": 0, "num_gpu": 0, "gpu_milli": 0}
    pods = [{"pod_id": i, "submit_s": float(i), **usual, **row} for i, row in enumerate(rows)]
    workload = Workload.from_arrow(pa.Table.from_pylist(pods, pod_schema({name for row in pods for name in row})))
    cluster = fs.Cluster.mix([(1, {**NODE, **row, "name": f"n{i}"}) for i, row in enumerate(nodes)])
    found = explained(Spec(cluster, workload, "best_fit", **options), pod, attempt=attempt)
    frame = found.nodes(found.decisions[-1])
    return found.reason(found.decisions[-1]), frame["failed"].to_list(), frame["why"].to_list()


def test_what_nodes_lack_beyond_cpu_and_memory() -> None:
    nodes = [
        {"num_gpu": 1, "gpu_model": "T4", "gpu_memory_mib": 8, "extra_resources": {"nic": 1}},
        {"num_gpu": 1, "gpu_model": "T4", "labels": {"zone": "x"}},
        {"num_gpu": 1, "gpu_model": "T4", "labels": {"zone": "x"}, "extra_resources": {"nic": 2}},
    ]
    gpu = {"cpu_milli": 0, "num_gpu": 1, "gpu_milli": 100}
    _, failed, why = told([{**gpu, "gpu_memory_mib": 16}], 0, nodes)
    assert failed == ["no_gpu_memory", None, None] and why[0] == "0 GPUs have room and memory, needs 1"
    _, failed, why = told([{**gpu, "extra_resources": [("nic", 2)]}], 0, nodes)
    assert failed == ["no_extra", "no_extra", None] and why[:2] == [
        "1 nic free, needs 2", "0 nic free, needs 2"
    ]  # fmt: skip
    zone = [{"key": "zone", "op": "In", "values": ["x"]}]
    _, failed, why = told([{**gpu, "constraints": zone}], 0, nodes)
    assert failed == ["no_match", None, None] and why[0] == "no label zone, needs zone In [x]"
    alone = {**gpu, "group": "g", "max_per_node": 1}
    _, failed, why = told([alone, alone, alone, alone], 3, nodes)
    assert failed == ["pod_limit"] * 3 and why[0] == "1 pods of its group are there, at most 1"
    reason, failed, _ = told([gpu], 0, nodes, maintenance=[("n0-0000", -1.0, 9.0), ("n2-0000", -1.0, 9.0)])
    assert failed == ["absent", None, "absent"] and reason == "only feasible node"


def test_quotas_gangs_and_preemption() -> None:
    quota = {"tenant": "a", "cpu_milli": 1000}
    reason, failed, _ = told([quota, quota], 1, [{}], quotas="a:cpu_milli=1500")
    assert reason == "its tenant would be over the quota" and failed == ["over_quota"]
    gang = {"job_id": 1, "gang_size": 2, "duration_s": 5.0}
    rows = [{"cpu_milli": 1000, "duration_s": 3.0, "gang_size": 1, "job_id": 0}, gang, gang]
    nodes: list[dict[str, Any]] = [{}, {}]
    reason, failed, _ = told(rows, 1, nodes, "first", queue="fifo")
    assert reason == "another pod of its gang fits nowhere" and failed == ["no_cpu", "gang"]
    assert told(rows, 1, nodes, queue="fifo")[0] == "placed with its gang, one member after another"
    reason, failed, why = told([{"priority": 0}, {"priority": 1}], 1, [{}], preempt="priority")
    assert reason == why[0] == "room was made by stopping less important pods" and failed == ["no_cpu"]


@pytest.mark.parametrize("queue", ["easy", "conservative"])
def test_backfilled_and_held_back_by_a_reservation(queue: str) -> None:
    jobs = [{"cpu_milli": cpu, "duration_s": lasts} for cpu, lasts in ((3000, 10.0), (4000, 10.0), (1000, 5.0))]
    assert told(jobs, 2, [{}], queue=queue)[0] == "backfilled past pods ahead in the line, only feasible node"
    jobs[2]["duration_s"] = 50.0
    reason, failed, _ = told(jobs, 2, [{}], "first", queue=queue)
    assert reason == "in the way of a pod ahead in the line" and failed == ["reserved"]

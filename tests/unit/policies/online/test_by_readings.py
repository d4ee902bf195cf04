"""Policies that look at what GPUs were seen to do last."""

from __future__ import annotations

import polars as pl
import pytest

import fastsim as fs
from fastsim.telemetry.telemetry import Telemetry
from fastsim.telemetry.usage_profile import Phase, Profile

BUSY, IDLE = "busy", "idle"
PROFILES = {
    BUSY: Profile(BUSY, (Phase(float("inf"), 100, 90),)),
    IDLE: Profile(IDLE, (Phase(float("inf"), 9000, 1),)),
}


def placed_on(policy: str, first: str, second_at_s: float) -> str:
    """The node of a second pod, where the first pod does this on the first of two nodes."""
    pod = {"duration_s": 1000.0, "cpu_milli": 1000, "memory_mib": 0, "num_gpu": 1, "gpu_milli": 100}
    rows = [
        pod | {"pod_id": 0, "submit_s": 0.0, "workload": first},
        pod | {"pod_id": 1, "submit_s": second_at_s, "workload": IDLE},
    ]
    pods = fs.Workload.from_arrow(pl.DataFrame(rows))
    cluster = fs.Cluster.uniform(nodes=2, gpu="T4", gpus=1)
    result = fs.simulate(cluster, pods, policy, telemetry=Telemetry(10.0, PROFILES))
    assert result.placements["node"][0] == "node-0000"
    found = result.placements["node"][1]
    assert isinstance(found, str)
    return found


@pytest.mark.parametrize("policy", ["least_utilised", "coolest", "least_power", "0.1*fgd + 0.9*least_utilised"])
def test_the_other_node_is_chosen_once_it_is_seen(policy: str) -> None:
    # Sampled every 10 s: at 9 s nobody has seen the first pod yet, and ties go to the first node.
    assert placed_on(policy, BUSY, 9.0) == "node-0000"
    assert placed_on(policy, BUSY, 25.0) == "node-0001"


def test_memory_is_another_matter() -> None:
    assert placed_on("most_free_memory", IDLE, 25.0) == "node-0001"
    assert placed_on("0.9*fgd + 0.1*most_free_memory", IDLE, 25.0) in ("node-0000", "node-0001")


def test_nobody_needs_to_ask_for_telemetry() -> None:
    texts = ("openb:9", "synth:openb?pods=30&seed=2")
    result = fs.simulate(*texts, policy="0.7*fgd + 0.3*least_utilised")
    assert not result.recorded("telemetry") and "telemetry" not in result.frames
    again = fs.simulate(*texts, policy="0.7*fgd + 0.3*least_utilised", telemetry="15?refresh_s=15", until_s=3000)
    until = fs.simulate(*texts, policy="0.7*fgd + 0.3*least_utilised", until_s=3000)
    # Looks that nobody would see are left out, and nothing changes.
    assert again.placements.drop("reason").equals(until.placements.drop("reason"))
    assert str(fs.policies.parse("0.7*fgd + 0.3*least_utilised")) == "7*fgd + 3*least_utilised"

"""What follows the main run, on cases worked by hand."""

from __future__ import annotations

import re
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.cluster.cluster import Cluster
from fastsim.engine.online.closing_stages import Deschedule, Inflation
from fastsim.engine.online.options import OnlineOptions
from fastsim.engine.online.plan import OnlinePlan, ScoreTerm
from fastsim.engine.online.run import run_online
from fastsim.engine.result import Result
from fastsim.errors import PolicyError, ScenarioError
from fastsim.policies.deschedule import CosSim, FragMultiPod, FragOnePod
from fastsim.workload import Workload
from fastsim.workload.typical_pods import TypicalPods
from tests.unit.engine.online.test_online import one_gpu_nodes, pods

WORST = OnlinePlan((ScoreTerm("best_fit", normalise="min_max_0"),), gpu_pick="worst")
WHOLE = TypicalPods((1000,), (1000,), (1,), ((),), (1,), (1.0,))
"""A target workload that only asks for whole devices, so every partly used device is fragmented."""


def node(gpus: int, cpu: int = 64_000, count: int = 1) -> Cluster:
    return Cluster.uniform(nodes=count, gpu="T4", gpus=gpus, cpu_milli=cpu, memory_mib=1024)


def played(
    cluster: Cluster, load: Any, plan: OnlinePlan = WORST, typical: TypicalPods = WHOLE, **options: Any
) -> Result:
    return run_online(cluster, load, plan, typical, OnlineOptions(**options))


def share(milli: int, **row: Any) -> dict[str, Any]:
    return {"gpu_milli": milli, **row}


def test_frag_one_pod_evicts_the_pod_whose_leaving_saves_most() -> None:
    # The looser device takes the second pod, so both devices are partly used and all 1,200 milli are fragmented.
    load = pods(share(300), share(500))
    result = played(node(2), load, deschedule=(Deschedule(FragOnePod(), 0.5),))
    stages = {row["stage"]: row for row in result.stages.to_dicts()}
    assert stages["schedule"]["frag_milli"] == 700 + 500
    assert stages["post_eviction"]["frag_milli"] == 500  # the 300-milli pod had cost 700
    assert stages["post_eviction"]["pods_running"] == 1
    assert stages["post_deschedule"]["frag_milli"] == 700 + 500  # `worst` puts it back where it was
    moved = result.placements.filter(pl.col("pod_id") == 0)
    assert moved["attempt"].to_list() == [0, 1]
    assert moved["reason"].to_list() == ["evicted", "running"]


def test_frag_one_pod_takes_one_pod_of_a_node_and_frag_multi_pod_several() -> None:
    load = pods(share(300), share(500))
    one = played(node(2), load, deschedule=(Deschedule(FragOnePod(), 1.0),))
    several = played(node(2), load, deschedule=(Deschedule(FragMultiPod(), 1.0),))
    assert one.stages["pods_running"].to_list() == [2, 1, 2]
    assert several.stages["pods_running"].to_list() == [2, 0, 2]
    assert several.stages["frag_milli"].to_list()[1] == 0


def test_less_than_one_milli_of_fragmentation_is_not_worth_an_eviction() -> None:
    # One typical pod in a thousand needs the whole device: the pod that shares it costs 600 / 1,000 milli.
    rare = TypicalPods((1000, 1000), (1, 1000), (1, 1), ((), ()), (999, 1), (0.999, 0.001))
    for policy in (FragOnePod(), FragMultiPod()):
        result = played(node(1), pods(share(400)), typical=rare, deschedule=(Deschedule(policy, 1.0),))
        assert result.stages["frag_milli"].to_list() == [0.6, 0.6, 0.6]


def test_the_ratio_limits_the_victims_rounded_up() -> None:
    load = pods(*(share(100 * k) for k in range(1, 6)))
    result = played(node(8), load, deschedule=(Deschedule(FragMultiPod(), 0.3),))
    assert result.stages["pods_running"].to_list() == [5, 3, 5]  # ceil(0.3 x 5) = 2


def test_cos_sim_evicts_what_resembles_its_node_least() -> None:
    # No CPU is left while a device is free: the CPU-only pod points away from the node's free GPU.
    load = pods({"num_gpu": 0, "gpu_milli": 0, "cpu_milli": 1000}, {"cpu_milli": 7000})
    result = played(node(2, cpu=8000), load, deschedule=(Deschedule(CosSim(), 0.5),))
    assert result.placements.filter(pl.col("reason") == "evicted")["pod_id"].to_list() == [0]


def test_cos_sim_takes_the_first_of_equally_similar_pods() -> None:
    # cos((4000, 2000), (4000, 0)) = cos((1000, 3000), (1000, 1000)) = 2 / sqrt(5), though not in float64.
    load = pods({"num_gpu": 0, "gpu_milli": 0, "cpu_milli": 4000}, {"cpu_milli": 1000})
    result = played(node(3, cpu=5000), load, deschedule=(Deschedule(CosSim(), 0.5),))
    assert result.placements.filter(pl.col("reason") == "evicted")["pod_id"].to_list() == [0]


def test_cos_sim_leaves_nodes_alone_that_have_cpu_or_no_free_device() -> None:
    has_cpu = played(node(2), pods({}), deschedule=(Deschedule(CosSim(), 1.0),))
    no_device = played(node(1, cpu=1000), pods({}), deschedule=(Deschedule(CosSim(), 1.0),))
    for result in (has_cpu, no_device):
        assert result.stages["pods_running"].to_list() == [1, 1, 1]


def test_an_evicted_pod_keeps_its_departure() -> None:
    load = pods(share(300, duration_s=10.0), share(500, submit_s=1.0, duration_s=20.0))
    result = played(node(2), load, deschedule=(Deschedule(FragOnePod(), 0.5, at_s=5.0),))
    assert result.timeline["event"].to_list() == ["arrival", "arrival", "deschedule", "departure", "departure", "end"]
    assert result.timeline["t_s"].to_list() == [0.0, 1.0, 5.0, 10.0, 21.0, 21.0]
    first = result.jobs.row(0, named=True)
    assert (first["start_s"], first["end_s"], first["attempts"]) == (0.0, 10.0, 2)


class EvictAll:
    """Every running pod, newest first."""

    def victims(self, view: Any, limit: int) -> Any:
        """All of them."""
        return view.pods[::-1]


def test_a_pod_that_does_not_fit_again_is_lost() -> None:
    # The whole pod has device 0, the two shares device 1; placed again newest first, the shares take a device each.
    load = pods({}, share(500), share(500))
    result = played(node(2), load, deschedule=(Deschedule(EvictAll(), 1.0),))
    assert result.stages["pods_running"].to_list() == [3, 0, 2]
    assert result.jobs["state"].to_list() == ["evicted", "running", "running"]
    assert result.summary["pods_lost"].item() == 1
    assert result.timeline["pods_lost"].to_list()[-1] == 1


def test_a_waiting_pod_may_start_after_a_deschedule() -> None:
    load = pods(share(300), share(500), {"submit_s": 1.0})
    spread = OnlinePlan(WORST.terms, gpu_pick="worst", queue="fifo")
    packed = played(node(2), load, spread, deschedule=(Deschedule(FragOnePod(), 0.5, at_s=5.0),))
    assert packed.jobs["state"].to_list()[2] == "pending"  # `worst` spreads the pods again


def test_inflation_places_clones_measures_and_takes_them_back() -> None:
    load = pods({}, {})
    result = played(one_gpu_nodes(6), load, inflation=Inflation(2.0, seed=3))
    stages = result.stages.to_dicts()
    assert [row["stage"] for row in stages] == ["schedule", "inflation"]
    assert [row["gpu_milli_alloc"] for row in stages] == [2000, 4000]
    assert result.summary["gpu_milli_alloc"].item() == 2000
    assert len(result.jobs) == 2


def test_inflation_stops_before_the_demand_exceeds_the_cluster() -> None:
    result = played(one_gpu_nodes(3), pods({}, {}), inflation=Inflation(5.0))
    assert result.stages["gpu_milli_alloc"].to_list() == [2000, 3000]


def test_inflation_may_use_up_the_last_cpu() -> None:
    result = played(node(8, cpu=4000), pods({}, {}), inflation=Inflation(5.0))
    assert result.stages["cpu_milli_alloc"].to_list() == [2000, 4000]


def test_retargeting_measures_against_other_typical_pods() -> None:
    half = TypicalPods((1000,), (500,), (1,), ((),), (1,), (1.0,))
    result = played(node(1), pods(share(400)), retarget=half)
    assert result.stages["stage"].to_list() == ["schedule", "retarget"]
    assert result.stages["frag_milli"].to_list() == [600, 0]
    assert result.timeline["frag_milli"].to_list() == [600, 0]  # the arrival, then the end of the run


def test_retargeting_does_not_reach_back_into_the_main_run() -> None:
    half = TypicalPods((1000,), (500,), (1,), ((),), (3,), (1.0,))
    load = pods(share(400, duration_s=4.0), share(400, submit_s=6.0))
    plain, other = played(node(2), load).summary, played(node(2), load, retarget=half).summary
    assert plain["frag_milli"].item() == 600
    assert other["frag_milli"].item() == 0
    for column in ("mean_frag_milli", "at_capacity_frag_pct"):
        assert other[column].item() == plain[column].item() > 0


def test_inflating_an_empty_workload_is_a_stage_like_any_other() -> None:
    result = played(node(2), Workload.from_arrow(pods({}).table().slice(0, 0)), inflation=Inflation(2.0))
    assert result.stages["stage"].to_list() == ["schedule", "inflation"]
    assert result.stages["gpu_milli_alloc"].to_list() == [0, 0]


@pytest.mark.parametrize("policy", [FragOnePod(), FragMultiPod(), CosSim()])
def test_an_empty_cluster_has_nothing_to_deschedule(policy: Any) -> None:
    nothing = pods({"num_gpu": 2})
    result = played(one_gpu_nodes(1), nothing, deschedule=(Deschedule(policy, 1.0),))
    assert result.stages["pods_running"].to_list() == [0, 0, 0]


def test_an_inflation_beyond_the_budget_is_refused() -> None:
    with pytest.raises(ScenarioError, match="inflation: found 1,000,000,000 pods or jobs in memory, expected at most"):
        played(node(1), pods(share(500)), inflation=Inflation(1e9))


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (lambda pods: None, "None"),
        (lambda pods: "ab", "'ab' (str)"),
        (lambda pods: [3], "3 (int)"),
        (lambda pods: [pods[0], pods[0]], "RunningPod(slot="),
    ],
)
def test_victims_that_do_not_run_are_refused(answer: Any, found: str) -> None:
    class Mine:
        """Returns what it was given."""

        def victims(self, view: Any, limit: int) -> Any:
            """It."""
            return answer(view.pods)

    with pytest.raises(PolicyError, match=re.escape(f"victims(): found {found}")):
        there = fs.Workload.from_polars(pl.DataFrame({"submit_s": [0.0, 1.0], "num_gpu": [1, 1]}))
        fs.simulate("uniform?nodes=3&gpu=T4", there, deschedule=[fs.Deschedule(Mine(), 1.0)])

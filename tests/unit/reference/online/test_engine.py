"""The reference engine against results worked out by hand: ties, scores, devices, queues, events."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.engine.online.plan import OnlinePlan, PodRequest, ScoreTerm
from fastsim.hardware.node_constraints import NONE, Conditions, NearRule, SpreadRule
from fastsim.workload import Workload
from fastsim.workload.typical_pods import TypicalPods
from tests.reference.online.devices import bounded, devices, random_word
from tests.reference.online.dot import best_group, dot_product, group_score, groups
from tests.reference.online.engine import simulate_reference
from tests.reference.online.frag import CLASSES, XL, Fragmentation, cpu_power, gpu_power
from tests.reference.online.nodes import STAGES, Node, Shape, empty_node, given_back, seen, stage, sub_devices, taken
from tests.reference.online.scores import (
    best_fit,
    device_choice,
    fgd,
    gpu_clustering,
    gpu_packing,
    normalised,
    pwr,
    pwr_after,
    simon,
    truncated,
)
from tests.reference.online.select import Selection
from tests.reference.online.tables import ReferenceRun

Q3 = CLASSES.index("q3_satisfied")
SHAPE = Shape(
    cpu_milli=32_000, memory_mib=1000, num_gpu=4, gpu_model="T4", max_pods=None, gpu_idle_mw=10_000,
    gpu_peak_mw=70_000, cpu_idle_mw=15_000, cpu_peak_mw=120_000, cpu_cores_per_socket=16,
)  # fmt: skip


def pod(
    cpu: int = 0, gpus: int = 0, milli: int = 0, memory: int = 0, models: tuple[str, ...] = (),
    conditions: Conditions = NONE,
) -> PodRequest:  # fmt: skip
    return PodRequest(cpu, memory, gpus, milli, models, conditions)


def node(*gpu_free: int, cpu_free: int = 32_000, **rest: Any) -> Node:
    """A node with these devices and this much free CPU."""
    return Node(SHAPE._replace(num_gpu=len(gpu_free)), cpu_free, 1000, gpu_free, **rest)


def targets(*rows: tuple[PodRequest, int]) -> Fragmentation:
    """Typical pods with these counts."""
    total = sum(count for _, count in rows)
    return Fragmentation(TypicalPods(
        tuple(p.cpu_milli for p, _ in rows), tuple(p.gpu_milli for p, _ in rows), tuple(p.num_gpu for p, _ in rows),
        tuple(p.gpu_models for p, _ in rows), tuple(count for _, count in rows),
        tuple(count / total for _, count in rows),
    ))  # fmt: skip


NOTHING = targets()


def test_filter_each_stage_in_its_order() -> None:
    crowded = node(500, 1000, cpu_free=2000, pods=3, groups=(("g", 1),), extra_used=(("nic", 1),))
    shape = crowded.shape._replace(max_pods=3, labels=(("name", "n0"),), gpu_memory_mib=16, extra=(("nic", 2),))
    crowded = crowded._replace(shape=shape, memory_free=10)
    asked = Conditions(gpu_memory_mib=17, extra_resources=(("nic", 2),), pinned_node="n1", group="g", max_per_node=1,
                       spread=(SpreadRule("web", "zone", 1),))  # fmt: skip
    ask, stages = pod(9000, 2, 1000, 99, ("P100",), asked), []
    changes: tuple[dict[str, Any], ...] = (
        {}, {"conditions": {"pinned_node": "n0"}}, {"gpu_models": ()},
        {"num_gpu": 1, "conditions": {"gpu_memory_mib": 16}}, {"cpu_milli": 1}, {"memory_mib": 1},
        {"conditions": {"extra_resources": ()}},
    )  # fmt: skip
    for change in changes:
        conditions = ask.conditions._replace(**change.get("conditions", {}))
        ask = replace(ask, **{**change, "conditions": conditions})
        stages.append(STAGES[stage(crowded, ask)])
    crowded = crowded._replace(pods=2)
    stages.append(STAGES[stage(crowded, ask)])  # the node has no label of the zone
    ask = replace(ask, conditions=ask.conditions._replace(spread=()))
    stages.append(STAGES[stage(crowded, ask)])
    ask = replace(ask, conditions=ask.conditions._replace(max_per_node=2, near=(NearRule("beside", "web", "name"),)))
    assert [*stages, STAGES[stage(crowded, ask, [crowded])]] == list(STAGES)
    assert stage(crowded, replace(ask, conditions=ask.conditions._replace(near=())), [crowded]) == len(STAGES)


def test_filter_a_device_without_the_memory_looks_full() -> None:
    state = node(1000, 1000, 1000, gpu_memory_used=((0, 10), (2, 6)))
    state = state._replace(shape=state.shape._replace(gpu_memory_mib=16))
    ask = pod(0, 1, 1000, conditions=Conditions(gpu_memory_mib=8))
    assert seen(state, ask).gpu_free == (0, 1000, 1000)
    assert stage(state, replace(ask, num_gpu=2)) == len(STAGES)
    assert STAGES[stage(state, replace(ask, num_gpu=3))] == "no_gpu"
    after = taken(state, ask, (1,))
    assert dict(after.gpu_memory_used) == {0: 10, 1: 8, 2: 6} and given_back(after, ask, (1,)) == state


def test_filter_what_is_exactly_left_still_fits() -> None:
    assert stage(node(500, cpu_free=2000), pod(2000, 1, 500, 1000)) == len(STAGES)
    full = node(0, pods=2)._replace(shape=SHAPE._replace(max_pods=3))
    assert stage(full, pod()) == len(STAGES)


def test_filter_a_cpu_pod_ignores_its_gpu_models() -> None:
    assert stage(node(1000), pod(1, models=("P100",))) == len(STAGES)


def test_filter_whole_devices_must_be_wholly_free() -> None:
    assert STAGES[stage(node(999, 1000), pod(0, 2, 1000))] == "no_gpu"


def test_filter_giving_back_undoes_taking() -> None:
    before = node(1000, 700, tags=(("share-gpu", 1),), pods=1)
    for ask, where in ((pod(5, 1, 700), (1,)), (pod(5, 1, 1000), (0,)), (pod(7), ())):
        assert given_back(taken(before, ask, where), ask, where) == before


def test_filter_sub_serves_the_fullest_devices_first_and_the_lower_index_on_ties() -> None:
    assert sub_devices(node(900, 400, 300, 400), pod(0, 1, 400)) == (1,)
    assert sub_devices(node(1000, 500, 1000, 1000), pod(0, 2, 1000)) == (0, 2)


def test_fragmentation_every_class_by_hand() -> None:
    mix = targets(
        (pod(99_000, 1, 2000), 1),  # neither CPU nor device: q1
        (pod(1, 2, 1000), 2),  # CPU but one whole device only: q2
        (pod(1, 1, 600), 3),  # fits, the 300 left elsewhere are too small: 300 to q2, 1000 to q3
        (pod(99_000, 1, 300), 4),  # device but no CPU: q4
        (pod(1), 5),  # CPU pod that fits: xl
        (pod(99_000), 6),  # CPU pod that does not: xr
        (pod(1, 1, 300, models=("P100",)), 7),  # other model: no access
    )
    total = 1300
    assert mix.counted(node(300, 1000)) == (
        total, 2 * total + 3 * 300, 3 * 1000, 4 * total, 5 * total, 6 * total, 7 * total
    )  # fmt: skip
    assert sum(mix.counted(node(300, 1000))) == total * 28
    assert mix.fragment(node(300, 1000)) == pytest.approx(total - 3 / 28 * 1000)


def test_fragmentation_a_satisfiable_cpu_pod_makes_everything_a_fragment() -> None:
    only_cpu = targets((pod(1), 1))
    assert only_cpu.classes(node(1000, 1000))[XL] == only_cpu.fragment(node(1000, 1000)) == 2000.0


def test_fragmentation_one_slot_per_device() -> None:
    pairs = targets((pod(0, 2, 400), 1))
    assert pairs.classes(node(1000, 300))[Q3] == 0.0
    assert pairs.classes(node(1000, 400))[Q3] == 1400.0


def test_fragmentation_what_is_exactly_left_counts_as_enough() -> None:
    assert targets((pod(2000, 1, 500), 1)).classes(node(500, cpu_free=2000))[Q3] == 500.0


def test_power_any_use_of_a_device_costs_its_peak() -> None:
    assert gpu_power(node(1000, 999, 0)) == 10_000 + 2 * 70_000


def test_power_any_use_of_a_socket_costs_its_peak() -> None:
    wide = SHAPE._replace(cpu_milli=104_000)  # 52 cores: 4 sockets of 16
    assert cpu_power(empty_node(wide)) == 4 * 15_000
    assert cpu_power(empty_node(wide)._replace(cpu_free=103_999)) == 120_000 + 3 * 15_000
    assert cpu_power(empty_node(wide)._replace(cpu_free=104_000 - 32_000)) == 120_000 + 3 * 15_000
    assert cpu_power(empty_node(wide)._replace(cpu_free=104_000 - 32_001)) == 2 * 120_000 + 2 * 15_000
    assert cpu_power(empty_node(wide)._replace(cpu_free=0)) == 4 * 120_000


def test_fgd_of_no_change_is_exactly_fifty() -> None:
    assert fgd(node(1000), pod(1), NOTHING) == 50


def test_fgd_of_no_request_is_a_hundred() -> None:
    assert fgd(node(1000), pod(), NOTHING) == 100


def test_fgd_by_hand() -> None:
    # Before: 1500 satisfied. On device 0 (500 left) 1000 stay satisfied: F 0 -> 0. On device 1: F 0 -> 500 + 500.
    frag = targets((pod(0, 1, 1000), 1))
    assert frag.fragment(node(500, 1000)) == 500.0
    assert device_choice(node(500, 1000), pod(0, 1, 500), _fgd_points(frag)) == (62, (0,))
    assert fgd(node(1000, 1000), pod(0, 1, 500), frag) == 37


def test_fgd_takes_the_first_of_equal_devices() -> None:
    assert device_choice(node(400, 600, 600), pod(0, 1, 500), _fgd_points(NOTHING)) == (50, (1,))


def test_pwr_prefers_a_device_in_use_then_the_first_idle_one() -> None:
    assert device_choice(node(1000, 500, 600), pod(0, 1, 500), pwr_after) == (0, (1,))
    assert device_choice(node(1000, 1000, 100), pod(0, 1, 500), pwr_after) == (-60, (0,))


def test_pwr_is_truncated_towards_zero() -> None:
    half = node(1000)._replace(shape=SHAPE._replace(num_gpu=1, gpu_peak_mw=11_999))
    assert pwr(half, pod(0, 1, 1)) == -1
    assert [truncated(amount, 1000) for amount in (-1999, -999, 999, 1999)] == [-1, 0, 0, 1]


def test_best_fit_by_hand() -> None:
    # (32000 - 16000) / 128000 / 2 + (4000 - 2000) / 8000 / 2 = 0.0625 + 0.125
    assert best_fit(node(1000, 1000, 1000, 1000), pod(16_000, 2, 1000)) == 81


def test_packing_by_hand() -> None:
    assert gpu_packing(node(1000, 1000), pod(1)) == 0
    assert gpu_packing(node(1000, 1000), pod(0, 1, 300)) == 31
    assert gpu_packing(node(*[1000] * 20), pod(0, 1, 300)) == 20
    assert gpu_packing(node(1000, 200), pod(0, 1, 300)) == 49
    assert gpu_packing(node(1000, 1000, 1000, 0), pod(0, 3, 1000)) == 47
    assert gpu_packing(node(1000, 459), pod(0, 1, 300)) == 100 - 45 // 10
    assert gpu_packing(node(1000, 999), pod(0, 1, 300)) == 100 - 99 // 10


def test_clustering_by_hand() -> None:
    share, whole = pod(0, 1, 300), pod(0, 2, 1000)
    assert gpu_clustering(node(1000, 1000), pod(1)) == 0
    base = 25 * 6000 // 8000
    assert gpu_clustering(node(1000, 1000), whole) == base + 25
    assert gpu_clustering(node(1000, 1000, tags=(("2-gpu", 1),)), whole) == base + 75
    assert gpu_clustering(node(1000, 1000, tags=(("2-gpu", 1), ("share-gpu", 2))), share) == base + 50
    assert gpu_clustering(node(1000, 1000, tags=(("1-gpu", 1),)), share) == base
    assert gpu_clustering(node(*[1000] * 9), share) == -3 + 25


def test_simon_by_hand() -> None:
    assert simon(node(), pod(8000, memory=100)) == 33
    assert simon(node(), pod(32_000)) == 100
    assert simon(node(), pod()) == 100
    assert simon(node()._replace(cpu_free=1), pod(16_000)) == 100  # capacity counts, not what is left


def test_normalisers() -> None:
    assert normalised([3, 7, 5], "none") == [3, 7, 5]
    assert normalised([-3, 7, 0], "min_max_0") == normalised([-3, 7, 0], "min_max_100") == [0, 100, 30]
    assert normalised([4, 4], "min_max_0") == [0, 0]
    assert normalised([4, 4], "min_max_100") == [100, 100]
    assert normalised([0, 3, 1], "min_max_0") == [0, 100, 33]


def _fgd_points(frag: Fragmentation) -> Any:
    from tests.reference.online.scores import fgd_after

    return fgd_after(frag)


def test_dot_product_merge_by_hand() -> None:
    # 1 - ((32000 / 128000) * (16000 / 128000) + (4000 / 8000) * (2000 / 8000)) / 2 = 1 - 0.078125
    assert dot_product(node(*[1000] * 4), pod(16_000, 2, 1000), "merge", "max") == 92


def test_dot_product_share_skips_idle_and_small_devices_and_ends_with_all_idle_ones() -> None:
    found = groups(node(300, 1000, 600, 1000), pod(1, 1, 500), "share")
    assert [(group.node[1], group.devices) for group in found] == [(600, (2,)), (2000, (1,))]


def test_dot_product_divide_splits_the_cpu_and_has_no_group_where_nothing_is_free() -> None:
    found = groups(node(500, 1000, cpu_free=3000), pod(1, 1, 500), "divide")
    assert [group.node for group in found] == [(1000.0, 500), (2000.0, 1000)]
    assert dot_product(node(0, 0), pod(1), "divide", "max") == 0
    assert dot_product(node(), pod(), "divide", "pod") == 0


def test_dot_product_extend_has_a_dimension_for_every_used_device() -> None:
    found = groups(node(0, 300, 1000, 600), pod(1, 1, 500), "extend")
    assert [group.node for group in found] == [(32_000, 300, 600, 1000)] * 2
    assert [(group.pod, group.devices) for group in found] == [((1, 0, 500, 0), (3,)), ((1, 0, 0, 500), (2,))]
    assert groups(node(0), pod(1), "extend") == []


def test_dot_product_whole_devices_are_the_lowest_idle_ones() -> None:
    assert groups(node(500, 1000, 1000, 1000), pod(1, 2, 1000), "share")[0].devices == (1, 2)
    assert [group.devices for group in groups(node(500, 1000, 1000), pod(1, 2, 1000), "share")] == [(1, 2)]
    assert [group.devices for group in groups(node(500, 1000), pod(1, 1, 500), "extend")] == [(0,), (1,)]


def test_dot_product_the_first_of_equal_groups_wins() -> None:
    assert best_group(node(600, 600, 0), pod(1, 1, 500), "share", "max") == (  # type: ignore[comparison-overlap]
        pytest.approx(1 - 600 / 8000 * 500 / 8000 / 2, abs=1e-5), (0,),
    )  # fmt: skip


def test_dot_product_a_component_without_a_norm_counts_nothing() -> None:
    [group] = groups(node(1000), pod(), "merge")
    assert group_score(group, node(1000), pod(), "pod") == 1.0


def test_dot_product_norm_pod_flattens_with_a_tenth_of_tanh() -> None:
    assert dot_product(node(*[1000] * 4), pod(16_000, 2, 1000), "merge", "pod") == 80  # 1 - tanh(0.2)


@pytest.mark.parametrize(("method", "expected"), [("best", 1), ("worst", 0), ("fgd", 0), ("pwr", 1), ("random", 1)])
def test_devices_sharing_pods(method: str, expected: int) -> None:
    state = node(1000, 500, 500, 1000, 400)
    plan = OnlinePlan((), gpu_pick=method)
    assert devices(state, pod(0, 1, 450), plan, NOTHING, seed=1, attempt=2) == (expected,)


def test_devices_dot_product_without_named_devices_picks_like_best() -> None:
    state = node(1000, 700, 500, 500)
    for dim, expected in (("merge", 2), ("share", 2)):
        plan = OnlinePlan((), gpu_pick="dot_product", gpu_dim=dim)
        assert devices(state, pod(0, 1, 450), plan, NOTHING, seed=0, attempt=0) == (expected,)


@pytest.mark.parametrize("method", ["best", "worst", "random", "fgd", "pwr", "dot_product"])
def test_devices_whole_devices_are_the_lowest_idle_ones(method: str) -> None:
    state = node(500, 1000, 0, 1000, 1000)
    plan = OnlinePlan((), gpu_pick=method, gpu_dim="share")
    assert devices(state, pod(0, 2, 1000), plan, NOTHING, seed=0, attempt=0) == (1, 3)
    assert devices(state, pod(5), plan, NOTHING, seed=0, attempt=0) == ()


def test_devices_random_words_are_fixed_for_ever() -> None:
    assert random_word(0, 1, 0) == 0x9AC2BAC5A9C38BA3
    assert [bounded(42, 2, k, 10) for k in range(12)] == [8, 1, 5, 5, 6, 0, 7, 5, 9, 8, 8, 6]
    assert all(0 <= bounded(seed, 1, 3, 7) < 7 for seed in range(50))


@pytest.mark.parametrize("kernel", ["fgd", "pwr", "best_fit", "gpu_packing", "gpu_clustering", "dot_product", "simon"])
def test_selection_equal_nodes_tie_to_the_smallest_position(kernel: str) -> None:
    select = Selection(OnlinePlan((ScoreTerm(kernel),)), targets((pod(1, 1, 500), 1)), seed=0)
    full, free = node(0), node(1000, 500)
    assert select.choose([full, free, free, free], pod(1, 1, 300)).position == 1


def test_selection_a_later_node_needs_more_points() -> None:
    select = Selection(OnlinePlan((ScoreTerm("best_fit"),)), NOTHING, seed=0)
    assert select.choose([node(1000), node(300), node(300)], pod(0, 1, 300)).position == 1


def test_selection_terms_are_weighed_after_normalising() -> None:
    both = (ScoreTerm("best_fit", 3, "min_max_0"), ScoreTerm("gpu_packing", 1))
    nodes = [node(1000, 300), node(1000, 1000, 1000, cpu_free=8000)]
    assert Selection(OnlinePlan(both), NOTHING, seed=0).choose(nodes, pod(0, 1, 300)).position == 0


def test_selection_the_furthest_stage_gives_the_reason() -> None:
    select = Selection(OnlinePlan((ScoreTerm("fgd"),)), NOTHING, seed=0)
    assert select.choose([], pod()).reason == "no_node"
    assert select.choose([None], pod()).reason == "no_node"
    assert select.choose([node(0), node(1000, cpu_free=0)], pod(1, 1, 1)).reason == "no_cpu"
    assert select.attempts == 3


def cluster(*rows: dict[str, Any]) -> Cluster:
    base = {"cpu_milli": 4000, "memory_mib": 1000, "num_gpu": 0}
    return Cluster.mix([(1, {"name": f"n{i}", **base, **row}) for i, row in enumerate(rows)])


def run(rows: list[dict[str, Any]], nodes: Cluster, queue: str = "drop", **options: Any) -> ReferenceRun:
    """Pods of one whole CPU node each unless they say otherwise, one second apart."""
    base = {"cpu_milli": 4000, "memory_mib": 0, "num_gpu": 0, "gpu_milli": 0, "duration_s": None, "priority": 0}
    pods = [{"pod_id": i, "submit_s": float(i), **base, **row} for i, row in enumerate(rows)]
    schema = {"duration_s": pl.Float64, "priority": pl.Int32}
    workload = Workload.from_arrow(pl.DataFrame(pods, schema_overrides=schema))
    plan = OnlinePlan((ScoreTerm("best_fit", normalise="min_max_0"),), queue=queue)
    return simulate_reference(nodes, workload, plan, TypicalPods.of(workload), **options)


def starts(result: ReferenceRun) -> list[float | None]:
    return result.jobs["start_s"].to_list()


ONE = cluster({})


def test_events_a_departure_at_an_arrivals_instant_comes_first() -> None:
    result = run([{"duration_s": 1.0}, {}], ONE)
    assert starts(result) == [0.0, 1.0]
    assert result.timeline["event"].to_list() == ["arrival", "departure", "arrival", "end"]


def test_events_zero_durations_are_over_before_the_next_arrival_of_the_instant() -> None:
    result = run([{"submit_s": 2.0, "duration_s": 0.0}, {"submit_s": 2.0}], ONE)
    assert starts(result) == [2.0, 2.0]
    assert result.jobs["jct_s"].to_list() == [0.0, None]


def test_events_a_node_that_goes_takes_its_pods_along() -> None:
    result = run([{}, {"submit_s": 9.0}], cluster({"remove_s": 5.0}))
    assert result.jobs["state"].to_list() == ["node_lost", "unplaced"]
    assert result.jobs["end_s"].to_list() == [5.0, None]
    assert result.placements["reason"].to_list() == ["node_lost", "no_node"]
    assert result.timeline["cpu_milli_capacity"].to_list() == [4000, 0, 0, 0]


def test_events_a_node_that_comes_serves_the_queue() -> None:
    result = run([{}], cluster({"add_s": 5.0}), queue="fifo")
    assert starts(result) == [5.0]
    assert result.timeline["event"].to_list() == ["arrival", "node", "retry", "end"]


def test_events_too_large_for_every_empty_node_never_waits() -> None:
    result = run([{"cpu_milli": 4001}], ONE, queue="fifo")
    assert result.jobs["reason"].to_list() == ["too_large"]
    assert result.timeline["pods_pending"].to_list() == [0, 0]


def test_events_samples_start_at_the_first_arrival_and_end_with_the_last_event() -> None:
    result = run([{"submit_s": 2.5, "duration_s": 4.0}], ONE, sample_s=2.0)
    assert result.timeline["t_s"].to_list() == [4.0, 6.0, 6.5]
    assert result.timeline["event"].to_list() == ["sample", "sample", "end"]
    assert run([{"submit_s": 4.0, "duration_s": 0.0}], ONE, sample_s=2.0).timeline["pods_finished"].to_list() == [
        0,
        1,
    ]


def test_events_nothing_happens_after_the_horizon() -> None:
    result = run([{"duration_s": 2.0}, {"submit_s": 1.0}, {"submit_s": 3.0}], ONE, queue="fifo", until_s=2.0)
    assert result.jobs["state"].to_list() == ["finished", "running"]
    assert result.timeline["t_s"][-1] == 2.0


BUSY = ({"duration_s": 5.0}, {"cpu_milli": 4000, "duration_s": 1.0}, {"cpu_milli": 1000, "priority": 5})


def test_queues_drop_forgets_what_does_not_fit() -> None:
    assert run(list(BUSY), ONE).jobs["reason"].to_list() == ["finished", "no_cpu", "no_cpu"]


def test_queues_fifo_serves_heads_only() -> None:
    assert starts(run(list(BUSY), ONE, "fifo")) == [0.0, 5.0, 6.0]


def test_queues_priority_serves_the_most_important_first() -> None:
    assert starts(run(list(BUSY), ONE, "priority")) == [0.0, None, 5.0]


def test_queues_equal_priorities_keep_their_order() -> None:
    equal = [{"duration_s": 5.0, "priority": 1} for _ in range(3)]
    assert starts(run(equal, ONE, "priority")) == [0.0, 5.0, 10.0]


def test_queues_skipping_lets_small_pods_overtake() -> None:
    rows: list[dict[str, Any]] = [{"cpu_milli": 3000, "duration_s": 5.0}, {}, {"cpu_milli": 1000}]
    assert starts(run(rows, ONE, "fifo_skip")) == [0.0, None, 2.0]
    assert starts(run(rows, ONE, "fifo")) == [0.0, 5.0, None]


def test_queues_head_of_line_blocks_even_what_would_fit() -> None:
    rows: list[dict[str, Any]] = [{"cpu_milli": 3000}, {}, {"cpu_milli": 1000}]
    assert starts(run(rows, ONE, "fifo")) == [0.0, None, None]


def test_queues_an_important_pod_may_try_at_once() -> None:
    rows: list[dict[str, Any]] = [{"cpu_milli": 3000}, {}, {"cpu_milli": 1000, "priority": 1}]
    assert starts(run(rows, ONE, "priority")) == [0.0, None, 2.0]


def test_queues_a_retry_that_places_nothing_leaves_no_row() -> None:
    rows: list[dict[str, Any]] = [{"cpu_milli": 1000, "duration_s": 3.0}, {"cpu_milli": 3000}, {}]
    assert "retry" not in run(rows, ONE, "fifo").timeline["event"].to_list()

"""Every spelling of the scores agrees on random nodes and pods."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings

from fastsim import TypicalPods, Workload
from fastsim.engine.online.plan import DIMS, GPU_PICKS, NORMS, PodRequest
from tests.backends import BACKENDS, GPU_WATTS, NodeState, Twin
from tests.reference.online.nodes import fits
from tests.strategies import DETERMINISTIC, Situation, scenarios_per_run, situations

OTHERS = [name for name in BACKENDS if name != "twin"]


def state_of(situation: Situation) -> NodeState:
    """The node as every backend knows it; models without known watts are left out."""
    node = situation.node
    assume(node.shape.gpu_model in GPU_WATTS)
    return NodeState(
        node.shape.gpu_model, node.shape.cpu_milli, node.cpu_free, node.memory_free, node.gpu_free, node.tags
    )


@pytest.mark.parametrize("name", OTHERS)
@given(situation=situations())
@settings(max_examples=scenarios_per_run(80))
def test_fragmentation_and_power(name: str, situation: Situation) -> None:
    state = state_of(situation)
    other, twin = BACKENDS[name](situation.typical), Twin(situation.typical)
    assert other.frag(state) == twin.frag(state)
    assert other.power(state) == twin.power(state)


@pytest.mark.parametrize("name", OTHERS)
@given(situation=situations())
@settings(max_examples=scenarios_per_run(80))
def test_raw_scores(name: str, situation: Situation) -> None:
    state, pod = state_of(situation), situation.pod
    assume(fits(situation.node, pod))
    other, twin = BACKENDS[name](situation.typical), Twin(situation.typical)
    for kernel in DETERMINISTIC:
        variants = [(dim, norm) for dim in DIMS for norm in NORMS] if kernel == "dot_product" else [("merge", "max")]
        for dim, norm in variants:
            found = other.raw(kernel, dim, norm, state, pod)
            assert found == twin.raw(kernel, dim, norm, state, pod), (kernel, dim, norm)


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize(("memory_mib", "points"), [(0, 100), (1, 50)])
def test_a_pod_that_asks_for_nothing_has_all_points_of_fgd(name: str, memory_mib: int, points: int) -> None:
    state = NodeState("T4", 8000, 8000, 9000, (1000, 400))
    pod = PodRequest(0, memory_mib, 0, 0, ())
    backend = BACKENDS[name](TypicalPods.of(Workload.synth("openb", pods=50, seed=1)))
    assert backend.raw("fgd", "merge", "max", state, pod) == points


@pytest.mark.parametrize("name", OTHERS)
@given(situation=situations())
@settings(max_examples=scenarios_per_run(80))
def test_device_choices(name: str, situation: Situation) -> None:
    state, pod = state_of(situation), situation.pod
    assume(fits(situation.node, pod))
    other, twin = BACKENDS[name](situation.typical), Twin(situation.typical)
    for method in GPU_PICKS:
        variants = [(dim, norm) for dim in DIMS for norm in NORMS] if method == "dot_product" else [("share", "max")]
        for dim, norm in variants:
            found = other.gpu_pick(method, dim, norm, state, pod)
            assert found == twin.gpu_pick(method, dim, norm, state, pod), (method, dim, norm)

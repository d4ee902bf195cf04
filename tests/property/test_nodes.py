"""What must hold for any node and any list of typical pods, whatever the workload."""

from __future__ import annotations

from math import ceil

import hypothesis.strategies as st
import pytest
from hypothesis import given

from fastsim.workload.typical_pods import TypicalPods
from tests.reference.online.frag import Fragmentation, cpu_power, gpu_power
from tests.reference.online.nodes import WHOLE, fits, given_back, taken
from tests.reference.online.scores import normalised, raw_score
from tests.reference.online.select import Selection
from tests.strategies import Scenario, Situation, scenarios, situations


@given(situations())
def test_fragmentation_classes_share_out_what_is_free(situation: Situation) -> None:
    frag = Fragmentation(situation.typical)
    assert sum(frag.counted(situation.node)) == frag.typical.kept * situation.node.gpu_total
    measured = situation.node.gpu_total if frag.typical.kept else 0  # against no pods nothing is of any class
    assert sum(frag.classes(situation.node)) == pytest.approx(measured)
    assert -1e-9 <= frag.fragment(situation.node) <= situation.node.gpu_total + 1e-9


@given(situations())
def test_power_lies_between_idle_and_peak(situation: Situation) -> None:
    node = situation.node
    shape = node.shape
    sockets = ceil(ceil(shape.cpu_milli / (2 * WHOLE)) / shape.cpu_cores_per_socket)
    assert shape.gpu_idle_mw * shape.num_gpu <= gpu_power(node) <= shape.gpu_peak_mw * shape.num_gpu
    assert shape.cpu_idle_mw * sockets <= cpu_power(node) <= shape.cpu_peak_mw * sockets


@given(situations())
def test_every_choice_of_devices_is_possible_and_can_be_undone(situation: Situation) -> None:
    node, pod = situation.node, situation.pod
    choice = Selection(situation.plan, Fragmentation(situation.typical), seed=3).choose([node], pod)
    assert (choice.position is not None) == fits(node, pod)
    if choice.position is not None:
        after = taken(node, pod, choice.devices)
        assert len(choice.devices) == pod.num_gpu
        assert list(choice.devices) == sorted(set(choice.devices))
        assert min((after.cpu_free, after.memory_free, *after.gpu_free)) >= 0
        assert given_back(after, pod, choice.devices) == node


@given(situations())
def test_the_published_scores_stay_within_a_hundred(situation: Situation) -> None:
    if fits(situation.node, situation.pod):
        frag = Fragmentation(situation.typical)
        for term in situation.plan.terms:
            if term.kernel in ("fgd", "gpu_packing"):
                assert 0 <= raw_score(term, situation.node, situation.pod, frag) <= 100


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=9), st.sampled_from(("min_max_0", "min_max_100")))
def test_normalising_keeps_the_order_and_ends_at_nought_and_a_hundred(scores: list[int], how: str) -> None:
    points = normalised(scores, how)
    pairs = sorted(zip(scores, points, strict=True))
    assert [point for _, point in pairs] == sorted(points)
    if len(set(scores)) > 1:
        assert (min(points), max(points)) == (0, 100)
    else:
        assert set(points) == {0 if how == "min_max_0" else 100}


@given(scenarios())
def test_typical_frequencies_add_up_to_one(scenario: Scenario) -> None:
    typical = TypicalPods.of(scenario.workload)
    assert sum(typical.frequency) == pytest.approx(1.0, abs=1e-12)
    assert list(typical.count) == sorted(typical.count, reverse=True)
    assert typical.kept == sum(typical.count) <= len(scenario.workload.table())

"""A bound is no lower than the points of any of its pods."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from fastsim.engine.online.kernel_columns import plan_columns
from fastsim.engine.online.plan import KERNELS, OnlinePlan
from fastsim_ext.select.scan import Selector
from tests.backends import NodeState, indexed
from tests.unit.ext.scores.test_frag_grouped import CPUS, THIRDS, Question, questions, tables

BOUNDED = ("gpu_clustering", "gpu_packing", "best_fit", "fgd", "pwr")


@given(questions(most_gpus=20), st.integers(0, 8000), st.integers(0, 30_000), st.lists(st.integers(0, 32_000)))
@settings(max_examples=80)
def test_no_pod_from_the_least_to_the_most_cpu_has_more_points(
    question: Question, least: int, span: int, others: list[int]
) -> None:
    most = least + span
    nodes, work, _ = tables(question)
    plain, kept = Selector(nodes, work, plan_columns(OnlinePlan(()), 1), 0, None), indexed(nodes, work, OnlinePlan(()))
    state = question.state
    for _, mem, num, milli, _ in question.pods:
        if sum(left >= milli for left in state.gpu_free) < num or state.cpu_free < least:
            continue
        bound = work.add_class(least, -1, num, milli, 0)
        cpus = {cpu for cpu in (least, most, *CPUS, *others) if least <= cpu <= min(most, state.cpu_free)}
        classes = [work.add_class(cpu, mem, num, milli, 0) for cpu in cpus]
        for name in BOUNDED:
            kernel = KERNELS.index(name)
            limit = kept.bound(kernel, 0, bound, most)
            assert limit is not None
            points = {cpu: plain.raw(kernel, 0, 0, 0, cls)[0] for cpu, cls in zip(cpus, classes, strict=True)}
            assert all(found <= limit for found in points.values()), (name, limit, points)


@pytest.mark.parametrize("name", KERNELS)
def test_which_kernels_have_a_bound(name: str) -> None:
    question = Question(NodeState("T4", 32_000, 32_000, 1000, (1000,)), THIRDS, ((1000, 0, 1, 500, ()),))
    nodes, work, fitting = tables(question)
    bound = indexed(nodes, work, OnlinePlan(())).bound(KERNELS.index(name), 0, fitting[0], 8000)
    assert (bound is not None) == (name in BOUNDED)

"""Fragmentation over grouped typical pods is what the plain sums over all of them are, to the last bit."""

from __future__ import annotations

from dataclasses import dataclass, replace

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings
from hypothesis.strategies import DrawFn

from fastsim.engine.online.kernel_columns import ModelIds, node_columns, plan_columns, typical_columns
from fastsim.engine.online.plan import GPU_PICKS, KERNELS, OnlinePlan
from fastsim.workload.typical_pods import TypicalPods
from fastsim_ext.select.scan import Selector
from fastsim_ext.state.node_table import NodeTable, TypicalTable
from fastsim_ext.state.pod_table import WorkTable
from tests.backends import NodeState, Twin, indexed, one_node
from tests.reference.online.frag import Fragmentation
from tests.strategies import scenarios_per_run

FGD = KERNELS.index("fgd")
MODELS = ("T4", "A10", "Unheard")
LEVELS = (1000, 1000, 0, 500, 1, 999, 330, 670, 700, 300)
CPUS = (0, 1000, 4000, 8000, 8001, 32_000)


@dataclass(frozen=True)
class Question:
    """A node state, pods for it and the target workload of fragmentation."""

    state: NodeState
    typical: TypicalPods
    pods: tuple[tuple[int, int, int, int, tuple[str, ...]], ...]


@st.composite
def typical_pods(draw: DrawFn) -> TypicalPods:
    """Up to 12 typical pods, of equal or of any shares, which need not add up to one."""
    size = draw(st.integers(0, 12))
    shares = ((0, 0), (1, 300), (1, 330), (1, 500), (1, 1000), (2, 1000), (8, 1000), (1, 1), (1, 700))
    rows = [
        (draw(st.sampled_from(CPUS)), draw(st.sampled_from(shares)),
         tuple(draw(st.lists(st.sampled_from(MODELS), max_size=2, unique=True))), draw(st.integers(1, 9)))
        for _ in range(size)
    ]  # fmt: skip
    total = draw(st.sampled_from((sum(row[3] for row in rows), 3, 7, 1)))
    equal = draw(st.booleans())
    cpu, request, models, count = zip(*rows, strict=True) if rows else ((), (), (), ())
    frequency = tuple(1 / size if equal else weight / total for weight in count)
    return TypicalPods(
        cpu, tuple(milli for _, milli in request), tuple(num for num, _ in request), models,
        (1,) * size if equal else count, frequency,
    )  # fmt: skip


@st.composite
def questions(draw: DrawFn, most_gpus: int = 64) -> Question:
    """A node of up to 64 devices, full, empty or between, and pods for it."""
    gpus = draw(st.one_of(st.integers(1, 9), st.sampled_from((0, 16, 17, 63, 64)), st.integers(1, most_gpus)))
    levels = draw(st.lists(st.sampled_from(LEVELS), min_size=1, max_size=5))
    left = tuple(levels[i * i % len(levels)] for i in range(gpus))
    model = draw(st.sampled_from(("T4", "A10"))) if gpus else None
    state = NodeState(model, 32_000, draw(st.sampled_from((*CPUS, 7999))), 1000, left)
    shares = ((0, 0), (1, 300), (1, 500), (1, 1000), (2, 1000), (4, 1000), (1, 1), (1, 330), (1, 999), (64, 1000))
    pods = [
        (draw(st.sampled_from(CPUS)), draw(st.sampled_from((0, 0, 10))), *draw(st.sampled_from(shares)),
         tuple(draw(st.lists(st.sampled_from(MODELS), max_size=1))))
        for _ in range(3)
    ]  # fmt: skip
    return Question(state, draw(typical_pods()), tuple(pods))


def tables(question: Question) -> tuple[NodeTable, WorkTable, list[int]]:
    """The node as a table, and the classes of the pods that fit on it."""
    state, ids = question.state, ModelIds(["T4", "A10"])
    columns = node_columns(one_node(state.gpu_model, state.cpu_milli, 1000, len(state.gpu_free)), ids)
    nodes = NodeTable(columns, TypicalTable(typical_columns(question.typical, ids)))
    nodes.load(0, state.cpu_free, state.memory_free, state.gpu_free, {})
    work = WorkTable()
    fitting = []
    for cpu, mem, num, milli, models in question.pods:
        cls = work.add_class(cpu, mem, num, milli, ids.mask(models))
        if cpu <= state.cpu_free and sum(left >= milli for left in state.gpu_free) >= num:
            fitting.append(cls)
    return nodes, work, fitting


# Both sums of three thirds: the first leaves nothing over, the second one bit less than the sum in the given order.
THIRDS = TypicalPods((0, 1000, 4000), (1000, 500, 300), (1, 1, 1), ((), (), ()), (1, 1, 1), (1 / 3, 1 / 3, 1 / 3))


@given(questions())
@example(Question(NodeState("T4", 32_000, 8000, 1000, (1000, 500)), THIRDS, ((0, 10, 0, 0, ()), (0, 0, 0, 0, ()))))
@example(Question(NodeState("T4", 32_000, 8000, 1000, (0,) * 64), THIRDS, ((1000, 0, 0, 0, ()),)))
@settings(max_examples=scenarios_per_run(150))
def test_points_and_devices_are_those_of_the_plain_sums(question: Question) -> None:
    nodes, work, fitting = tables(question)
    plain = Selector(nodes, work, plan_columns(OnlinePlan(()), 1), 0, None)
    grouped = indexed(nodes, work, OnlinePlan(()))
    for cls in fitting:
        assert grouped.raw(FGD, 0, 0, 0, cls) == plain.raw(FGD, 0, 0, 0, cls)
        pick = GPU_PICKS.index("fgd")
        assert grouped.pick(pick, 0, cls) == plain.pick(pick, 0, cls)


@given(questions())
@settings(max_examples=scenarios_per_run(80))
def test_classes_of_fragmentation_are_exact(question: Question) -> None:
    nodes, _, _ = tables(question)
    assert nodes.verify() == 0  # against the plain sums of counts
    counts = replace(question.typical, frequency=tuple(map(float, question.typical.count)))
    expected = Fragmentation(counts).classes(Twin.node(question.state))
    assert tuple(map(float, nodes.figures(0)[0])) == expected


@pytest.mark.parametrize("gpus", [1, 8, 9, 64])
def test_a_node_with_nothing_left_has_no_fragments_and_nothing_to_gain(gpus: int) -> None:
    question = Question(NodeState("T4", 32_000, 32_000, 1000, (0,) * gpus), THIRDS, ((1000, 0, 0, 0, ()),))
    nodes, work, fitting = tables(question)
    assert nodes.figures(0)[:2] == ([0] * 7, 0.0)
    assert indexed(nodes, work, OnlinePlan(())).raw(FGD, 0, 0, 0, fitting[0]) == (50, 0)

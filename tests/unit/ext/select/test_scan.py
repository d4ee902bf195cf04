"""The compiled decision: filter, points, ties and devices, on states worked by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.engine.online.kernel_columns import plan_columns
from fastsim.engine.online.plan import DIMS, GPU_PICKS, KERNELS, NORMS, OnlinePlan, ScoreTerm
from fastsim.engine.tables import INTERVAL, OUTCOME, REASONS
from fastsim_ext.online.loop import OnlineLoop
from fastsim_ext.select.scan import Selector
from fastsim_ext.state.node_table import NodeTable
from fastsim_ext.state.pod_table import WorkTable
from tests.unit.ext.state.test_node_table import WHOLE, Table, t4

LOOP = {
    "queue": 0, "record": 0, "checked": 0, "until_s": np.inf, "sample_s": 0.0, "deschedule_t": np.zeros(0),
    "change_t": np.zeros(0), "change_node": np.zeros(0, np.int32), "change_adds": np.zeros(0, np.int32),
}  # fmt: skip
"""Options of a loop without samples, node changes and deschedules."""
BEST_FIT = OnlinePlan((ScoreTerm("best_fit"),))


class Decision:
    """A selector with its tables; pods are placed one by one and stay."""

    def __init__(self, cluster: Cluster, plan: OnlinePlan = BEST_FIT, seed: int = 0, **options: Any) -> None:
        self.table, self.work = Table(cluster), WorkTable()
        self.plan, self.seed = plan_columns(plan, len(cluster)), seed
        self._join(options)

    def _join(self, options: dict[str, Any]) -> None:
        self.select = Selector(self.table.nodes, self.work, self.plan, self.seed, None)
        self.online = OnlineLoop(self.table.nodes, self.work, self.select, {**LOOP, **options})

    def count_anew(self, **options: Any) -> None:
        """Tables that begin with the node columns as they are now."""
        self.table.nodes = NodeTable(self.table.columns, self.table.target(WHOLE))
        self._join(options)

    def pod(self, num_gpu: int = 1, milli: int = 1000, cpu: int = 0, mem: int = 0, *models: str) -> int:
        """A class of pods."""
        return self.work.add_class(cpu, mem, num_gpu, milli if num_gpu else 0, self.table.ids.mask(models))

    def feed(self, *arrivals: tuple[int, float, float | None], last: bool = True, priority: int = 0) -> None:
        """Arrivals as (class, time, duration in s or None for ever)."""
        cls, submit, lasts = zip(*arrivals, strict=True) if arrivals else ((), (), ())
        spans = np.array([np.nan if span is None else span for span in lasts], np.float64)
        ranks = np.full(len(cls), priority, np.int32)
        pod_ids = np.arange(self.online.arrived, self.online.arrived + len(cls))
        nobody = np.full(len(cls), -1, np.int32)
        columns = pod_ids, np.array(cls, np.int32), np.array(submit, np.float64), spans, ranks, nobody
        self.online.feed(*columns, None, None, last)

    def outcomes(self) -> list[tuple[int, int, str, float]]:
        """(arrival, attempt, reason, end in s) of the intervals that have ended since the last time."""
        rows = np.frombuffer(self.work.drain(), OUTCOME)
        rows = rows[rows["closes"] & INTERVAL > 0]
        return [(int(row["seq"]), int(row["attempt"]), REASONS[row["reason"]], float(row["end"])) for row in rows]

    def placed(self, cls: int) -> int:
        """Position of the node that a pod of the class is put on, or -1."""
        before = self.table.columns["pods"].copy()
        slot = self.online.trial(cls)
        return -1 if slot < 0 else int(np.flatnonzero(self.table.columns["pods"] - before)[0])

    def refused(self, cls: int) -> str:
        """Why a pod of the class, arriving now, is not placed."""
        self.feed((cls, 0.0, None), last=False)
        self.online.advance(1)
        return self.outcomes()[-1][2]


def mixed() -> Cluster:
    """A small T4 node, a large A10 node and one without GPUs."""
    rows = {
        "cpu_milli": [4000, 8000, 16_000], "memory_mib": [10, 20, 30], "num_gpu": [2, 4, 0],
        "gpu_model": ["T4", "A10", None], "max_pods": [None, None, 1],
    }  # fmt: skip
    return Cluster.from_arrow(pa.table(rows))


@pytest.mark.parametrize(
    ("pod", "hosted"),
    [
        ((4, 1000, 8000, 20), True),
        ((4, 1000, 8001, 0), False),
        ((4, 1000, 0, 21), False),
        ((5, 1000), False),
        ((0, 0, 16_000, 30), True),
        ((0, 0, 16_001, 0), False),
        ((4, 1000, 0, 0, "T4"), False),
        ((2, 1000, 0, 0, "T4", "H100"), True),
        ((1, 1, 0, 0, "H100"), False),  # a model no node has
        ((0, 0, 0, 0, "H100"), True),  # the models of a CPU-only pod are not checked
    ],
)
def test_what_some_empty_node_could_host(pod: Any, hosted: bool) -> None:
    decision = Decision(mixed())
    cls = decision.pod(*pod)
    assert decision.select.hosts(cls) is hosted
    for n, gpus in enumerate(decision.table.columns["num_gpu"].tolist()):  # however full the nodes are now
        decision.table.nodes.load(n, 0, 0, [0] * gpus, {})
    assert decision.select.hosts(cls) is hosted


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        ((1, 1, 0, 0, "A10"), "no_gpu"),
        ((3, 1000), "no_gpu"),
        ((1, 1, 1, 0, "T4"), "no_cpu"),
        ((0, 0, 16_000), "no_cpu"),
        ((0, 0, 1, 25), "no_memory"),
        ((5, 1000), "too_large"),
    ],
)
def test_the_furthest_check_that_a_node_failed_is_the_reason(pod: Any, reason: str) -> None:
    decision = Decision(mixed())
    decision.table.nodes.load(0, 0, 10, [500, 500], {0: 2})
    decision.table.nodes.load(1, 8000, 20, [0, 0, 0, 0], {4: 1})
    decision.table.nodes.load(2, 15_999, 24, [], {})
    assert decision.refused(decision.pod(*pod)) == reason


def test_a_full_node_says_so_and_a_missing_model_before_all() -> None:
    decision = Decision(mixed())
    cpu_pod = decision.pod(0, 0, 9000)
    assert decision.placed(cpu_pod) == 2
    assert decision.refused(decision.pod(0, 0, 5000, 25)) == "no_pod_slot"
    only_t4 = Decision(Cluster.from_arrow(mixed().nodes.slice(0, 1).drop_columns(["node_id"])))
    assert only_t4.refused(only_t4.pod(1, 1, 0, 0, "A10")) == "no_gpu_model"
    late = pa.table({"cpu_milli": [1], "memory_mib": [1], "num_gpu": [0], "add_s": [9.0]})
    waiting = Decision(Cluster.from_arrow(late))
    assert waiting.refused(waiting.pod(0)) == "no_node"


def test_equal_points_go_to_the_smallest_position_and_later_nodes_need_more() -> None:
    decision = Decision(t4(3))
    cls = decision.pod(1, 1000)
    assert [decision.placed(cls) for _ in range(6)] == [0, 0, 1, 1, 2, 2]  # best fit fills what it began
    spread = Decision(t4(3), OnlinePlan((ScoreTerm("gpu_packing", weight=0),)))
    assert [spread.placed(spread.pod(2)) for _ in range(4)] == [0, 1, 2, -1]


def test_points_are_weighed_after_they_are_stretched() -> None:
    # Best fit prefers node 0 (fuller), packing node 1 (a used device); stretched, each preference is worth 100.
    def choice(first: int, second: int) -> int:
        terms = (ScoreTerm("best_fit", first, "min_max_0"), ScoreTerm("gpu_packing", second, "min_max_100"))
        decision = Decision(t4(2), OnlinePlan(terms))
        decision.table.nodes.load(0, 8000, 64, [0, 1000], {1: 1})
        decision.table.nodes.load(1, 8000, 64, [500, 1000], {0: 1})
        return decision.placed(decision.pod(1, 500))

    assert (choice(2, 1), choice(1, 2), choice(1, 1)) == (0, 1, 0)


def test_attempts_count_decisions_and_not_questions() -> None:
    decision = Decision(t4(1))
    cls = decision.pod()
    decision.select.raw(KERNELS.index("fgd"), 0, 0, 0, cls)
    decision.select.pick(0, 0, cls)
    decision.select.hosts(cls)
    assert decision.select.attempts == 0
    assert [decision.placed(cls) for _ in range(3)] == [0, 0, -1]
    assert decision.select.attempts == 3


@pytest.mark.parametrize(("pick", "device"), [("best", 3), ("worst", 0), ("fgd", 1), ("pwr", 1), ("dot_product", 3)])
def test_devices_of_a_sharing_pod(pick: str, device: int) -> None:
    # The typical pods request whole devices, so for fgd all devices in use are equal: the first one.
    decision = Decision(t4(1, gpus=5), OnlinePlan((), gpu_dim="merge"))
    decision.table.nodes.load(0, 8000, 64, [1000, 700, 300, 500, 1000], {0: 3})
    assert decision.select.pick(GPU_PICKS.index(pick), 0, decision.pod(1, 400)) == 1 << device


@pytest.mark.parametrize("pick", range(len(GPU_PICKS)))
def test_whole_devices_are_the_lowest_free_ones_whatever_the_rule(pick: int) -> None:
    decision = Decision(t4(1, gpus=20))
    decision.table.nodes.load(0, 8000, 64, [0] * 8 + [1000, 999] * 6, {})
    assert decision.select.pick(pick, 0, decision.pod(3)) == 1 << 8 | 1 << 10 | 1 << 12
    assert decision.select.pick(pick, 0, decision.pod(1)) == 1 << 8
    assert decision.select.pick(pick, 0, decision.pod(0)) == 0


def test_the_last_of_64_devices_can_be_taken() -> None:
    decision = Decision(t4(1, gpus=64))
    decision.table.nodes.load(0, 8000, 64, [0] * 63 + [600], {0: 1})
    for pick in range(len(GPU_PICKS)):
        assert decision.select.pick(pick, 0, decision.pod(1, 600)) == 1 << 63


@pytest.mark.parametrize(("dim", "devices"), [("merge", 0), ("share", 0b10), ("extend", 0b10)])
def test_a_kernel_tells_the_devices_that_earn_its_points(dim: str, devices: int) -> None:
    decision = Decision(t4(1))
    decision.table.nodes.load(0, 8000, 64, [1000, 400], {0: 1})
    cls = decision.pod(1, 400)
    dot = KERNELS.index("dot_product")
    assert decision.select.raw(dot, DIMS.index(dim), NORMS.index("max"), 0, cls)[1] == devices
    assert decision.select.raw(KERNELS.index("simon"), 0, 0, 0, cls) == (0, 0)

"""The indexed selector: when it builds columns and bounds, and that it chooses as the plain one does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.engine.online.kernel_columns import COLUMN_SETTINGS, node_kinds
from fastsim.engine.online.options import OnlineOptions
from fastsim.engine.online.plan import OnlinePlan, ScoreTerm
from fastsim.workload import Workload
from fastsim.workload.typical_pods import TypicalPods
from fastsim_ext.online.loop import OnlineLoop
from fastsim_ext.select.indexed import IndexedSelector
from fastsim_ext.select.state_memo import Memo
from tests.spellings import played, spelled
from tests.unit.ext.select.test_scan import LOOP, Decision
from tests.unit.ext.state.test_node_table import t4

EAGER = {"upkeep_ns": 0, "search_ns": 0, "window_changes": 64, "long_window_changes": 64, "drop_changes": 4}
"""A bound at the first request, where there can be one, and a column for a class at its fourth."""
COLUMNS = EAGER | {"few_classes": 0}
"""The same, without lanes in the memo for classes that have no column."""


class KeptDecision(Decision):
    """An indexed selector with its tables."""

    select: IndexedSelector

    def __init__(self, cluster: Cluster, plan: OnlinePlan, settings: dict[str, Any], **options: Any) -> None:
        self.settings = COLUMN_SETTINGS | settings
        super().__init__(cluster, plan, **options)

    def _join(self, options: dict[str, Any]) -> None:
        self._select_with(Memo(self.table.nodes.width, int(self.plan["figure"].max()) + 1, 10**6), options)

    def _select_with(self, memo: Memo, options: dict[str, Any]) -> None:
        """Select nodes by columns and this memo."""
        nodes, self.memo = self.table.nodes, memo
        _, kind = node_kinds(self.table.columns)
        kept = {
            "memo": self.memo,
            "kind": kind,
            "state": np.full(nodes.count, -1, np.int32),
            "column_settings": self.settings,
        }
        self.select = IndexedSelector(nodes, self.work, self.plan | kept, self.seed, None)
        self.online = OnlineLoop(nodes, self.work, self.select, {**LOOP, **options})


def trial(decision: Decision, cls: int) -> tuple[int, str]:
    """(position or -1, reason) of a pod of the class that is placed for a trial."""
    before = decision.table.columns["pods"].copy()
    slot = decision.online.trial(cls)
    if slot < 0:
        return -1, decision.refused(cls)
    node = int(np.flatnonzero(decision.table.columns["pods"] - before)[0])
    decision.online.discard(slot)
    return node, ""


def cluster(**columns: Any) -> Cluster:
    """Nodes by column; other columns are plentiful."""
    count = len(next(iter(columns.values())))
    rest = {"cpu_milli": [96_000] * count, "memory_mib": [64] * count, "num_gpu": [8] * count}
    return Cluster.from_arrow(pa.table({**rest, "gpu_model": ["T4"] * count, **columns}))


PLANS = {
    "fgd": (ScoreTerm("fgd"),),
    "best_fit": (ScoreTerm("best_fit"),),
    "worst_fit": (ScoreTerm("best_fit", weight=-1),),
    "stretched worst fit": (ScoreTerm("best_fit", weight=-1, normalise="min_max_0"),),
    "fgd and least packed": (ScoreTerm("fgd"), ScoreTerm("gpu_packing", weight=-3)),
    "two stretched": (
        ScoreTerm("pwr", weight=3, normalise="min_max_100"),
        ScoreTerm("best_fit", normalise="min_max_0"),
    ),
    "fgd and a stretched one": (ScoreTerm("fgd", weight=2), ScoreTerm("best_fit", normalise="min_max_0")),
    "fragments and a stretched one": (ScoreTerm("fgd", weight=-2), ScoreTerm("best_fit", normalise="min_max_0")),
    "simon": (ScoreTerm("simon"),),
}


@pytest.mark.parametrize("settings", [EAGER, COLUMNS], ids=["bounds", "columns"])
@pytest.mark.parametrize("name", PLANS)
def test_it_chooses_as_the_plain_selector_does(name: str, settings: dict[str, Any]) -> None:
    plan = OnlinePlan(PLANS[name])
    nodes = cluster(cpu_milli=[96_000, 90_000, 95_999, 96_000, 50_000] * 4)
    kept, plain = KeptDecision(nodes, plan, settings), Decision(nodes, plan)
    shapes = [(1, 500, 4000), (1, 300, 500), (2, 1000, 9000), (0, 0, 1000), (1, 1000, 30_000)]
    classes = [(kept.pod(*shape), plain.pod(*shape)) for shape in shapes]
    for k in range(90):
        mine, other = classes[k * k % 5]
        assert kept.placed(mine) == plain.placed(other), k
        kept.select.verify()
    assert kept.select.built > 0 and kept.select.attempts == plain.select.attempts == 90


def test_a_class_has_a_column_from_its_fourth_request_on() -> None:
    decision = KeptDecision(t4(20), OnlinePlan((ScoreTerm("simon"),)), COLUMNS)
    cls, built, scans = decision.pod(1, 100), [], []
    for _ in range(5):
        decision.placed(cls)
        built.append(decision.select.built)
        scans.append(decision.select.scans)
    assert built == [0, 0, 0, 1, 1] and scans == [1, 2, 3, 3, 3]


def test_a_family_has_a_bound_that_its_other_classes_share() -> None:
    decision = KeptDecision(t4(20, gpus=8), OnlinePlan((ScoreTerm("fgd"),)), EAGER)
    found = []
    for cpu in (10, 20, 30, 40):
        decision.placed(decision.pod(1, 100, cpu))
        found.append((decision.select.built, decision.select.searches))
    assert found == [(1, 1), (1, 2), (1, 3), (1, 4)]
    # A search need not look at a node whose bound is below what it has found.
    assert decision.select.evaluated < 4 * 20


def test_gaps_of_dropped_columns_are_closed() -> None:
    settings = COLUMNS | {"upkeep_ns": 60, "window_changes": 4, "most_gaps": 0, "pack_changes": 0}
    cluster_of_t4, plan = t4(40, gpus=8), OnlinePlan(PLANS["fgd"])
    kept, plain = KeptDecision(cluster_of_t4, plan, settings), Decision(cluster_of_t4, plan)
    classes = [(kept.pod(1, 100 * k, 10 * k), plain.pod(1, 100 * k, 10 * k)) for k in range(1, 7)]
    table = kept.select.table
    for k in range(240):
        mine, other = classes[k // 24 % 5 if k % 2 else 5]
        assert kept.placed(mine) == plain.placed(other), k
        assert table.n_columns - table.n_used <= 4
        kept.select.verify()
    assert kept.select.packed > 0 and kept.select.built > kept.memo.n_lanes


def test_an_unused_column_is_dropped() -> None:
    settings = COLUMNS | {"upkeep_ns": 60, "window_changes": 4}
    decision = KeptDecision(t4(40, gpus=8), OnlinePlan((ScoreTerm("simon"),)), settings)
    often, other = decision.pod(1, 100), decision.pod(1, 200)
    for _ in range(6):
        decision.placed(often)
    assert (decision.select.built, decision.select.table.n_used) == (1, 1)
    for _ in range(60):
        decision.placed(other)
    assert (decision.select.built, decision.select.table.n_used) == (2, 1)
    decision.select.verify()


def test_there_are_no_more_columns_than_fit() -> None:
    decision = KeptDecision(
        t4(3, gpus=8), OnlinePlan((ScoreTerm("simon"),)), COLUMNS | {"columns_bytes": 0, "least_columns": 2}
    )
    classes = [decision.pod(1, milli) for milli in (100, 200, 300, 400)]
    for _ in range(6):
        for cls in classes:
            trial(decision, cls)
    assert (decision.select.table.limit, decision.select.table.n_used) == (2, 2)


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        ((1, 500, 9000, 0, "T4"), "no_cpu"),
        ((1, 500, 9000, 0, "A10"), "no_gpu"),  # the A10 node has CPU, but no device; the T4 node is of another model
        ((1, 500, 9000, 70), "no_memory"),
        ((1, 1000, 9000), "no_gpu"),
        ((1, 500, 40_000, 0, "T4"), "no_cpu"),
    ],
)
def test_a_search_that_finds_nothing_knows_why(pod: Any, reason: str) -> None:
    nodes = cluster(cpu_milli=[96_000, 96_000], memory_mib=[64, 99], num_gpu=[2, 2], gpu_model=["T4", "A10"])
    kept, plain = KeptDecision(nodes, OnlinePlan((ScoreTerm("best_fit"),)), EAGER), Decision(nodes)
    for decision in (kept, plain):
        cls = decision.pod(*pod)
        for _ in range(3):  # then there is a bound
            trial(decision, cls)
        decision.table.nodes.load(0, 7000, 64, [500, 500], {0: 2})
        decision.table.nodes.load(1, 96_000, 65, [500 if pod[3:] == (70,) else 0] * 2, {2: 1})
    assert [trial(decision, 0) for decision in (kept, plain)] == [(-1, reason)] * 2
    assert kept.select.searches > 1


def test_an_equal_total_before_the_best_wins_although_its_bound_is_no_higher() -> None:
    nodes = cluster(num_gpu=[1] * 3, gpu_idle_w=[0.0] * 3, gpu_peak_w=[105.0] * 3)
    plan = OnlinePlan((ScoreTerm("pwr"),))
    kept, plain = KeptDecision(nodes, plan, EAGER), Decision(nodes, plan)
    for decision in (kept, plain):
        # With 64,000 milli-CPU left, 900 more wake a socket of 105 W, of which the bound knows nothing.
        decision.table.nodes.load(0, 64_000, 64, [1000], {})  # 105 W of the device and the socket; bound: the device
        decision.table.nodes.load(1, 70_000, 64, [1000], {})  # the device, as the bound says
        decision.table.nodes.load(2, 64_000, 64, [500], {0: 1})  # the socket; bound: nothing
        assert trial(decision, decision.pod(1, 200, 900)) == (1, "")
    assert (kept.select.searches, kept.select.evaluated) == (1, 3)


def test_a_node_far_beyond_the_extremes_of_last_time_is_not_lost() -> None:
    nodes = cluster(num_gpu=[8] * 3, gpu_idle_w=[0.0] * 3, gpu_peak_w=[1.0, 1.125, 1500.0])
    plan = OnlinePlan((ScoreTerm("pwr", weight=1000, normalise="min_max_0"), ScoreTerm("gpu_packing")))
    kept, plain = KeptDecision(nodes, plan, COLUMNS), Decision(nodes, plan)
    found = []
    for decision in (kept, plain):
        cls = decision.pod(8, 1000)
        decision.table.nodes.load(2, 96_000, 64, [500] * 8, {0: 8})
        for _ in range(4):  # the first two nodes draw 8 W and 9 W more
            trial(decision, cls)
        decision.table.nodes.load(2, 96_000, 64, [1000] * 8, {})  # and the third one 12,000 W
        found.append([decision.placed(cls) for _ in range(3)])
    assert found[0] == found[1] == [0, 1, 2]
    assert kept.select.built == 1


def test_the_smallest_points_may_be_equal_once_they_are_stretched() -> None:
    nodes = cluster(num_gpu=[8] * 3, gpu_idle_w=[0.0] * 3, gpu_peak_w=[125.0, 125.125, 1.0])
    plan = OnlinePlan((ScoreTerm("pwr", weight=-1, normalise="min_max_0"),))
    for decision in (KeptDecision(nodes, plan, COLUMNS), Decision(nodes, plan)):
        # Minus 1,000 W and minus 1,001 W both become 0 where the best has 100.
        assert [trial(decision, decision.pod(8, 1000) if k == 0 else 0)[0] for k in range(5)] == [0] * 5


def test_modified_node_records_use_no_stored_points() -> None:
    rows = [{"pod_id": k, "submit_s": float(k), "cpu_milli": 100 + k, "memory_mib": 0, "num_gpu": 1, "gpu_milli": 200,
             "gpu_memory_mib": 4000} for k in range(40)]  # fmt: skip
    workload, made = Workload.from_arrow(pa.Table.from_pylist(rows)), cluster(num_gpu=[4] * 4)
    plan = OnlinePlan((ScoreTerm("fgd"), ScoreTerm("best_fit", normalise="min_max_0")))
    nodes = []
    for name in ("scan", "index"):
        with spelled(name, COLUMNS):
            nodes.append(played(made, workload, plan, TypicalPods.of(workload), OnlineOptions()).placements)
    assert nodes[0].equals(nodes[1]) and nodes[0]["node_id"].n_unique() > 1


@pytest.mark.parametrize("weight", [50, 100, -100])
def test_points_too_large_for_a_column_are_not_kept(weight: int) -> None:
    # Simon's share is over what would be left of the node: 1 MiB of a million.
    size = 2**20
    cluster = Cluster.uniform(nodes=6, gpus=0, cpu_milli=8000, memory_mib=size)
    rows = [{"pod_id": k, "submit_s": float(k), "duration_s": 0.5, "cpu_milli": 0, "memory_mib": size - 1, "num_gpu": 0,
             "gpu_milli": 0} for k in range(8)]  # fmt: skip
    workload = Workload.from_arrow(pa.Table.from_pylist(rows))
    plan = OnlinePlan((ScoreTerm("simon", weight=weight), ScoreTerm("best_fit")))
    nodes = []
    for name in ("scan", "index"):
        with spelled(name, COLUMNS):
            nodes.append(
                played(cluster, workload, plan, TypicalPods.of(workload), OnlineOptions())
                .placements["node_id"]
                .to_list()
            )
    assert nodes[0] == nodes[1] == [0] * 8

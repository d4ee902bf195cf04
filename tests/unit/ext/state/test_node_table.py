"""The compiled node table: totals by hand, states put in, and a verify() that sees every kind of damage."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.engine.online.kernel_columns import ModelIds, node_columns, typical_columns
from fastsim.workload.typical_pods import TypicalPods
from fastsim_ext.state.node_table import NodeTable, TypicalTable

WHOLE = TypicalPods((1000,), (1000,), (1,), ((),), (3,), (1.0,))
"""A typical pod requests a whole device; the weight is 3."""
Q1, Q2, Q3, Q4, XL, XR, NO = range(7)


class Table:
    """A node table together with the columns it writes to."""

    def __init__(self, cluster: Cluster, typical: TypicalPods = WHOLE) -> None:
        self.ids = ModelIds(cluster.nodes["gpu_model"].to_pylist())
        self.columns = node_columns(cluster, self.ids)
        self.nodes = NodeTable(self.columns, self.target(typical))

    def target(self, typical: TypicalPods) -> TypicalTable:
        """The typical pods in the numbers of this cluster."""
        return TypicalTable(typical_columns(typical, self.ids))


def t4(count: int = 1, gpus: int = 2, **columns: Any) -> Cluster:
    """Nodes of 8 CPUs (one socket of 16 cores, 15 to 120 W), 64 MiB and T4 devices of 10 to 70 W."""
    return Cluster.uniform(nodes=count, gpu="T4", gpus=gpus, cpu_milli=8000, memory_mib=64, **columns)


def test_an_empty_cluster_has_capacity_and_idle_power() -> None:
    table = Table(t4(2))
    totals = table.nodes.totals()
    assert totals.pop("frag") == [0, 0, 2 * 2000 * 3, 0, 0, 0, 0]
    assert totals == {
        "nodes_used": 0, "gpus_of_used_nodes": 0, "gpus_used": 0, "cpu_alloc": 0, "mem_alloc": 0, "gpu_alloc": 0,
        "cpu_cap": 16_000, "mem_cap": 128, "gpu_cap": 4000, "cpu_mw": 30_000, "gpu_mw": 40_000,
    }  # fmt: skip
    assert (table.nodes.count, table.nodes.width, table.nodes.n_tags) == (2, 8, 3)
    assert table.nodes.verify() == 0


def test_a_state_put_in_moves_every_total() -> None:
    table = Table(t4(2))
    table.nodes.load(1, 5000, 60, [1000, 400], {0: 1})
    totals = table.nodes.totals()
    assert (totals["nodes_used"], totals["gpus_of_used_nodes"], totals["gpus_used"]) == (1, 2, 1)
    assert (totals["cpu_alloc"], totals["mem_alloc"], totals["gpu_alloc"]) == (3000, 4, 600)
    assert (totals["cpu_mw"], totals["gpu_mw"]) == (15_000 + 120_000, 20_000 + 80_000)
    # 400 milli of node 1 are too little for a whole device.
    assert table.nodes.figures(1) == ([0, 400 * 3, 1000 * 3, 0, 0, 0, 0], 400.0, 120_000, 80_000)
    assert totals["frag"] == [0, 1200, 9000, 0, 0, 0, 0]
    assert table.columns["tags"].tolist() == [[0, 0, 0], [1, 0, 0]]
    assert table.nodes.verify() == 0


def test_cpu_alone_makes_a_node_used() -> None:
    table = Table(t4(1))
    table.nodes.load(0, 7999, 64, [1000, 1000], {})
    totals = table.nodes.totals()
    assert (totals["nodes_used"], totals["gpus_of_used_nodes"], totals["gpus_used"]) == (1, 2, 0)


@pytest.mark.parametrize(
    ("cpu_left", "state", "shares"),
    [
        (999, [1000, 1000], {Q4: 1500, XR: 500}),
        (999, [999, 400], {Q1: 0.75 * 1399, XR: 0.25 * 1399}),
        (1000, [999, 400], {Q2: 0.75 * 1399, XL: 0.25 * 1399}),
        (1000, [1000, 400], {Q2: 0.75 * 400, Q3: 0.75 * 1000, XL: 0.25 * 1400}),
        (1000, [0, 0], {}),
    ],
)
def test_classes_of_fragmentation_by_hand(cpu_left: int, state: list[int], shares: dict[int, float]) -> None:
    # Three of four typical pods ask for a whole device and one for CPU only.
    table = Table(t4(), TypicalPods((1000, 1000), (1000, 0), (1, 0), ((), ()), (3, 1), (0.75, 0.25)))
    table.nodes.load(0, cpu_left, 64, state, {})
    expected = [shares.get(k, 0.0) for k in range(7)]
    assert table.nodes.frag_shares(0) == expected
    counted, frag, _, _ = table.nodes.figures(0)
    assert [count / 4 for count in counted] == expected
    assert frag == sum(expected) - expected[Q3]


def test_a_model_the_cluster_lacks_is_out_of_reach_on_every_node() -> None:
    rows = {"cpu_milli": [8000] * 3, "memory_mib": [1] * 3, "num_gpu": [1, 1, 0], "gpu_model": ["T4", "A10", None]}
    typical = TypicalPods((0, 0), (500, 500), (1, 1), (("A10",), ("H100", "H200")), (1, 10), (0.1, 0.9))
    nodes = Table(Cluster.from_arrow(pa.table(rows)), typical).nodes
    assert nodes.figures(0)[0] == [0, 0, 0, 0, 0, 0, 11_000]
    assert nodes.figures(1)[0] == [0, 0, 1000, 0, 0, 0, 10_000]
    assert nodes.figures(2)[0] == [0] * 7


@pytest.mark.parametrize("gpus", [7, 8, 9, 16, 17, 63, 64])
def test_padding_is_neither_free_nor_used(gpus: int) -> None:
    table = Table(t4(1, gpus), TypicalPods((0,), (1,), (1,), ((),), (1,), (1.0,)))
    assert table.nodes.width % 8 == 0 and table.nodes.width - gpus < 8
    assert table.nodes.figures(0)[0] == [0, 0, gpus * 1000, 0, 0, 0, 0]
    assert table.nodes.figures(0)[3] == gpus * 10_000
    table.nodes.load(0, 8000, 64, [1000] * (gpus - 1) + [0], {})
    assert table.nodes.totals()["gpus_used"] == 1 and table.nodes.totals()["gpu_alloc"] == 1000
    assert table.nodes.verify() == 0


def test_nodes_still_to_come_count_nothing() -> None:
    rows = {"cpu_milli": [8000] * 2, "memory_mib": [1] * 2, "num_gpu": [1] * 2, "gpu_model": ["T4"] * 2}
    table = Table(Cluster.from_arrow(pa.table({**rows, "add_s": [None, 5.0]})))
    totals = table.nodes.totals()
    assert (totals["gpu_cap"], totals["cpu_mw"]) == (1000, 15_000)
    table.columns["cpu_left"][1] = -1  # an absent node is not checked
    assert table.nodes.verify() == 0


def test_another_target_changes_fragmentation_and_nothing_else() -> None:
    table = Table(t4(2))
    table.nodes.load(0, 8000, 64, [300, 1000], {0: 1})
    before = table.nodes.totals()
    table.nodes.retarget(table.target(TypicalPods((0,), (200,), (1,), ((),), (7,), (1.0,))))
    after = table.nodes.totals()
    assert before.pop("frag") == [0, 900, 9000, 0, 0, 0, 0]
    assert after.pop("frag") == [0, 0, 7 * 3300, 0, 0, 0, 0]
    assert before == after and table.nodes.verify() == 0


def test_no_typical_pods_and_no_devices_have_no_fragments() -> None:
    nothing = Table(t4(), TypicalPods((), (), (), (), (), ())).nodes
    assert nothing.figures(0)[:2] == ([0] * 7, 0.0) and nothing.verify() == 0
    bare = Table(Cluster.uniform(nodes=1, gpus=0, cpu_milli=2000, memory_mib=1)).nodes
    assert bare.figures(0) == ([0] * 7, 0.0, 15_000, 0) and bare.verify() == 0


@pytest.mark.parametrize(("cpu_milli", "milliwatts"), [(0, 0), (1000, 120_000), (2000, 15_000), (34_000, 30_000),
                                                       (32_000, 15_000), (32_001, 135_000)])  # fmt: skip
def test_two_virtual_cpus_are_a_core_and_half_a_core_is_never_idle(cpu_milli: int, milliwatts: int) -> None:
    # The published formula counts cores up and idle cores down, so an odd virtual CPU keeps its socket awake.
    bare = Table(Cluster.uniform(nodes=1, gpus=0, cpu_milli=cpu_milli, memory_mib=1)).nodes
    assert bare.figures(0)[2] == milliwatts


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ((-1, 64, [1000, 1000]), "node 1: cpu_left -1"),
        ((8001, 64, [1000, 1000]), "node 1: cpu_left 8001"),
        ((8000, -1, [1000, 1000]), "node 1: mem_left -1"),
        ((8000, 65, [1000, 1000]), "node 1: mem_left 65"),
    ],
)
def test_a_state_that_cannot_be_is_found(state: tuple[int, int, list[int]], message: str) -> None:
    table = Table(t4(2))
    table.nodes.load(1, *state, {})
    with pytest.raises(AssertionError, match=message):
        table.nodes.verify()


@pytest.mark.parametrize(
    ("column", "place", "value", "message"),
    [
        ("cpu_left", 0, 7000, "node 0: two states"),
        ("mem_left", 0, 63, "node 0: two states"),
        ("gpu_left", (0, 1), 500, r"node 0: cached power is not \(15000, 80000\) mW"),
        ("gpu_left", (0, 1), -1, "node 0: GPU 1"),
        ("gpu_left", (0, 0), 1001, "node 0: GPU 0"),
        ("gpu_left", (0, 2), 1, "node 0: GPU 2"),  # a device the node does not have
        ("pods", 0, -1, "node 0: pods -1"),
        ("pods", 0, 8, "node 0: pods 8"),
        ("frag", 0, 1e-12, "cached fragmentation 1e-12 is not 0.0"),
        ("frag_classes", (0, 2), 1, "node 0: fragmentation class 2"),
        ("gpu_mw", 0, 1, r"node 0: cached power is not \(15000, 20000\) mW"),
        ("present", 1, 0, "totals drifted"),
    ],
)
def test_a_column_changed_behind_the_tables_back_is_found(column: str, place: Any, value: float, message: str) -> None:
    table = Table(t4(2, max_pods=7))
    table.columns[column][place] = value
    with pytest.raises(AssertionError, match=message):
        table.nodes.verify()


@pytest.mark.parametrize("left", [-1, 1001])
def test_a_device_holds_no_more_than_a_device_and_no_less_than_nothing(left: int) -> None:
    table = Table(t4(2))
    before = table.nodes.totals()
    with pytest.raises(ValueError, match=f"node 1: found {left} milli-GPU left on a device, expected 0 to 1000"):
        table.nodes.load(1, 8000, 64, [1000, left], {})
    assert table.nodes.totals() == before and table.nodes.verify() == 0


def test_counting_a_node_twice_is_found() -> None:
    nodes = Table(t4()).nodes
    nodes.count_present()
    with pytest.raises(AssertionError, match="totals drifted"):
        nodes.verify()

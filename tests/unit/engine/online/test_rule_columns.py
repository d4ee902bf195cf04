"""What the compiled rules are told: numbers of names, conditions of classes, changes of nodes in pieces, past ones."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.engine.online.plan import OnlinePlan
from fastsim.engine.online.rule_columns import UNLIMITED, Numbers, RuleColumns, check_past, needs_rules, past_changes
from fastsim.errors import InputError
from fastsim.hardware.node_constraints import NONE, Conditions, Constraint
from fastsim.scenario.outages import Change, Maintenance, Outages
from fastsim.scenario.run_rules import NO_RULES, Rules
from fastsim.workload.pod_classes import PodClasses

NODES = Cluster.mix([
    (1, {"name": "a", "cpu_milli": 1000, "memory_mib": 10, "num_gpu": 2, "gpu_model": "T4", "gpu_memory_mib": 16,
         "labels": {"zone": "x"}, "extra_resources": {"nic": 2}}),
    (1, {"name": "b", "cpu_milli": 1000, "memory_mib": 10, "num_gpu": 0, "extra_resources": {"fpga": 1}}),
])  # fmt: skip

AWAY = np.zeros(2, np.int32)


class Heard:
    """Stands for the compiled engine and remembers what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.constraints = self.tenants = self

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.told.append((name, *arguments))


def batch(**columns: list[Any]) -> pa.RecordBatch:
    rows = len(next(iter(columns.values())))
    base = {"pod_id": range(rows), "submit_s": [0.0] * rows, "cpu_milli": [1] * rows, "memory_mib": [0] * rows,
            "num_gpu": pa.array([1] * rows, pa.int16()), "gpu_milli": pa.array([500] * rows, pa.int16())}  # fmt: skip
    table = pa.table({name: pa.array(values) for name, values in (base | columns).items()})
    return table.to_batches()[0]


def test_a_run_needs_rules_if_it_asks_for_more_than_the_plain_loop_does() -> None:
    plain = OnlinePlan(())
    assert not needs_rules(
        plain, NO_RULES, ("cpu_milli", "tenant", "group", "preemptible", "preempts", "budgets", "est_duration_s")
    )
    assert needs_rules(OnlinePlan((), queue="easy"), NO_RULES, ()) and needs_rules(plain, Rules(preempt="priority"), ())
    for column in ("gang_size", "gpu_memory_mib", "extra_resources", "constraints", "pinned_node", "max_per_node"):
        assert needs_rules(plain, NO_RULES, (column,))


def test_names_keep_their_numbers_from_batch_to_batch() -> None:
    numbers = Numbers()
    assert numbers.column(batch(tenant=["b", None, "a", "b"]), "tenant").tolist() == [0, 1, 2, 0]
    assert numbers.column(batch(tenant=["a", "c", None]), "tenant").tolist() == [2, 3, 1]
    assert numbers.column(batch(x=[1, 2]), "tenant").tolist() == [1, 1]


def test_capacities_are_columns_and_no_memory_is_any_memory() -> None:
    options = RuleColumns(NODES, NO_RULES, 0, width=8).options()
    assert options["gpu_mem_cap"].tolist() == [16, UNLIMITED] and options["gpu_mem_left"].shape == (2, 8)
    assert options["extra_cap"].tolist() == [[0, 2], [1, 0]] and options["n_extra"] == 2
    many = {f"r{k}": 1 for k in range(17)}
    crowded = Cluster.uniform(nodes=1, extra_resources=many)
    with pytest.raises(InputError, match="17 distinct resources, expected at most 16"):
        RuleColumns(crowded, NO_RULES, 0, width=8)


def test_tenants_are_told_once_with_their_limits() -> None:
    rules = RuleColumns(NODES, Rules(quotas={"anna": {"gpu_milli": 5}}, weights={"anna": 2.0}), 0, width=8)
    heard: Any = Heard()
    for _ in range(2):
        rules.feed_members(heard, batch(tenant=["anna", None], est_duration_s=[1.0, None], duration_s=[3.0, 4.0]))
    told = [call for call in heard.told if call[0] == "add_tenant"]
    assert told == [("add_tenant", UNLIMITED, UNLIMITED, 5, 2.0), ("add_tenant", *[UNLIMITED] * 3, 1.0)]
    members = heard.told[-1]
    assert members[1].tolist() == [0, 1] and members[2].tolist() == [-1, -1] and members[3].tolist() == [1, 1]
    assert members[4].tolist() == [1, 1] and members[5].tolist() == [1.0, 4.0] and members[7].tolist() == [1, 1]


def test_conditions_of_new_classes_are_told_in_the_clusters_terms() -> None:
    classes, heard = PodClasses(), Heard()
    constraint = [{"key": "zone", "op": "In", "values": ["x"]}]
    pods = batch(
        gpu_memory_mib=[8, None, None, None, 8], constraints=[None, constraint, None, None, None],
        extra_resources=pa.array([None, None, [("fpga", 1)], [("tpu", 1)], None], pa.map_(pa.string(), pa.int64())),
        group=["g"] * 5, max_per_node=[None, 3, None, None, None],
    )  # fmt: skip
    assert classes.intern(pods).tolist() == [0, 1, 2, 3, 0]
    assert classes.conditions == [
        NONE, Conditions(8), Conditions(constraints=(Constraint("zone", "In", ("x",)),), group="g", max_per_node=3),
        Conditions(extra_resources=(("fpga", 1),)), Conditions(extra_resources=(("tpu", 1),)),
    ]  # fmt: skip
    rules, told = RuleColumns(NODES, NO_RULES, 0, width=8), heard
    rules.add_rules(told, 10, classes, classes.rows()["models"])  # type: ignore[arg-type]
    assert heard.told == [
        ("add_rule", 10, 8, [0, 0], False, -1, -1, None, [], []),
        ("add_rule", 11, 0, [0, 0], False, 1, 3, b"\x01\x00", [], []),
        ("add_rule", 12, 0, [1, 0], False, -1, -1, None, [], []),
        ("add_rule", 13, 0, [0, 0], True, -1, -1, None, [], []),
    ]  # fmt: skip


def test_changes_are_handed_over_to_their_end() -> None:
    heard: Any = Heard()
    windows = (Maintenance("a-0000", 1.0, 2.0),)
    RuleColumns(NODES, Rules(outages=Outages(maintenance=windows)), 0, width=8).feed_changes(heard)
    _, t_s, position, comes, random, last = heard.told[0]
    assert (t_s.tolist(), position.tolist(), comes.tolist(), random.tolist()) == ([1.0, 2.0], [0, 0], [0, 1], [0, 0])
    assert last and position.dtype == np.int32
    endless = RuleColumns(NODES, Rules(outages=Outages(10.0, 1.0)), 0, width=8)
    endless.feed_changes(heard)
    endless.feed_changes(heard)
    assert not heard.told[2][-1] and heard.told[1][1][-1] <= heard.told[2][1][0]


def test_changes_that_are_past_leave_nodes_away() -> None:
    changes = [Change(1.0, 0, False, True), Change(2.0, 1, False, False), Change(3.0, 0, True, True)]
    past = past_changes(iter(changes), 2, 2.5, AWAY)
    assert (past.away.tolist(), past.failed, past.planned) == ([1, 1], 1, 1)
    loop = {"ended": False, "planned": 3, "failed": 1}
    arrays = {"away": np.array([1, 1], np.int32), "spared": np.zeros(2, np.uint8)}
    check_past(past, loop, arrays, planned=4)
    check_past(past, loop | {"failed": 0}, {"away": np.array([0, 1]), "spared": np.array([1, 0], np.uint8)}, planned=4)
    with pytest.raises(ValueError, match="away"):
        check_past(past, loop, arrays | {"spared": np.ones(2, np.uint8)}, planned=4)
    with pytest.raises(ValueError, match="3 planned changes"):
        check_past(past, loop, arrays, planned=5)


def test_changes_of_later_times_are_no_past_ones() -> None:
    with pytest.raises(ValueError, match=r"loop\.change_next = 1, more changes of nodes than there were until 0 s"):
        past_changes(iter([Change(1.0, 0, False, False)]), 1, 0.0, AWAY)
    assert past_changes(iter([Change(1.0, 0, False, True)]), 1, 0.0, AWAY).failed == 1  # left out ahead of its time
    endless = (Change(float(k), 0, k % 2 == 1, True) for k in count())
    with pytest.raises(ValueError, match="more changes"):
        past_changes(endless, 1 << 60, 5.0, AWAY)

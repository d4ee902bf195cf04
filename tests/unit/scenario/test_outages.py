"""When nodes go and come: texts and tables of outages, and the order and independence of failures."""

from __future__ import annotations

import math
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.errors import InputError, ScenarioError
from fastsim.scenario.outages import (
    Change,
    Maintenance,
    Outages,
    away_at_start,
    failures,
    failures_from,
    maintenance_from,
    merged,
    planned,
    taken,
)

NODES = Cluster.mix([(1, {"name": "a", "cpu_milli": 1, "memory_mib": 1, "num_gpu": 0, "add_s": 2.0, "remove_s": 9.0}),
                     (1, {"name": "b", "cpu_milli": 1, "memory_mib": 1, "num_gpu": 0})])  # fmt: skip


def test_failures_from_a_text() -> None:
    assert failures_from("mtbf=100, mttr=2.5") == (100.0, 2.5)
    assert failures_from(" ") == (None, None)
    for text in ("mtbf=100", "mtbf=0,mttr=1", "mtbf=1,mttr=inf", "often", "mtbf=1,mttr=1,x=1"):
        with pytest.raises(ScenarioError, match="failures: found"):
            failures_from(text)


@pytest.mark.parametrize("value", [5, 0.5, True])
def test_maintenance_that_is_no_table(value: object) -> None:
    with pytest.raises(InputError, match=f"maintenance: found {value}, expected a file's path"):
        maintenance_from(value)


def test_maintenance_from_rows_tables_and_files(tmp_path: Path) -> None:
    windows = (Maintenance("a", 1.0, 2.0), Maintenance("b", 0.0, math.inf))
    frame = pl.DataFrame({"node": ["a", "b"], "down_s": [1.0, 0.0], "up_s": [2.0, None]})
    frame.write_csv(tmp_path / "m.csv")
    frame.write_parquet(tmp_path / "m.parquet")
    files = (str(tmp_path / "m.csv"), str(tmp_path / "m.parquet"))
    for given in (windows, [("a", 1.0, 2.0), ("b", 0.0)], frame, *files):
        assert maintenance_from(given) == windows
    assert maintenance_from(None) == maintenance_from("") == ()


@pytest.mark.parametrize("row", [("a", 2.0, 2.0), ("a", "soon"), {"node": "a"}, (None, 1.0, 2.0), 7])
def test_windows_that_mean_nothing(row: Any) -> None:
    with pytest.raises(InputError, match="maintenance:1: found"):
        maintenance_from([row])


def test_planned_changes_are_in_order_and_going_is_before_coming() -> None:
    windows = (Maintenance("b-0000", 2.0, 5.0), Maintenance("b-0000", 5.0, 6.0), Maintenance("a-0000", 9.0, math.inf))
    changes = planned(NODES, Outages(maintenance=windows))
    assert [change[:3] for change in changes] == [
        (2.0, 0, True), (2.0, 1, False), (5.0, 1, False), (5.0, 1, True), (6.0, 1, True), (9.0, 0, False),
        (9.0, 0, False),
    ]  # fmt: skip
    assert not any(change.random for change in changes) and away_at_start(NODES) == [True, False]
    with pytest.raises(InputError, match="maintenance: found node 'c', expected the name of a node"):
        planned(NODES, Outages(maintenance=(Maintenance("c", 1.0, 2.0),)))


def test_failures_alternate_on_every_node_and_stand_in_order() -> None:
    changes = list(islice(failures(3, Outages(10.0, 1.0), seed=5), 600))
    assert all(one.t_s <= other.t_s for one, other in pairwise(changes))
    for position in range(3):
        mine = [change for change in changes if change.position == position]
        assert [change.comes for change in mine] == [index % 2 == 1 for index in range(len(mine))]
        up = [after.t_s - before.t_s for before, after in pairwise(mine) if not after.comes]
        assert 7.0 < sum(up) / len(up) < 13.0  # about 100 times of mean 10: three standard errors


def test_failures_of_a_node_do_not_depend_on_the_others() -> None:
    few, many = (list(islice(failures(nodes, Outages(10.0, 1.0), seed=5), 400)) for nodes in (1, 3))
    of_first = [change for change in many if change.position == 0]
    assert few[: len(of_first)] == of_first
    assert few != list(islice(failures(1, Outages(10.0, 1.0), seed=6), 400))


def test_failures_begin_at_any_second() -> None:
    at_0, later = (list(islice(failures(3, Outages(10.0, 1.0), 5, begin_s), 300)) for begin_s in (0.0, 4096.0))
    assert [change[1:] for change in later] == [change[1:] for change in at_0]
    assert [change.t_s - 4096.0 for change in later] == pytest.approx([change.t_s for change in at_0])


def test_no_means_no_failures() -> None:
    assert list(failures(3, Outages(), seed=0)) == []


def test_merged_changes_come_in_pieces_of_any_size() -> None:
    given = Outages(3.0, 1.0, (Maintenance("b-0000", 4.0, 5.0),))
    whole = taken(merged(NODES, given, 1), 50)
    stream = merged(NODES, given, 1)
    assert [change for size in (1, 7, 42) for change in taken(stream, size)] == whole == sorted(whole)
    assert Change(4.0, 1, False, False) in whole

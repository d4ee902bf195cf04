"""The table of sensitivities: variants, grids, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from fastsim.errors import InputError
from fastsim.performance.sensitivity_table import (
    SENSITIVITY_SCHEMA,
    Grid,
    WorkloadProfile,
    profile_table,
    profiles,
    sensitivity_rows,
)

HEAD = ",".join(SENSITIVITY_SCHEMA.names)
DEMAND = "net,image,demand,,32,0.5,4,50,10,2"


def read(path: Path, *lines: str, cpus_per_gpu: float | None = None) -> tuple[WorkloadProfile, ...]:
    path.write_text("\n".join([HEAD, *lines]) + "\n")
    table, where = sensitivity_rows(path)
    return profiles(table, str(path), where, cpus_per_gpu)


def test_the_rows_of_one_variant_and_those_of_all_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    lines = ["net,image,demand,4,32,0.5,4,50,10,2", "net,image,demand,3,32,0.6,4,50,10,3", "b,,demand,,,1,1,2,,1"]
    fewest, four = read(path, *lines), read(path, *lines, cpus_per_gpu=4)
    assert [(p.workload, p.task, p.iteration_s, p.speedup) for p in fewest] == [
        ("net", "image", 0.6, 3),
        ("b", "b", 1, 1),
    ]
    assert [(p.iteration_s, p.batch_size, p.storage_mb_s) for p in four] == [(0.5, 32, 10), (1, 0, 0)]
    with pytest.raises(InputError, match=r"cpus_per_gpu: found 5, expected one of the table's: 3, 4"):
        read(path, *lines, cpus_per_gpu=5)


def test_a_grid_is_complete_and_sorted(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    points = [f"net,image,grid,,,,{c},{m},,{c * m}" for c in (4, 1) for m in (20, 10)]
    (found,) = read(path, DEMAND, *points)
    assert found.grid is not None
    assert found.grid.cpu__c.tolist() == [1, 4] and found.grid.speedup__cm.tolist() == [[10, 20], [40, 80]]
    with pytest.raises(InputError, match=r"3 rows of its grid, expected one for each of 2 x 2 points"):
        read(path, DEMAND, *points[:3])
    with pytest.raises(InputError, match=r"no row for 4 CPUs and 20 GB"):
        read(path, DEMAND, *points[1:], points[1])


def test_the_best_point_within_reach_counts() -> None:
    grid = Grid(np.array([1.0, 3]), np.array([10.0, 60]), np.array([[0.1, 0.5], [0.4, 1.0]]))
    assert (grid.at(3, 60), grid.at(5, 59), grid.at(0.5, 60)) == (1.0, 0.4, 0)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("net,image,demand,,32,0.5,0,50,10,2", r":2: cpu: found 0.0, expected a number above 0"),
        ("net,image,demand,,32,,4,50,10,2", r":2: iteration_s: found None"),
        ("net,image,demand,,32,0.5,4,-1,10,2", r":2: memory_gb: found -1.0, expected a number, 0 or more"),
        ("net,image,peak,,32,0.5,4,50,10,2", r":2: point: found 'peak', expected demand or grid"),
        ("net,image,demand,,32,0.5,4,50,x,2", r":2: storage_mb_s: found 'x', expected a number"),
        ("net,image,grid,,,,1,1,,1", r"net: found 0 rows with its demand"),
        (f"{DEMAND}\n{DEMAND}", r"net: found 2 rows with its demand for the same CPUs"),
        ("", r"no rows"),
    ],
)
def test_a_wrong_row_is_one_clear_error(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path / "t.csv", line)


def test_profiles_come_back_from_their_table() -> None:
    rows = {"workload": ["a"] * 3, "point": ["demand", "grid", "grid"], "iteration_s": [0.1, None, None]}
    points = pa.table(rows | {"cpu": [2.0, 1, 2], "memory_gb": [5.0] * 3, "speedup": [2.0, 1, 2]})
    (found,) = profiles(points, "points", str)
    (again,) = profiles(profile_table((found,), 3), "again", str, 3)
    assert again[:-1] == found[:-1] and found.grid is not None and again.grid is not None
    assert again.grid.speedup__cm.tolist() == found.grid.speedup__cm.tolist() == [[1], [2]]
    with pytest.raises(InputError, match="speedup: found columns"):
        profiles(points.drop_columns(["speedup"]), "points", str)

"""Rounding and interpolation rules of the published curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import fastsim as fs
from fastsim.experiments.reproduce import placement_cells, placement_figures


def test_steps_fall_on_whole_per_cents_rounded_half_to_even() -> None:
    # 1 GPU: 10 milli = 1 %; 15 milli = 1.5 % goes to 2 and 25 milli = 2.5 % too.
    table = placement_figures.discrete_table([0, 10, 15, 25], [0, 10, 15, 25], [0, 0, 0, 0], [1000, 990, 985, 975], 1)
    assert table["arrive_pct"].tolist() == list(range(131))
    assert table["alloc_pct"][:3].tolist() == [0.0, 1.0, 2.0]


def test_an_empty_per_cent_takes_its_neighbours() -> None:
    table = placement_figures.discrete_table([10, 30], [10, 30], [100, 300], [1000, 1000], 1)
    assert table["alloc_pct"][:5].tolist() == [1.0, 1.0, 2.0, 3.0, 3.0]
    assert table["frag_pct"][:4].tolist() == [10.0, 10.0, 20.0, 30.0]
    assert table["frag_ratio_pct"][2] == 20.0
    assert np.isnan(table["alloc_pct"][5:]).all()


def test_steps_may_come_in_any_order() -> None:
    demand, values = np.array([20.0, 0.0, 20.0, 22.0]), np.array([1.0, 2.0, 4.0, 9.0])
    table = placement_figures.discrete_table(demand * 10, values * 10, values, values, total_gpus=1)
    assert table["alloc_pct"][[0, 1, 19, 20, 21, 22]].tolist() == [2.0, 2.0, 2.5, 2.5, 4.67, 9.0]
    assert np.isnan(table["alloc_pct"][[2, 18, 24]]).all()


def test_a_full_cluster_has_no_fragmentation_ratio() -> None:
    table = placement_figures.discrete_table([1000], [1000], [0.0], [0.0], 1)
    assert table["frag_ratio_pct"][100] == 0.0


def test_interpolation_goes_by_position() -> None:
    grid, values = placement_figures.interpolated([0, 1, 40], [0.0, 10.0, 50.0], 1000, last=0.04)
    assert grid.tolist() == pytest.approx([0.005 * i for i in range(9)])
    # Known: 0, 0.001 and 0.04; between the last two lie seven grid points, so each is 1/8 of the way.
    assert values.tolist() == pytest.approx([0.0, *(10 + 40 * i / 8 for i in range(1, 9))])


def test_interpolation_keeps_the_first_of_equal_demands_and_extends_the_ends() -> None:
    _, values = placement_figures.interpolated([10, 10, 20], [7.0, 99.0, 9.0], 1000, last=0.03)
    assert values.tolist() == pytest.approx([7.0, 7.0, 7.0, 8.0, 9.0, 9.0, 9.0])


def test_saving_and_grar() -> None:
    assert placement_figures.power_saving_pct([200.0, 100.0], [150.0, 110.0]).tolist() == [25.0, -10.0]
    assert placement_figures.grar([0, 50, 90], [0, 50, 100]).tolist() == [1.0, 1.0, 0.9]


def test_averaging_over_seeds() -> None:
    mean = placement_figures.averaged([{"alloc_pct": [1.0, 3.0]}, {"alloc_pct": [3.0, 5.0]}])
    assert mean["alloc_pct"].tolist() == [2.0, 4.0]


def test_published_tables_follow_from_the_recorded_metrics(shared: Callable[[str], Path]) -> None:
    """Every recorded run of a published policy gives the authors' own table."""
    golden = shared("golden/fgd")
    published = pl.read_parquet(golden / "published_discrete.parquet")
    checked = 0
    for folder in sorted(golden.glob("*-seed*")):
        policy, trace, seed = folder.name.split("-")[:3]
        rows = published.filter(
            (pl.col("policy") == policy) & (pl.col("trace") == trace) & (pl.col("seed") == int(seed[4:]))
        ).sort("arrive_pct")
        if rows.is_empty() or policy == "Random":
            continue
        metrics = pl.read_parquet(folder / "metrics.parquet")
        classes = metrics.select("q1_lack_both", "q2_lack_gpu", "q3_satisfied", "q4_lack_cpu")
        idle = classes.sum_horizontal() + metrics["xl_satisfied"] + metrics["xr_lack_cpu"] + metrics["no_access"]
        table = placement_figures.discrete_table(
            metrics["arrived_gpu_milli"], metrics["used_gpu_milli"], metrics["frag_gpu_milli"], idle, 6212
        )
        assert np.array_equal(table["alloc_pct"], rows["alloc_pct"]), folder.name
        assert np.array_equal(table["frag_pct"], rows["frag_pct"]), folder.name
        # The published ratios are printed with four decimals.
        assert np.abs(table["frag_ratio_pct"] - rows["frag_ratio_pct"].to_numpy()).max() < 0.51e-4
        checked += 1
    assert checked >= 5


def test_curves_are_compared_where_they_are_furthest_apart() -> None:
    assert placement_figures.furthest([1.0, 5.0, 3.0], [1.0, 2.0, 2.0]) == 1
    assert placement_figures.furthest([1.0, 2.0, np.nan], [1.0, 2.0, np.nan]) == 1, "the last of equal ones"
    assert placement_figures.furthest([1.0, np.nan, 9.0], [1.0, 2.0, 2.0]) == 1, "a value is missing"


def placement_run(policy: str, seed: int, alloc_pct: list[float], parts: Mapping[tuple[str, str], float]) -> Any:
    curves = {name: np.array(alloc_pct) for name in placement_figures.LIMITS}
    return placement_figures.PlacementRun(policy, "default", seed, 1, 0.0, 0.0, curves, 0, parts)


def test_a_cell_of_a_curve_holds_a_published_value() -> None:
    runs = [placement_run("fgd", 42, [0.0, 50.0, 90.0], {}), placement_run("fgd", 43, [0.0, 50.5, 90.0], {})]
    table = pl.DataFrame({"arrive_pct": [0, 1, 2]} | {name: [0.0, 50.0, 90.0] for name in placement_figures.LIMITS})
    published = {("FGD", "default", 42): table, ("FGD", "default", 43): table}
    (cell,) = placement_cells.curve_cells(["9a"], "default", "fgd", runs, published)
    assert (cell.case, cell.at, cell.published, cell.ours, cell.verdict) == (
        "default, seed 43", 1.0, 50.0, 50.5, "outside"
    )  # fmt: skip
    (equal,) = placement_cells.curve_cells(["9a"], "default", "fgd", runs[:1], published)
    assert (equal.published, equal.ours, equal.at, equal.verdict) == (90.0, 90.0, 2.0, "same")


FAILURES = """order,workload,sc_policy,tune,seed,num_pod,cpu_milli,num_gpu,gpu_milli,gpu_type_req
0,openb_pod_list_default,06-FGD,1.3,42,4,1000,1,500,<none>
1,openb_pod_list_default,06-FGD,1.3,42,2,1000,8,1000,<none>
0,openb_pod_list_default,06-FGD,1.3,43,1,1000,1,500,<none>
1,openb_pod_list_default,06-FGD,1.3,43,1,2000,1,300,<none>
0,openb_pod_list_default,01-Random,1.3,44,6,1000,1,1000,<none>
0,openb_pod_list_default,01-Random,1.3,45,6,1000,1,1000,<none>
"""


def test_failed_pods_are_compared_with_the_artifacts_file(tmp_path: Path) -> None:
    assert placement_figures.published_failures(None) == placement_figures.published_failures(tmp_path) == {}
    (tmp_path / placement_figures.FAILURES).write_text(FAILURES)
    failures = placement_figures.published_failures(tmp_path)
    assert failures == {
        ("FGD", "default", "part of a GPU"): 1.5, ("FGD", "default", "GPUs: 8"): 0.5,
        ("Random", "default", "GPUs: 1"): 3.0,
    }  # fmt: skip
    parts = {("9c", "part of a GPU"): 1.5, ("9c", "GPUs: 8"): 2.0, ("8", "lack of CPU"): 1.0}
    cells = placement_cells.part_cells(["9c"], "default", "fgd", [placement_run("fgd", 42, [0.0], parts)], failures)
    assert [(one.quantity, one.published, one.verdict) for one in cells] == [
        ("failed pods, part of a GPU", 1.5, "same"), ("failed pods, GPUs: 8", 0.5, "outside"),
    ]  # fmt: skip


def test_a_file_of_other_columns_is_no_table_of_failed_pods(tmp_path: Path) -> None:
    (tmp_path / placement_figures.FAILURES).write_text("pods,seed\n1,42\n")
    with pytest.raises(fs.InputError, match=r"analysis_fail.csv.*expected the artifact's table of failed pods"):
        placement_figures.published_failures(tmp_path)

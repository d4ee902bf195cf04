"""What the compiled tables are made from: masks, padding, watts, changes and codes, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.engine.online.kernel_columns import (
    LANES,
    MAX_MODELS,
    MOST_TYPICAL,
    ModelIds,
    change_columns,
    fresh_target,
    node_columns,
    node_kinds,
    once_each,
    plan_columns,
    power_columns,
    read_only,
    typical_columns,
)
from fastsim.engine.online.plan import OnlinePlan, ScoreTerm
from fastsim.errors import InputError
from fastsim.hardware.model_catalog import Catalog, GpuModel
from fastsim.workload.typical_pods import TypicalPods

FULL = 1000


def cluster(catalog: Catalog | None = None, **columns: Any) -> Cluster:
    count = len(next(iter(columns.values())))
    base = {"cpu_milli": [8000] * count, "memory_mib": [64] * count, "num_gpu": [1] * count}
    gpus = columns.get("num_gpu", base["num_gpu"])
    models = ["T4" if g else None for g in gpus]
    return Cluster.from_arrow(pa.table({**base, "gpu_model": models, **columns}), catalog=catalog)


def columns_of(made: Cluster) -> dict[str, Any]:
    return node_columns(made, ModelIds(made.nodes["gpu_model"].to_pylist()))


def test_models_are_numbered_in_order_of_appearance() -> None:
    ids = ModelIds(["B", None, "A", "B"])
    assert ids.number == {"B": 0, "A": 1}
    assert [ids.mask(models) for models in ((), ("A",), ("A", "B", "A"))] == [0, 0b10, 0b11]


def test_a_model_the_cluster_lacks_is_a_bit_that_no_node_has() -> None:
    ids = ModelIds(["A"])
    assert ids.mask(["Z"]) == ids.mask(["Y", "Z"]) == 1 << MAX_MODELS == 2**63
    assert ids.mask(["Z", "A"]) == 2**63 + 1
    # As an array it must stay exact: float64 would lose the small bit.
    target = TypicalPods((1,), (500,), (1,), (("Z", "A"),), (1,), (1.0,))
    assert typical_columns(target, ids)["kinds"]["models"].tolist() == [2**63 + 1]


def test_there_is_room_for_63_models() -> None:
    assert ModelIds(str(k) for k in range(63)).mask(["62"]) == 1 << 62
    with pytest.raises(InputError, match="cluster: gpu_model: found 64 distinct models, expected at most 63"):
        ModelIds(str(k) for k in range(64))


@pytest.mark.parametrize(("gpus", "width"), [(0, 8), (1, 8), (8, 8), (9, 16), (16, 16), (17, 24), (64, 64)])
def test_device_rows_are_padded_with_devices_that_are_never_free(gpus: int, width: int) -> None:
    columns = columns_of(cluster(num_gpu=[gpus, 0]))
    assert columns["gpu_left"].tolist() == [[FULL] * gpus + [0] * (width - gpus), [0] * width]
    assert columns["gpu_left"].shape[1] % LANES == 0 and columns["gpu_left"].strides[1] == 4  # a node's, side by side
    assert columns["tags"].shape == (2, gpus + 1)  # tag 0 = shared, k = k whole devices


def test_a_fresh_node_is_empty_and_there_unless_it_comes_later() -> None:
    columns = columns_of(cluster(num_gpu=[1, 0], max_pods=[7, None], add_s=[0.0, None]))
    assert columns["model"].tolist() == [0, -1]
    assert columns["max_pods"].tolist() == [7, 2**31 - 1]
    assert columns["present"].tolist() == [0, 1]  # added at 0 s is not yet there
    assert columns["cpu_left"].tolist() == columns["cpu_cap"].tolist() == [8000, 8000]
    columns["cpu_left"][0] -= 1
    assert columns["cpu_cap"].tolist() == [8000, 8000]


def test_watts_become_whole_milliwatts() -> None:
    nodes = cluster(num_gpu=[1, 0], gpu_idle_w=[0.4996, None], cpu_peak_w=[None, 200.0])
    columns = columns_of(nodes)
    assert columns["gpu_idle_mw"].tolist() == [500, 0] and columns["gpu_peak_mw"].tolist() == [70_000, 0]
    assert columns["cpu_idle_mw"].tolist() == [15_000] * 2 and columns["cpu_peak_mw"].tolist() == [120_000, 200_000]
    assert columns["cores"].tolist() == [16, 16]


def test_a_node_speaks_for_itself_before_its_model_does() -> None:
    catalog = Catalog.default().extended(gpu={"X": GpuModel(3, 9)})
    nodes = cluster(
        num_gpu=[1, 1, 0, 1], gpu_model=["X", "X", None, "X"], cpu_model=[None, None, None, "made here"],
        gpu_peak_w=[None, 5.5, None, None], cpu_idle_w=[None, None, None, 1.0], cpu_peak_w=[None, None, None, 2.0],
        cpu_cores_per_socket=[None, 2, None, 4], catalog=catalog,
    )  # fmt: skip
    power = {name: values.tolist() for name, values in power_columns(nodes).items()}
    assert power == {
        "gpu_idle_mw": [3000, 3000, 0, 3000], "gpu_peak_mw": [9000, 5500, 0, 9000],
        "cpu_idle_mw": [15_000, 15_000, 15_000, 1000], "cpu_peak_mw": [120_000, 120_000, 120_000, 2000],
        "cores": [16, 2, 16, 4],
    }  # fmt: skip


def test_equal_nodes_are_of_one_kind_whatever_their_place() -> None:
    nodes = cluster(num_gpu=[2, 1, 2, 1], cpu_milli=[8000, 8000, 8000, 4000])
    kinds, kind = node_kinds(columns_of(nodes))
    assert kind.tolist() == [2, 1, 2, 0]
    assert kinds[:, 0].tolist() == [4000, 8000, 8000] and kinds[:, 2].tolist() == [1, 1, 2]
    turned, _ = node_kinds(columns_of(nodes.reordered([3, 2, 1, 0])))
    assert turned.tolist() == kinds.tolist()


def test_a_cluster_is_looked_at_once_as_long_as_it_exists() -> None:
    seen: list[int] = []

    @once_each
    def look(made: Cluster) -> list[int]:
        seen.append(len(made))
        return [len(made)]

    first, second = cluster(num_gpu=[1]), cluster(num_gpu=[1, 2])
    assert look(first) is look(first) and look(second) == [2]
    assert seen == [1, 2]


def test_tables_of_one_target_share_no_scratch() -> None:
    typical = TypicalPods((1000,), (300,), (1,), ((),), (1,), (1.0,))
    known = typical_columns(typical, ModelIds([]))
    one, two = fresh_target(known), fresh_target(known)
    written = [(one[name], two[name]) for name in ("fit", "small", "unusable")]
    for mine, other in [*written, (one["groups"]["scratch"], two["groups"]["scratch"])]:
        assert mine.tolist() == other.tolist() and not np.shares_memory(mine, other)
    assert one["cpu"] is two["cpu"] and one["groups"]["share"] is two["groups"]["share"]


def test_changes_are_by_time_then_position_and_a_coming_before_a_going() -> None:
    nodes = cluster(add_s=[5.0, None, 1.0, None], remove_s=[9.0, 5.0, 5.0, None])
    changes = {name: values.tolist() for name, values in change_columns(nodes).items()}
    assert changes == {
        "change_t": [1.0, 5.0, 5.0, 5.0, 9.0],
        "change_node": [2, 0, 1, 2, 0],
        "change_adds": [1, 1, 0, 0, 0],
    }


def test_typical_requests_point_at_their_distinct_device_shares() -> None:
    target = TypicalPods(
        (1, 2, 3, 4), (1000, 0, 300, 1000), (2, 0, 1, 1), ((),) * 4, (4, 3, 2, 1), (0.4, 0.3, 0.2, 0.1)
    )
    columns = typical_columns(target, ModelIds([]))
    assert columns["level_milli"].tolist() == [300, 1000]
    assert columns["kinds"].tolist() == [(-1, 0, 0), (0, 1, 0), (1, 1, 0), (1, 2, 0)]  # a pod without GPU has no level
    assert columns["kind"].tolist() == [3, 1, 2, 0] and columns["n_gpu"] == 3  # what asks for devices comes first
    assert columns["count"].tolist() == [4, 2, 1, 3] and columns["freq"].tolist() == [0.4, 0.2, 0.1, 0.3]
    assert len(columns["fit"]) == len(columns["small"]) == 2


def test_a_plan_is_coded_by_the_place_of_its_words() -> None:
    terms = (ScoreTerm("random", 3), ScoreTerm("dot_product", 2, "min_max_100", dim="extend", norm="pod"))
    columns = plan_columns(OnlinePlan(terms, gpu_pick="dot_product", gpu_dim="divide", gpu_norm="node"), 5)
    coded = {name: columns[name].tolist() for name in ("kernel", "normalise", "dim", "norm", "weight")}
    assert coded == {"kernel": [0, 1], "normalise": [0, 2], "dim": [0, 3], "norm": [2, 1], "weight": [3, 2]}
    assert (columns["gpu_pick"], columns["gpu_dim"], columns["gpu_norm"]) == (5, 2, 0)
    assert [len(columns[name]) for name in ("feasible", "raw", "total")] == [5, 5, 5]
    with pytest.raises(ValueError, match="not in tuple"):
        plan_columns(OnlinePlan((ScoreTerm("fdg"),)), 1)


def test_views_follow_the_column_but_cannot_change_it() -> None:
    column = np.zeros(2, np.int64)
    view = read_only({"a": column})["a"]
    column[0] = 5
    assert view.tolist() == [5, 0]
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1


@pytest.mark.parametrize("counts", [(MOST_TYPICAL + 1,), (MOST_TYPICAL, 1)])
def test_typical_pods_that_count_too_much_to_be_exact_are_refused(counts: tuple[int, ...]) -> None:
    def columns(count: tuple[int, ...]) -> Any:
        many = len(count)
        shares = (1.0 / many,) * many
        models: tuple[tuple[str, ...], ...] = ((),) * many
        return typical_columns(
            TypicalPods(tuple(range(many)), (FULL,) * many, (1,) * many, models, count, shares), ModelIds([])
        )

    assert columns((MOST_TYPICAL,))["groups"]["with_gpu"] == MOST_TYPICAL
    with pytest.raises(InputError, match=f"typical pods: count: found {sum(counts)} together, expected at most"):
        columns(counts)

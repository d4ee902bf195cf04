"""The node table: what is filled in, every rule at its edge, and watts with overrides applied."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from fastsim.cluster.node_table import NODE_SCHEMA, node_table, offered, watts
from fastsim.errors import InputError
from fastsim.hardware.model_catalog import Catalog, CpuModel, GpuModel
from fastsim.hardware.node_constraints import MAX_GPUS

CATALOG = Catalog({"T4": GpuModel(10, 70)}, {"": CpuModel(15, 120, 16), "Z80": CpuModel(1, 2, 3)})
GOOD: dict[str, list[Any]] = {
    "cpu_milli": [1000, 2000], "memory_mib": [10, 20], "num_gpu": [1, 0], "gpu_model": ["T4", None],
}  # fmt: skip


def checked(**columns: Any) -> pa.Table:
    return node_table(pa.table({**GOOD, **columns}), "c", lambda row: f"c:{row + 1}", CATALOG)


def test_missing_columns_are_numbered_or_null() -> None:
    nodes = checked()
    assert nodes.schema.equals(NODE_SCHEMA)
    assert nodes["node_id"].to_pylist() == [0, 1] and nodes["name"].to_pylist() == ["node-0000", "node-0001"]
    assert all(nodes[name].null_count == 2 for name in NODE_SCHEMA.names[6:])
    assert all(nodes[name].num_chunks == 1 for name in nodes.column_names)


def test_types_are_converted_without_loss_or_named() -> None:
    assert checked(cpu_milli=[1000.0, 2000.0])["cpu_milli"].to_pylist() == [1000, 2000]
    assert checked(max_pods=["5", None])["max_pods"].to_pylist() == [5, None]
    with pytest.raises(InputError, match=r"c:2: cpu_milli: found 2000\.5, expected int64"):
        checked(cpu_milli=[1000.0, 2000.5])
    with pytest.raises(InputError, match=r"c:1: num_gpu: found 40000, expected int16"):
        checked(num_gpu=[40_000, 0])


def test_instances_come_from_layouts_only() -> None:
    for name in ("mig-1g.5gb", "nvidia.com/mig-1g.5gb", "mig-anything"):
        amounts = pa.array([None, [(name, 1)]], NODE_SCHEMA.field("extra_resources").type)
        with pytest.raises(InputError, match=r"c:2: extra_resources: found .*, expected no instances of GPUs"):
            checked(extra_resources=amounts)
    with pytest.raises(InputError, match=r"c:1: mig: found '1g\.5gb' on T4, expected a model that can be"):
        checked(mig=["1g.5gb", None])
    with pytest.raises(InputError, match=r"c:2: mig: found '1g\.5gb', expected null, because num_gpu is 0"):
        checked(mig=[None, "1g.5gb"])
    with pytest.raises(InputError, match=r"c:1: mig: found 7, expected string"):
        checked(mig=[7, None])


def test_whole_nodes_are_offered_as_they_are() -> None:
    nodes = checked(mig=["", None])
    same, partitioned = offered(nodes)
    assert same is nodes and partitioned.tolist() == [0, 0]


def test_the_edges_of_the_rules_are_allowed() -> None:
    nodes = checked(
        cpu_milli=[0, 2**40], memory_mib=[0, 2**40], num_gpu=[MAX_GPUS, 0], max_pods=[1, None],
        gpu_idle_w=[0.0, None], gpu_peak_w=[0.0, None], add_s=[None, -5.0], remove_s=[0.0, -4.0],
    )  # fmt: skip
    assert nodes["num_gpu"].to_pylist() == [64, 0] and nodes["cpu_milli"].to_pylist() == [0, 2**40]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cpu_milli": [2**40 + 1, 0]}, r"c:1: cpu_milli: found 1099511627777, expected 0 to 1099511627776"),
        ({"gpu_memory_mib": [-1, None]}, r"c:1: gpu_memory_mib: found -1, expected 0 to"),
        ({"num_gpu": [-1, 0]}, r"c:1: num_gpu: found -1, expected 0 to 64"),
        ({"gpu_model": ["", None]}, r"c:1: gpu_model: found '', expected a GPU model, because num_gpu > 0"),
        ({"max_pods": [-1, None]}, r"c:1: max_pods: found -1, expected 0 or more; null = unlimited"),
        ({"cpu_cores_per_socket": [1, 0]}, r"c:2: cpu_cores_per_socket: found 0, expected 1 or more"),
        ({"cpu_idle_w": [None, -0.5]}, r"c:2: cpu_idle_w: found -0\.5, expected 0 to 1,000,000 watts"),
        (
            {"gpu_idle_w": [1e15, None]},
            r"c:1: gpu_idle_w: found 1000000000000000\.0, expected 0 to 1,000,000 watts",
        ),
        ({"cpu_peak_w": [None, 1e20]}, r"c:2: cpu_peak_w: found 1e\+20, expected 0 to 1,000,000 watts"),
        ({"add_s": [-1e308, None]}, r"c:1: add_s: found -1e\+308, expected seconds within 2\*\*53 s of 0"),
        ({"gpu_idle_w": [9.0, None], "gpu_peak_w": [8.5, None]}, r"c:1: gpu_peak_w: found 8\.5, expected at least"),
        ({"remove_s": [None, float("inf")]}, r"c:2: remove_s: found inf, expected seconds within 2\*\*53 s of 0"),
        ({"name": ["a", ""]}, r"c:2: name: found '', expected a unique name"),
        (
            {"cpu_model": ["Z81", None]},
            r"c:1: cpu_model: found 'Z81', expected one of: Z80; did you mean 'Z80'\?",
        ),
    ],
)
def test_broken_rules_name_the_cell(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        checked(**change)


def test_a_strange_column_is_dropped_where_the_right_one_is_there_too() -> None:
    assert "cpu_milis" not in checked(cpu_milis=[1, 1]).column_names


def test_a_required_column_missing_or_misspelt_or_null() -> None:
    table = pa.table(GOOD)
    with pytest.raises(InputError, match="c: memory_mib: found columns cpu_milli, num_gpu, gpu_model, expected this"):
        node_table(table.drop_columns(["memory_mib"]), "c", str, CATALOG)
    with pytest.raises(InputError, match="c: max_podss: found an unknown column, expected max_pods; rename or drop"):
        checked(max_podss=[1, 1])
    with pytest.raises(InputError, match=r"c:2: num_gpu: found null, expected a value \(int16\)"):
        checked(num_gpu=[1, None])


def test_watts_are_the_nodes_own_before_the_models() -> None:
    nodes = checked(cpu_model=["Z80", None], gpu_peak_w=[99.5, None], cpu_idle_w=[None, 7.0])
    assert watts(nodes, CATALOG).to_pydict() == {
        "gpu_idle_w": [10.0, 0.0],
        "gpu_peak_w": [99.5, 0.0],
        "cpu_idle_w": [1.0, 7.0],
        "cpu_peak_w": [2.0, 120.0],
        "cpu_cores_per_socket": [3, 16],
    }


def test_an_unknown_model_needs_every_watt_of_its_own() -> None:
    own: dict[str, Any] = {"cpu_model": ["M1", None], "cpu_idle_w": [1.0, None], "cpu_peak_w": [2.0, None]}
    with pytest.raises(InputError, match="fill cpu_idle_w, cpu_peak_w, cpu_cores_per_socket"):
        checked(**own)
    complete = checked(**own, cpu_cores_per_socket=[8, None])
    assert watts(complete, CATALOG)["cpu_cores_per_socket"].to_pylist() == [8, 16]

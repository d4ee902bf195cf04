"""Node types: the counted table, shares of it by largest remainder, and rows made of them."""

from __future__ import annotations

import csv

import pytest

from fastsim.cluster.node_types import (
    TABLES,
    apportioned,
    expanded,
    named_parts,
    node_types,
    openb_counts,
    openb_parts,
    openb_types,
)
from fastsim.errors import InputError, plain_name
from fastsim.hardware.model_catalog import Catalog


def test_the_table_has_the_published_cluster() -> None:
    kinds = node_types()
    assert kinds["g2"].row() == {"gpu_model": "G2", "num_gpu": 8, "cpu_milli": 96_000, "memory_mib": 393_216}
    assert kinds["cpu32m64"].gpu_model is None and kinds["cpu32m64"].num_gpu == 0
    assert sum(openb_counts(cpu_only=True).values()) == 1523
    assert sum(openb_counts(cpu_only=False).values()) == 1213


@pytest.mark.parametrize(
    ("counts", "total", "split"),
    [
        ({"a": 1, "b": 1, "c": 1}, 4, {"a": 2, "b": 1, "c": 1}),  # equal remainders: the first
        ({"a": 1, "b": 2, "c": 4}, 5, {"a": 1, "b": 1, "c": 3}),  # 0.71, 1.43, 2.86
        ({"a": 1, "b": 99}, 1, {"a": 0, "b": 1}),
        ({"a": 0, "b": 3}, 7, {"a": 0, "b": 7}),
        ({"a": 2, "b": 3}, 5, {"a": 2, "b": 3}),
        ({"a": 2, "b": 3}, 0, {"a": 0, "b": 0}),
    ],
)
def test_leftovers_go_to_the_largest_remainders(counts: dict[str, int], total: int, split: dict[str, int]) -> None:
    assert apportioned(counts, total) == split


def test_named_parts_keep_the_order_and_name_what_is_unknown() -> None:
    parts = named_parts({"t4": 2, "g2": 0})
    assert [(count, shape["name"], shape["num_gpu"]) for count, shape in parts] == [(2, "t4", 2), (0, "g2", 8)]
    with pytest.raises(InputError, match=r"cluster\.mix\.t5: found an unknown node type, expected one of: a10, g2"):
        named_parts({"t4": 1, "t5": 1})


def test_rows_are_numbered_within_their_part_and_miss_nothing() -> None:
    rows = expanded([(2, {"name": "a", "num_gpu": 1}), (0, {"name": "b"}), (1, {"cpu_milli": 5})], seed=None)
    assert rows == {
        "name": ["a-0000", "a-0001", "type2-0000"],
        "num_gpu": [1, 1, None],
        "cpu_milli": [None, None, 5],
    }
    assert expanded([], seed=1) == {}


def test_a_seed_moves_whole_rows() -> None:
    parts = [(20, {"name": "a", "num_gpu": 1}), (20, {"name": "b", "num_gpu": 2})]
    plain, mixed = expanded(parts, seed=None), expanded(parts, seed=4)
    assert mixed["name"] != plain["name"] and sorted(mixed["name"]) == plain["name"]
    assert all(gpus == (1 if name[0] == "a" else 2) for name, gpus in zip(mixed["name"], mixed["num_gpu"], strict=True))


def test_a_negative_count_is_named() -> None:
    with pytest.raises(InputError, match=r"cluster\.mix\[1\]: found -2 nodes, expected 0 or more"):
        expanded([(1, {}), (-2, {})], seed=None)


def test_single_gpus_of_gavel_are_no_part_of_openb() -> None:
    kinds = node_types()
    for name in ("k80", "p100", "v100"):
        assert (kinds[name].gpu_model, kinds[name].num_gpu, kinds[name].openb) == (name, 1, 0)
        assert name not in openb_counts(cpu_only=True)
    assert kinds["p100x2"].gpu_model == "P100" and kinds["p100x2"].num_gpu == 2


def test_the_nodes_of_openb_keep_their_names() -> None:
    parts = openb_parts({"t4": 1, "p100x2": 3})
    assert [(count, shape["name"], shape["gpu_model"]) for count, shape in parts] == [
        (1, "t4", "T4"),
        (3, "p100", "P100"),
    ]
    assert named_parts({"p100x2": 1})[0][1]["name"] == "p100x2"
    assert sum(kind.openb for kind in openb_types().values()) == 1523


def test_servers_of_data_centres_go_by_the_names_of_their_gpus() -> None:
    parts = named_parts({"A100": 2, "h-100": 1, "H200": 1})
    assert [(count, shape["name"], shape["gpu_model"]) for count, shape in parts] == [
        (2, "a100", "A100-80GB"), (1, "h100", "H100-80GB"), (1, "h200", "H200")]  # fmt: skip
    with pytest.raises(InputError, match="did you mean 'h100'"):
        named_parts({"H1000": 1})


def test_node_types_outside_openb_name_their_source() -> None:
    """A clustered name stands for one type only, and models are those of the catalogue."""
    with open(TABLES / "node_types.csv", encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    assert len({plain_name(row["node_type"]) for row in rows}) == len(rows)
    assert all(row["gpu_model"] in Catalog.default().gpu for row in rows if row["gpu_model"])
    gavel = {"k80", "p100", "v100", "a10"}
    assert all(row["source"] for row in rows if row["openb"] == "0" and row["node_type"] not in gavel)

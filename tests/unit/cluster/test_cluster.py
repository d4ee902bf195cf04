"""Clusters: published totals, builders, round trips, order, and what is refused."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastsim.cluster.cluster import Cluster
from fastsim.cluster.node_table import NODE_SCHEMA
from fastsim.cluster.node_types import apportioned, named_parts, node_types, openb_counts
from fastsim.errors import InputError, ResultError, ScenarioError
from fastsim.foundation.draws.go_random import GoRandom
from fastsim.hardware.model_catalog import Catalog, GpuModel
from fastsim.workload import Workload


def column(cluster: Cluster, name: str) -> list[Any]:
    values: list[Any] = cluster.nodes[name].to_pylist()
    return values


def test_openb_presets_have_the_published_totals() -> None:
    openb, everything = Cluster.preset("openb"), Cluster.preset("openb-all")
    assert (len(openb), openb.total_gpus, openb.total_cpu_milli) == (1213, 6212, 107_018_000)
    assert sum(column(openb, "memory_mib")) == 503_828_480
    assert (len(everything), everything.total_gpus, everything.total_cpu_milli) == (1523, 6212, 125_514_000)
    assert sum(column(everything, "memory_mib")) == 612_028_416
    assert set(column(openb, "max_pods")) == {1001}
    assert openb.total_gpu_milli == 6_212_000


def test_openb_watts_are_the_published_totals() -> None:
    openb = Cluster.preset("openb")
    watts, gpus = openb.watts.to_pydict(), column(openb, "num_gpu")
    assert sum(w * n for w, n in zip(watts["gpu_idle_w"], gpus, strict=True)) == 174_435
    assert sum(w * n for w, n in zip(watts["gpu_peak_w"], gpus, strict=True)) == 1_028_790
    cores = [-(-cpu // 2000) for cpu in column(openb, "cpu_milli")]
    sockets = sum(-(-c // n) for c, n in zip(cores, watts["cpu_cores_per_socket"], strict=True))
    assert sockets == 3711


@pytest.mark.parametrize(("preset", "list_name"), [("openb", "gpu_node"), ("openb-all", "all_node")])
def test_presets_are_the_recorded_nodes_in_another_order(
    shared: Callable[[str], Path], preset: str, list_name: str
) -> None:
    shape = ["cpu_milli", "memory_mib", "num_gpu", "gpu_model", "max_pods"]
    recorded = Cluster.from_openb(shared("data/openb") / f"openb_node_list_{list_name}.parquet")
    for cluster in (recorded, Cluster.preset(preset)):
        rows = pl.DataFrame(cluster.nodes.select(shape)).sort(shape)
        assert rows.equals(pl.DataFrame(recorded.nodes.select(shape)).sort(shape))


def test_node_without_gpus_draws_no_gpu_power() -> None:
    watts = Cluster.mix(cpu32m64=1, t4=1).watts
    assert watts["gpu_idle_w"].to_pylist() == [0, 10]
    assert watts["cpu_idle_w"].to_pylist() == [15, 15]


def test_overrides_beat_the_catalogue_and_make_unknown_models_fine() -> None:
    cluster = Cluster.uniform(nodes=2, gpu="Mystery", gpus=2, gpu_idle_w=5.0, gpu_peak_w=50.0, cpu_peak_w=99.0)
    assert cluster.watts["gpu_peak_w"].to_pylist() == [50, 50]
    assert cluster.watts["cpu_peak_w"].to_pylist() == [99, 99]
    assert cluster.watts["cpu_idle_w"].to_pylist() == [15, 15]


def test_mix_by_name_by_shape_and_interleaved() -> None:
    plain = Cluster.mix(g2=2, t4=1)
    assert column(plain, "name") == ["g2-0000", "g2-0001", "t4-0000"]
    assert column(plain, "node_id") == [0, 1, 2]
    shaped = Cluster.mix([(2, {"name": "big", "num_gpu": 0, "cpu_milli": 8000, "memory_mib": 1})])
    assert column(shaped, "name") == ["big-0000", "big-0001"]
    mixed = Cluster.mix(g2=20, t4=20, seed=1)
    assert sorted(column(mixed, "name")) == sorted(column(Cluster.mix(g2=20, t4=20), "name"))
    assert column(mixed, "name") == column(Cluster.mix(g2=20, t4=20, seed=1), "name")
    assert column(mixed, "name") != column(Cluster.mix(g2=20, t4=20, seed=2), "name")


@given(st.integers(1, 5000), st.booleans())
@settings(max_examples=50, deadline=None)
def test_apportioned_is_within_one_node_of_the_exact_share(total: int, cpu_only: bool) -> None:
    counts = openb_counts(cpu_only)
    split = apportioned(counts, total)
    assert sum(split.values()) == total
    whole = sum(counts.values())
    assert all(abs(split[name] - counts[name] * total / whole) < 1 for name in counts)


def test_scaled_keeps_the_mix_and_hides_the_type_from_the_position() -> None:
    cluster = Cluster.scaled("openb", nodes=1213, seed=5)
    assert sorted(column(cluster, "name")) == sorted(column(Cluster.preset("openb"), "name"))
    # 549 of 1,213 nodes are G2; a block of 300 in a random order has 136 of them, give or take 7.
    assert 100 < sum(name.startswith("g2-") for name in column(cluster, "name")[:300]) < 172
    assert cluster.checksum() == Cluster.scaled("openb", nodes=1213, seed=5).checksum()
    assert cluster.checksum() != Cluster.scaled("openb", nodes=1213, seed=6).checksum()


def test_every_named_type_makes_a_cluster() -> None:
    cluster = Cluster.mix(named_parts(dict.fromkeys(node_types(), 1)))
    assert len(cluster) == len(node_types()) == 40


def test_round_trips_keep_content_and_bytes(tmp_path: Path) -> None:
    catalog = Catalog.default().extended(gpu={"H100": GpuModel(60, 700)})
    special = Cluster.uniform(nodes=3, gpu="H100", catalog=catalog, add_s=5.5, remove_s=9.0, max_pods=7)
    for i, cluster in enumerate((Cluster.preset("openb"), special)):
        path, text = tmp_path / f"{i}.parquet", tmp_path / f"{i}.csv"
        cluster.to_parquet(path)
        cluster.to_csv(text)
        frame = Cluster.from_arrow(pl.DataFrame(cluster.nodes), catalog=cluster.catalog)
        copies = [Cluster.from_parquet(path), Cluster.from_csv(text), frame]
        assert {c.checksum() for c in copies} == {cluster.checksum()}
        copies[0].to_parquet(tmp_path / "again.parquet")
        assert (tmp_path / "again.parquet").read_bytes() == path.read_bytes()
        assert pickle.loads(pickle.dumps(cluster)).checksum() == cluster.checksum()


LAYOUTS = ["3g.40gb+2g.20gb+2g.20gb", "", "7*1g.10gb", ""]


def test_partitioned_gpus_are_offered_as_instances() -> None:
    cluster = Cluster.uniform(nodes=2, gpu="A100", gpus=4, mig=LAYOUTS, extra_resources=[("nic", 1)])
    assert (cluster.total_gpus, cluster.total_gpu_milli) == (8, 8000)
    assert cluster.partitioned_gpus.tolist() == [2, 2]
    seen = cluster.offered.to_pylist()[1]
    assert seen["num_gpu"] == 2 and seen["mig"] == ";".join(LAYOUTS)
    assert seen["extra_resources"] == [("nic", 1), ("mig-1g.10gb", 7), ("mig-2g.20gb", 2), ("mig-3g.40gb", 1)]
    plain = Cluster.uniform(nodes=2, gpu="A100", gpus=4, mig=["", "", "", ""])
    assert plain.offered is plain.nodes and column(plain, "mig") == [None, None]
    assert plain.checksum() == Cluster.uniform(nodes=2, gpu="A100", gpus=4).checksum() != cluster.checksum()


def test_the_checksum_counts_the_memory_that_the_catalogue_gives(tmp_path: Path) -> None:
    sized = {"T4": GpuModel(10.0, 70.0, 16_000)}
    small, unknown = (Catalog.default().extended(gpu=gpu) for gpu in (sized, {"T4": GpuModel(10.0, 70.0)}))
    cluster = Cluster.uniform(nodes=2, gpu="T4", gpus=1)
    clusters = [cluster, cluster.with_catalog(small), cluster.with_catalog(unknown)]
    assert len({one.checksum() for one in clusters}) == 3
    clusters[1].to_parquet(tmp_path / "nodes.parquet")
    stored = Cluster.from_parquet(tmp_path / "nodes.parquet")
    assert stored.checksum() == clusters[1].checksum() and stored.device_memory_mib == [16_000] * 2


def test_layouts_round_trip_and_may_differ_by_node(tmp_path: Path) -> None:
    shape = {"num_gpu": 4, "gpu_model": "A100", "cpu_milli": 8000, "memory_mib": 1}
    cluster = Cluster.mix([(1, {**shape, "mig": LAYOUTS}), (1, shape), (1, {**shape, "mig": "7*1g.10gb"})])
    cluster.to_parquet(tmp_path / "nodes.parquet")
    cluster.to_csv(tmp_path / "nodes.csv")
    lists = pl.DataFrame({**{key: [value] * 3 for key, value in shape.items()},
                          "name": column(cluster, "name"), "mig": [LAYOUTS, None, ["7*1g.10gb"]]})  # fmt: skip
    copies = [Cluster.from_parquet(tmp_path / "nodes.parquet"), Cluster.from_csv(tmp_path / "nodes.csv")]
    copies += [Cluster.from_arrow(pl.DataFrame(cluster.nodes)), Cluster.from_arrow(lists)]
    assert {copy.checksum() for copy in copies} == {cluster.checksum()}
    assert all(copy.partitioned_gpus.tolist() == [2, 0, 4] for copy in copies)
    assert cluster.reordered([2, 1, 0]).partitioned_gpus.tolist() == [4, 0, 2]


def test_an_impossible_layout_is_named_to_the_cell(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text("cpu_milli,memory_mib,num_gpu,gpu_model,mig\n1,1,2,A100,7*1g.10gb\n1,1,2,A100,;2*4g.40gb\n")
    with pytest.raises(InputError, match=r"nodes\.csv:3: mig: found '2\*4g\.40gb', expected instances that fit"):
        Cluster.from_csv(path)
    with pytest.raises(InputError, match=r"cluster\.uniform\.mig: found \[7\], expected a value of type string"):
        Cluster.uniform(nodes=1, gpu="A100", mig=[7])


def test_reordered_moves_positions_and_refuses_anything_but_a_permutation() -> None:
    cluster = Cluster.mix(g2=1, t4=1, a10=1)
    moved = cluster.reordered([2, 0, 1])
    assert column(moved, "name") == ["a10-0000", "g2-0000", "t4-0000"]
    assert column(moved, "node_id") == [0, 1, 2]
    for order in ([0, 1], [0, 0, 1], [1, 2, 3]):
        with pytest.raises(InputError, match="permutation"):
            cluster.reordered(order)


GOOD = {"cpu_milli": [1000, 1000], "memory_mib": [10, 10], "num_gpu": [1, 0], "gpu_model": ["T4", None]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cpu_milli": [1000, -1]}, ["c:2: cpu_milli", "-1"]),
        ({"cpu_milli": [float("nan"), 1.0]}, ["c:1: cpu_milli", "nan", "int64"]),
        ({"memory_mib": [10, None]}, ["c:2: memory_mib", "null"]),
        ({"num_gpu": [65, 0]}, ["c:1: num_gpu", "65", "0 to 64"]),
        ({"num_gpu": [1, 1]}, ["c:2: gpu_model", "a GPU model"]),
        ({"num_gpu": [0, 0]}, ["c:1: gpu_model", "T4", "null"]),
        ({"gpu_model": ["T5", None]}, ["c:1: gpu_model", "'T5'", "V100M32", "extend the catalogue (watts=FILE.csv"]),
        ({"gpu_model": ["T5", None], "gpu_idle_w": [1.0, None]}, ["c:1: gpu_model", "'T5'"]),
        ({"cpu_model": ["Z80", None]}, ["c:1: cpu_model", "'Z80'"]),
        ({"name": ["a", "a"]}, ["c:2: name", "'a'", "unique"]),
        ({"node_id": [1, 0]}, ["c:1: node_id", "1"]),
        ({"max_pods": [-1, 1]}, ["c:1: max_pods", "-1"]),
        ({"gpu_idle_w": [float("inf"), None]}, ["c:1: gpu_idle_w", "inf"]),
        ({"cpu_idle_w": [9.0, 9.0], "cpu_peak_w": [9.0, 8.0]}, ["c:2: cpu_peak_w", "8.0", "at least cpu_idle_w"]),
        ({"add_s": [5.0, 5.0], "remove_s": [6.0, 5.0]}, ["c:2: remove_s", "later than add_s"]),
        ({"add_s": [float("nan"), 5.0]}, ["c:1: add_s", "nan"]),
        ({"max_pod": [1, 1]}, ["c: max_pod", "unknown column", "max_pods"]),
        ({name: [] for name in GOOD}, ["c", "no nodes"]),
    ],
)
def test_broken_nodes_are_named_to_the_cell(change: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        Cluster.from_arrow(pa.table({**GOOD, **change}), name="c")
    assert all(word in str(error.value) for word in words), str(error.value)


def test_missing_column_and_broken_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="c: num_gpu: found columns"):
        Cluster.from_arrow(pa.table({"cpu_milli": [1], "memory_mib": [1]}), name="c")
    with pytest.raises(InputError, match="__arrow_c_stream__"):
        Cluster.from_arrow([1, 2])
    path = tmp_path / "nodes.csv"
    path.write_text("cpu_milli,memory_mib,num_gpu\n1000,10,0\n1000,10,0,7\n")
    with pytest.raises(InputError, match=r"nodes.csv:3: found 4 fields, expected 3 fields"):
        Cluster.from_csv(path)
    path.write_text("cpu_milli,memory_mib,num_gpu,gpu_model\n1000,10,0,\n\n1000,10,1,T5\n")
    with pytest.raises(InputError, match=r"nodes.csv:4: gpu_model: found 'T5'"):
        Cluster.from_csv(path)
    short = tmp_path / "short.parquet"
    Cluster.mix(g2=1).to_parquet(short)
    short.write_bytes(short.read_bytes()[:-20])
    with pytest.raises(InputError, match="complete Parquet file"):
        Cluster.from_parquet(short)


def test_bad_builder_arguments() -> None:
    with pytest.raises(ScenarioError, match=r"'openc'.*openb, openb-all"):
        Cluster.preset("openc")
    with pytest.raises(ScenarioError, match=r"cluster.nodes: found 0"):
        Cluster.scaled(nodes=0)
    with pytest.raises(InputError, match=r"mix\.v9"):
        Cluster.mix(v9=1)
    with pytest.raises(InputError, match="-1 nodes"):
        Cluster.mix(g2=-1)
    with pytest.raises(InputError, match=r"uniform\.max_pod: found an unknown column"):
        Cluster.uniform(nodes=1, max_pod=3)
    with pytest.raises(InputError, match=r"cpu_milli: found 1.5"):
        Cluster.uniform(nodes=1, cpu_milli=1.5)  # type: ignore[arg-type]


def test_failed_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    for write in (Cluster.mix(g2=1).to_parquet, Cluster.mix(g2=1).to_csv):
        with pytest.raises(ResultError, match="No space left on device"):
            write(tmp_path / "nodes.out")
    assert list(tmp_path.iterdir()) == []


def test_schema_says_which_columns_may_be_null() -> None:
    assert [f.name for f in NODE_SCHEMA if not f.nullable] == ["node_id", "name", "cpu_milli", "memory_mib", "num_gpu"]


def test_a_preset_does_not_stand_type_by_type() -> None:
    models = column(Cluster.preset("openb"), "gpu_model")
    runs = 1 + sum(a != b for a, b in pairwise(models))
    assert runs > 600  # 7 if it did; 1,213 nodes in random order change model about 790 times


def test_shuffling_moves_nodes_and_keeps_them() -> None:
    cluster = Cluster.preset("openb")
    one, two = cluster.shuffled(1), cluster.shuffled(2)
    assert column(one, "name") != column(two, "name") != column(cluster, "name")
    assert column(cluster.shuffled(1), "name") == column(one, "name")
    assert sorted(column(one, "name")) == sorted(column(cluster, "name"))


def test_an_order_of_nodes_depends_on_names_and_draws_but_not_on_the_order_before() -> None:
    cluster = Cluster.uniform(nodes=9, gpu="T4", gpus=1)
    draws = GoRandom(5, 11)  # a number for a log and ten for timeouts are gone
    numbers = draws.permutation(9)
    expected = sorted(column(cluster, "name"), key=lambda name: numbers[int(name[-1])])
    assert column(cluster.shuffled(5), "name") == column(cluster.shuffled(8).shuffled(5), "name") == expected
    pods = Workload.synth("openb", pods=20, seed=1).shuffled(5)
    numbers = GoRandom(5, 1 + 19 + 10).permutation(9)
    assert column(cluster.shuffled(5, after=pods), "name") == sorted(expected, key=lambda name: numbers[int(name[-1])])
    untouched = Workload.synth("openb", pods=20, seed=1)
    assert column(cluster.shuffled(5, after=untouched), "name") == expected
    with pytest.raises(ScenarioError, match="after: found pods drawn by seed 5, expected pods of seed 6"):
        cluster.shuffled(6, after=pods)


def test_numbers_of_more_than_four_digits_are_sorted_as_text() -> None:
    count = 10_100
    order = column(Cluster.uniform(nodes=count, gpu="T4", gpus=1).shuffled(1), "name")
    texts = [f"{number:04d}" for number in GoRandom(1, 11).permutation(count)]
    names = [f"node-{i:04d}" for i in range(count)]
    assert order == [name for _, name in sorted(zip(texts, sorted(names), strict=True))]


@pytest.mark.parametrize("value", [70_000, 1.5, "x", 2**70])
def test_what_is_no_number_of_a_column_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match=rf"num_gpu: found '?{value}'?, expected a value of type int16"):
        Cluster.uniform(nodes=2, gpu="T4", gpus=value)


def test_values_of_any_kind_become_those_of_a_column() -> None:
    nodes = Cluster.uniform(nodes=1, gpu="T4", gpus=True, gpu_peak_w=70, max_pods=np.int64(3), add_s=1.5).nodes
    row = nodes.select(["num_gpu", "gpu_peak_w", "max_pods", "add_s"]).to_pylist()[0]
    assert list(row.values()) == [1, 70.0, 3, 1.5] and nodes.schema == NODE_SCHEMA


def test_a_cluster_tells_in_one_line_what_it_has() -> None:
    a = {"name": "a", "cpu_milli": 500, "memory_mib": 2048, "num_gpu": 4, "gpu_model": "T4"}
    b = {"name": "b", "cpu_milli": 96_000, "memory_mib": 4096, "num_gpu": 2, "gpu_model": "P100"}
    c = {"name": "c", "cpu_milli": 0, "memory_mib": 0, "num_gpu": 0, "gpu_model": None}
    cluster = Cluster.mix([(2, a), (1, b), (1, c)], name="mine")
    text = "Cluster('mine': 4 nodes, 10 GPUs (8 T4, 2 P100), 97 CPUs, 8 GiB)"
    assert str(cluster) == repr(cluster) == text
    bare = Cluster.uniform(nodes=1, cpu_milli=1000, memory_mib=1024)
    assert repr(bare) == "Cluster('uniform': 1 node, 0 GPUs, 1 CPUs, 1 GiB)"

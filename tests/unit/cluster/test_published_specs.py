"""Published clusters: order of the nodes, servers of several GPUs, files, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.cluster.published_specs import gavel_parts, sia_nodes
from fastsim.cluster.server import Server
from fastsim.errors import InputError, ScenarioError


def column(cluster: Cluster, name: str) -> list[Any]:
    return list(cluster.nodes[name].to_pylist())


def test_models_stand_by_name_whatever_the_order_of_the_numbers() -> None:
    cluster = Cluster.from_gavel("3:2:1")
    assert column(cluster, "gpu_model") == ["k80", "p100", "p100", "v100", "v100", "v100"]
    assert column(cluster, "name")[:2] == ["k80-0000", "p100-0000"] and cluster.total_gpus == 6
    mixed = Cluster.mix(v100=3, p100=2, k80=1)
    assert sorted(column(mixed, "name")) == column(cluster, "name")
    assert sorted(column(mixed, "gpu_model")) == column(cluster, "gpu_model")


def test_servers_of_several_gpus_leave_the_rest_out() -> None:
    cluster = Cluster.from_gavel("8:16:25", per_server="4:4:8")
    assert column(cluster, "num_gpu") == [8] * 3 + [4] * 4 + [4] * 2
    assert column(cluster, "cpu_milli")[0] == 8 * 4000
    assert len(Cluster.from_gavel("36:0:0")) == 36


def test_as_text_and_from_a_file(tmp_path: Path) -> None:
    cluster = Cluster.from_text("gavel:4:8:0?per_server=4:2:1")
    assert column(cluster, "num_gpu") == [2, 2, 2, 2, 4]
    path = tmp_path / "specs.json"
    path.write_text('{"philly": ["30:20:10"]}\n')
    assert Cluster.from_gavel(path).checksum() == Cluster.from_gavel("30:20:10").checksum()
    assert Cluster.from_text(f"gavel:{path}").total_gpus == 60


@pytest.mark.parametrize(
    ("spec", "per_server", "message"),
    [
        ("36:36", "1:1:1", "found '36:36', expected three whole numbers of 0 or more: v100:p100:k80"),
        ("36:x:0", "1:1:1", "found '36:x:0'"),
        ("36:0:0", "0:1:1", "per_server: found '0:1:1', expected three whole numbers of 1 or more"),
        ("3:0:0", "4:1:1", "found 3:0:0 in nodes of 4:1:1, expected one node at least"),
        ("none.json", "1:1:1", "no such file"),
    ],
)
def test_odd_specifications_are_refused(spec: str, per_server: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        gavel_parts(spec, per_server)


@pytest.mark.parametrize(
    ("text", "message"),
    [('{"a": ["1:1:1", "2:2:2"]}', "found 2 specifications"), ("[1]", r"\[1\]"), ("{", "{")],
)
def test_files_without_one_specification_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "specs.json").write_text(text)
    with pytest.raises(InputError, match=message):
        gavel_parts(tmp_path / "specs.json")


def test_machines_stand_kind_by_kind() -> None:
    cluster = Cluster.from_text("sia:2:1:1")
    assert cluster.nodes["gpu_model"].to_pylist() == ["aws", "aws", "dgx-ext", "rtx"]
    assert cluster.nodes["num_gpu"].to_pylist() == [4, 4, 8, 8]
    assert Cluster(*sia_nodes()).total_gpus == 64
    assert cluster.catalog.gpu["dgx-ext"].peak_w == 400


@pytest.mark.parametrize("spec", ["6:2", "6:2:x", "0:0:0", "-1:2:3"])
def test_other_texts_are_refused(spec: str) -> None:
    with pytest.raises(InputError, match="cluster sia"):
        sia_nodes(spec)


def test_so_many_servers() -> None:
    cluster = Cluster.from_text("synergy:16?cpus=32")
    assert (len(cluster), cluster.total_gpus) == (16, 128)
    assert Server.of(cluster.nodes, cluster.name) == Server(8, 32, 500, 500, 40)


def test_a_file_and_what_it_leaves_out(tmp_path: Path) -> None:
    path = tmp_path / "c.ini"
    lines = [
        "[CLUSTER]",
        "racks = 2",
        "servers_per_rack = 3 ; 6 in all",
        "cpus_per_server = 48",
        "[SCHEDULER]",
        "policy = FIFO",
    ]
    path.write_text("\n".join(lines))
    cluster = Cluster.from_text(str(path))
    assert (len(cluster), Server.of(cluster.nodes, cluster.name)) == (6, Server(8, 48, 500, 300, 40))
    assert Cluster.from_synergy(path).nodes.equals(Cluster.from_text(f"synergy:{path}").nodes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[NODES]\n", r"sections NODES, expected a section \[CLUSTER\]"),
        ("[CLUSTER]\ngpus = 3\n", "gpus: found an unknown key"),
        ("[CLUSTER]\nracks = one\n", "racks: found 'one', expected a whole number"),
        ("[CLUSTER]\nracks = 0\n", "racks: found 0, expected 1 or more"),
        ("racks = 1\n", "expected an INI file"),
    ],
)
def test_a_wrong_file_is_one_clear_error(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "c.ini"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        Cluster.from_synergy(path)


def test_missing_files_and_contradictions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        Cluster.from_synergy(tmp_path / "none.ini")
    with pytest.raises(InputError, match="embedded null byte, expected an INI file"):
        Cluster.from_synergy("none\0.ini")
    with pytest.raises(ScenarioError, match="with a file"):
        Cluster.from_synergy(tmp_path / "none.ini", cpus=3)
    with pytest.raises(InputError, match="servers_per_rack: found 0"):
        Cluster.from_synergy(0)

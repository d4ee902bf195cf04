"""Synergy's clusters: files, numbers of servers, refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.cluster.server import Server
from fastsim.errors import InputError, ScenarioError
from fastsim.workload import texts


def test_so_many_servers() -> None:
    cluster = texts.cluster_from("synergy:16?cpus=32")
    assert (len(cluster), cluster.total_gpus, Server.of(cluster)) == (16, 128, Server(8, 32, 500, 500, 40))


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
    cluster = texts.cluster_from(str(path))
    assert (len(cluster), Server.of(cluster)) == (6, Server(8, 48, 500, 300, 40))
    assert Server.of(Cluster.from_synergy(path)) == Server.of(texts.cluster_from(f"synergy:{path}"))


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
    with pytest.raises(ScenarioError, match="the file tells"):
        Cluster.from_synergy(tmp_path / "none.ini", cpus=3)
    with pytest.raises(InputError, match="servers_per_rack: found 0"):
        Cluster.from_synergy(0)

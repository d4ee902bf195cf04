"""Clusters from texts: the way of Python is that of the command line."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import fastsim as fs
from fastsim.cluster.cluster import Cluster
from fastsim.cluster.published_nodes import NODE_LISTS
from fastsim.cluster.texts import PRESETS
from fastsim.errors import FastsimError
from fastsim.foundation.object_cache import OBJECTS

EXAMPLES = {
    "openb": "openb", "openb-all": "openb-all", "openb:NODES": "openb:12?seed=3", "uniform": "uniform?nodes=2&gpu=T4",
    "mix": "mix?g2=1&t4=2", "gavel:V100:P100:K80": "gavel:2:2:2", "sia:AWS:DGX:RTX": "sia:1:1:1",
    "synergy:SERVERS": "synergy:2",
}  # fmt: skip
"""A text of each kind that needs no file."""


def test_from_text_reads_what_a_run_reads() -> None:
    assert EXAMPLES.keys() == PRESETS.keys()
    for text in EXAMPLES.values():
        assert fs.Cluster.from_text(text) == Cluster.from_text(text)


def test_a_preset_of_another_size_is_a_scaled_one() -> None:
    assert fs.Cluster.preset("openb:12") == fs.Cluster.scaled("openb", nodes=12) == fs.Cluster.from_text("openb:12")
    assert fs.Cluster.preset("openb-all:12").name == "openb-all-12"


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("opneb", "did you mean 'openb'"),
        ("uniform?nodes=2", "Cluster.from_text reads every text of a cluster"),
        ("openb:0", "1 or more"),
    ],
)
def test_other_presets_name_the_way(name: str, part: str) -> None:
    with pytest.raises(FastsimError) as caught:
        fs.Cluster.preset(name)
    assert part in str(caught.value)


def test_texts_are_cached_where_a_sweep_asks_for_it() -> None:
    OBJECTS.cache_for("test")
    try:
        assert Cluster.from_text("openb:3") is Cluster.from_text("openb:3")
    finally:
        OBJECTS.cache_for(None)


def test_lists_of_nodes_go_by_the_name_of_their_trace() -> None:
    for kind in NODE_LISTS:
        with pytest.raises(FastsimError, match=r"none.csv: found .*, expected "):
            fs.Cluster.from_text(f"{kind}:none.csv")
    with pytest.raises(FastsimError, match="neither a file nor a known name"):
        fs.Cluster.from_text("helios:none.csv")


def test_gpu_models_of_nodes_are_spelled_as_people_do() -> None:
    assert fs.Cluster.uniform(nodes=1, gpu="h100-sxm").nodes["gpu_model"].to_pylist() == ["H100-80GB"]
    assert fs.Cluster.from_text("uniform?nodes=1&gpu=a-100&mig=7*1g.10gb").nodes["gpu_model"].to_pylist() == ["A100"]
    own = {"num_gpu": 1, "cpu_milli": 1, "memory_mib": 1, "gpu_idle_w": 1.0, "gpu_peak_w": 2.0}
    models = [{"gpu_model": "a100", **own}, {"gpu_model": "A-100", **own, "gpu_idle_w": None, "gpu_peak_w": None}]
    cluster = fs.Cluster.from_polars(pl.DataFrame(models))
    assert cluster.nodes["gpu_model"].to_pylist() == ["a100", "A100"]  # the first has watts, so its model is its own
    with pytest.raises(FastsimError) as caught:
        fs.Cluster.uniform(nodes=1, gpu="V100")
    expected = "found 'V100', which is several models, expected one of: V100M16 (16,160 MiB), V100M32 (32,510 MiB)"
    assert str(caught.value).endswith(expected)
    with pytest.raises(FastsimError, match=r"did you mean 'H100-80GB'\? Else extend the catalogue"):
        fs.Cluster.uniform(nodes=1, gpu="H1000")


def test_a_table_of_watts_adds_models_to_every_text(tmp_path: Path) -> None:
    table = tmp_path / "watts.csv"
    table.write_text("kind,model,memory_mib,idle_w,peak_w,cores_per_socket\ngpu,H9000,15109,11,71,\n")
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("num_gpu,gpu_model,cpu_milli,memory_mib\n8,H9000,1000,1000\n")
    for text in ("uniform?nodes=1&gpu=H9000", str(nodes), f"csv:{nodes}"):
        cluster = fs.Cluster.from_text(f"{text}{'&' if '?' in text else '?'}watts={table}")
        assert cluster.watts["gpu_peak_w"].to_pylist() == [71.0]

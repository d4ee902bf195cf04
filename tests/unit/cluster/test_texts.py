"""Clusters from texts: the way of Python is that of the command line."""

from __future__ import annotations

import pytest

import fastsim as fs
from fastsim.cluster.published_nodes import NODE_LISTS
from fastsim.cluster.texts import PRESETS, cluster_from
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
        assert fs.Cluster.from_text(text) == cluster_from(text)


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
        assert cluster_from("openb:3") is cluster_from("openb:3")
    finally:
        OBJECTS.cache_for(None)


def test_lists_of_nodes_go_by_the_name_of_their_trace() -> None:
    for kind in NODE_LISTS:
        with pytest.raises(FastsimError, match=r"none.csv: found .*, expected "):
            fs.Cluster.from_text(f"{kind}:none.csv")
    with pytest.raises(FastsimError, match="neither a file nor a known name"):
        fs.Cluster.from_text("helios:none.csv")

"""What users are told about a run."""

from __future__ import annotations

import warnings

import fastsim as fs
from fastsim.oversize import Oversized
from fastsim.run_warnings import ColumnIgnored, PodTooLarge, ignored_columns, large_pods, warn


def test_nothing_is_said_when_all_is_well() -> None:
    assert large_pods(Oversized(fs.Cluster.uniform(nodes=1))) == []
    assert ignored_columns(fs.Workload.synth("openb", pods=1)) == []


def test_warnings_come_in_the_order_of_their_texts() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn([(PodTooLarge, "b"), (ColumnIgnored, "a")], depth=0)
    assert [str(item.message) for item in caught] == ["a", "b"]

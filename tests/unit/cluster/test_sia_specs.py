"""Clusters of the Sia experiments."""

from __future__ import annotations

import pytest

from fastsim.cluster.sia_specs import sia_cluster
from fastsim.errors import InputError
from fastsim.workload import texts


def test_machines_stand_kind_by_kind() -> None:
    cluster = texts.cluster_from("sia:2:1:1")
    assert cluster.nodes["gpu_model"].to_pylist() == ["aws", "aws", "dgx-ext", "rtx"]
    assert cluster.nodes["num_gpu"].to_pylist() == [4, 4, 8, 8]
    assert sia_cluster().total_gpus == 64
    assert cluster.catalog.gpu["dgx-ext"].peak_w == 400


@pytest.mark.parametrize("spec", ["6:2", "6:2:x", "0:0:0", "-1:2:3"])
def test_other_texts_are_refused(spec: str) -> None:
    with pytest.raises(InputError, match="cluster sia"):
        sia_cluster(spec)

"""Traces of the placement experiments: generated, listed or recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastsim.errors import InputError
from fastsim.experiments.reproduce import fgd_protocol
from fastsim.experiments.reproduce.fgd_protocol import GENERATED, is_recorded, trace, trace_names

PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"


def test_generated_traces_differ() -> None:
    assert trace_names(None) == GENERATED
    one, two = (trace(None, name).offered(42)[1] for name in GENERATED[:2])
    assert one.checksum() != two.checksum() and one.checksum() == trace(None, GENERATED[0]).offered(42)[1].checksum()
    assert not is_recorded(None, GENERATED[0])


@pytest.mark.parametrize("inside", [True, False])
def test_lists_stand_in_the_folder_or_below(tmp_path: Path, inside: bool) -> None:
    folder = tmp_path if inside else tmp_path / "data/openb"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "openb_pod_list_default.csv").write_text(PODS + "p-0,1000,1024,1,500,,LS,Running,0,10,1\n")
    assert trace_names(tmp_path) == ("default",)
    with pytest.raises(InputError, match=r"no openb_node_list_gpu_node\.csv"):
        trace(tmp_path, "default").offered(42)
    (folder / "openb_node_list_gpu_node.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn-0,64000,262144,2,P100\n")
    cluster, pods = trace(tmp_path, "default").offered(42)
    assert cluster.total_gpus == 2 and sum(batch.num_rows for batch in pods.batches()) > 3
    fgd_protocol.trace.cache_clear()
    fgd_protocol._listed_cluster.cache_clear()

"""Importers of Alibaba's GPU traces v2025 and v2026; which one a file is of follows from its columns.

=============  ========================================================================================================
v2025          instances of recommendation services: a GPU or none, at most so many of an application on a node
v2026 (spot)   jobs of equal workers, with the one GPU model that they accept, and the nodes; memory is not recorded
v2026 (GenAI)  requests for images; each is taken as a pod on one GPU
=============  ========================================================================================================

The jobs of v2026 were built on the documented rows, not tried on the full file.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import polars as pl

from fastsim.cluster.table_sources import Source, source_of
from fastsim.errors import InputError
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.workload import schema as s
from fastsim.workload.mapped_pods import table_of
from fastsim.workload.pod_rows import PodRows


class _Layout(NamedTuple):
    title: str
    sign: str
    columns: dict[str, str]
    where: str | None = None
    expand: bool = False


LAYOUTS = (
    _Layout("Alibaba cluster-trace-gpu-v2025", "instance_sn", {
        s.SUBMIT_S: "COALESCE(creation_time, 0)", s.DURATION_S: "deletion_time - COALESCE(scheduled_time, 0)",
        s.NUM_GPU: "gpu_request", s.CPU_MILLI: "1000 * cpu_request", s.MEMORY_MIB: "1024 * memory_request",
        s.TASK_ROLE: "role", s.GROUP: "app_name", s.MAX_PER_NODE: "NULLIF(max_instance_per_node, -1)",
        s.ORIG_START_S: "scheduled_time", s.ORIG_END_S: "deletion_time", s.NATIVE_ID: "instance_sn",
    }),
    _Layout("Alibaba cluster-trace-gpu-v2026 (spot)", "worker_num", {
        s.SUBMIT_S: "submit_time", s.DURATION_S: "duration", s.CPU_MILLI: "1000 * cpu_request",
        s.NUM_GPU: "CASE WHEN gpu_request < 1 THEN gpu_request ELSE CEIL(gpu_request) END",
        s.GPU_MODELS: "gpu_model", s.JOB_ID: "job_name", s.GANG_SIZE: "worker_num", s.QOS: "job_type",
        s.PREEMPTIBLE: "job_type = 'Spot'", s.TENANT: "organization", s.NATIVE_ID: "job_name",
    }, expand=True),
    _Layout("Alibaba cluster-trace-v2026-GenAI", "gmt_create", {
        s.SUBMIT_S: "gmt_create[iso]", s.DURATION_S: "exec_time_seconds", s.NUM_GPU: "1", s.QOS: "predict_type",
        s.TENANT: "groupId", s.GROUP: "checkpoint_model_version_id", s.ORIG_STATUS: "predict_status",
    }, "exec_time_seconds IS NOT NULL"),
)  # fmt: skip
"""The layouts, each known by a column of its own; what is not named stays as native columns."""


@whole_process
def import_jobs(
    path: str | os.PathLike[str], *, rdma: bool = False, where: str | None = None, origin: str = "min"
) -> PodRows:
    """The instances, workers or requests of one file.

    ``rdma``: instances of v2025 request `rdma_percent` of a node's network, a resource that nodes must then have.
    Instances that were there before the recording began arrive at 0 s, those that outlived it run for ever.
    """
    source = source_of(path)
    for layout in (one for one in LAYOUTS if one.sign in source.frame.columns):
        columns = dict(layout.columns)
        if rdma and layout is LAYOUTS[0]:
            source, columns[s.EXTRA_RESOURCES] = _with_rdma(source), "rdma"
        return table_of(source, columns, layout.title, where=(layout.where, where), origin=origin, expand=layout.expand)
    signs = " or ".join(layout.sign for layout in LAYOUTS)
    raise InputError(f"{path}", f"columns {', '.join(source.frame.columns)}", f"{signs} among them")


def _with_rdma(source: Source) -> Source:
    if "rdma_request" not in source.frame.columns:
        return source
    amount = pl.concat_str(pl.lit("rdma_percent="), pl.col("rdma_request"))
    return source._replace(frame=source.frame.with_columns(rdma=amount))

"""Telemetry of a finished run, from its placements.

Jobs in rounds have it after the run, since stays are known at their ends; so do pods with checkpoints, which hold
no readings.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from fastsim.engine.sampling.sample_table import TABLE, SampleTable
from fastsim.engine.sampling.telemetry_sampler import NO_STAYS, Sampling
from fastsim.engine.tables import LazyFrames
from fastsim.foundation import interrupts
from fastsim.workload import schema as s

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.engine.result import Result
    from fastsim.scenario.scenario import Scenario
    from fastsim.telemetry.telemetry import Telemetry
    from fastsim.workload import Workload

ROWS = 1 << 18
"""Stays that are sampled at a time."""


def sampled(
    result: Result, scenario: Scenario, telemetry: Telemetry | None, cluster: Cluster, folder: Path | None
) -> Result:
    """The result with its telemetry if it has one."""
    if telemetry is None:
        return result
    return with_telemetry(
        result=result, telemetry=telemetry, cluster=cluster, seed=scenario.seed, record=scenario.record, folder=folder
    )


def with_telemetry(
    result: Result, telemetry: Telemetry, cluster: Cluster, seed: int, record: str, folder: Path | None,
    workload: Workload | None = None,
) -> Result:  # fmt: skip
    """The result with a table of samples, or with the table written to its folder.

    ``workload`` has the requests of pods, which ``jobs`` do not have.
    """
    samples = SampleTable(folder)
    try:
        sample(result, Sampling(telemetry, cluster, seed, samples.add), workload)
        samples.close()
    except BaseException:
        samples.drop()
        raise
    tables: dict[str, Any] = {}
    if record not in ("placements", "all"):  # they were only needed here
        tables["placements"] = result.frames["placements"].clear()
    if folder is None:
        tables[TABLE] = samples.frame()
    provenance = {**result.provenance, "telemetry": repr(telemetry)}
    if not tables:
        return dataclasses.replace(result, provenance=provenance)
    frames = LazyFrames({**{name: result.frames[name] for name in result.frames}, **tables}, {})
    return dataclasses.replace(result, frames=frames, provenance=provenance)


def sample(result: Result, sampling: Sampling, workload: Workload | None = None) -> None:
    """Take all samples from the first submission to the end of the run."""
    jobs, summary = result.frames["jobs"], result.summary
    begin_s = jobs["submit_s"].min() if len(jobs) else 0.0
    assert isinstance(begin_s, int | float)
    end_s = float(begin_s) + float(summary["makespan_s"][0])
    sampling.begin(float(begin_s))
    rows = stays(own_needs(result.frames["placements"], sampling))
    need = needs(jobs if workload is None else requests(jobs, workload), sampling)
    ids = jobs["pod_id"].to_numpy()
    order = np.argsort(ids, kind="stable")
    for first in range(0, len(rows), ROWS):
        interrupts.check()
        part = rows[first : first + ROWS]
        pod_id, begins = part["pod_id"].to_numpy().astype(np.int64), part["begins"].to_numpy()
        gpu = (sampling.first__n[part["node_id"].to_numpy()] + part["gpu"].to_numpy()).astype(np.int32)
        profile = np.full(len(part), -1, np.int32)
        job = order[np.searchsorted(ids, pod_id[begins], sorter=order)]
        names = part["need"].to_numpy()[begins] if "need" in part.columns else need[job]
        profile[begins] = sampling.profiles.numbers(names, sampling.device__u[gpu[begins]])
        t = np.ascontiguousarray(part["t"].to_numpy(), np.float64)
        sampling.take({"t": t, "pod_id": np.ascontiguousarray(pod_id), "gpu": gpu, "profile": profile}, float(t[-1]))
    sampling.take(NO_STAYS, end_s, closed=True)
    sampling.flush()


def requests(jobs: pl.DataFrame, workload: Workload) -> pl.DataFrame:
    """The pods of a run with what they request in the workload."""
    names = [name for name in (s.WORKLOAD, s.GPU_MILLI, s.GPU_MEMORY_MIB) if name in workload.columns]
    batches = (pl.from_arrow(batch.select([s.POD_ID, *names])) for batch in workload.batches())
    known = pl.concat([pl.DataFrame(one) for one in batches]).rename({s.POD_ID: "pod_id"})
    return jobs.select("pod_id").join(known, on="pod_id", how="left", maintain_order="left")


def needs(jobs: pl.DataFrame, sampling: Sampling) -> Any:
    """The need of every job: its application and request, whole devices by default."""
    names = [name for name in (s.WORKLOAD, s.GPU_MILLI, s.GPU_MEMORY_MIB) if name in jobs.columns]
    columns = jobs.select(pl.col(names), number="pod_id")
    return sampling.profiles.needs(columns.to_arrow(compat_level=pl.CompatLevel.oldest()))


def own_needs(placements: pl.DataFrame, sampling: Sampling) -> pl.DataFrame:
    """Placements with the need of each stay, if they have a profile of their own; else unchanged."""
    if "profile" not in placements.columns:
        return placements
    columns = placements.select(pl.col("profile").alias(s.WORKLOAD), pl.col("gpu_memory_mib"))
    need = sampling.profiles.needs(columns.to_arrow(compat_level=pl.CompatLevel.oldest()))
    return placements.with_columns(need=pl.Series(need))


def stays(placements: pl.DataFrame) -> pl.DataFrame:
    """Starts and ends of all stays on devices in order of time; ends of one instant come before starts."""
    own = [name for name in ("need",) if name in placements.columns]
    known = placements.filter(pl.col("node_id").is_not_null() & (pl.col("start_s") < pl.col("end_s").fill_null(np.inf)))
    spread = (
        known.select("pod_id", "node_id", *own, gpu=pl.col("gpu_ids"), start_s="start_s", end_s="end_s")
        .explode("gpu")
        .drop_nulls("gpu")
    )
    same = pl.col("pod_id", "node_id", "gpu", *own)
    begins = spread.select(same, t="start_s", begins=pl.lit(True))
    ends = spread.drop_nulls("end_s").select(same, t="end_s", begins=pl.lit(False))
    return pl.concat([ends, begins]).sort("t", "begins", "pod_id", "node_id", "gpu")

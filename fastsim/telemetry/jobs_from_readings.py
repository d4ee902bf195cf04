"""Jobs from readings of GPUs: a pod ran while its label was on readings, and these give its usage.

A pod has the name of its label, after ``NAMESPACE/`` if pods of several namespaces are named so. It begins at the last
reading of its device before the first with its name, and ends at the first one after the last.
Pods that share a device have equal parts of its readings. Readings without pods' names yield no jobs.
A pod on instances of partitioned GPUs requests these instances; its profile has no watts of its own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa

from fastsim.errors import InputError
from fastsim.foundation.parquet import replacing
from fastsim.hardware.gpu_products import product
from fastsim.hardware.model_catalog import Catalog, GpuModel
from fastsim.telemetry.readings_table import ordered
from fastsim.telemetry.usage_profile import Phase, Profile
from fastsim.workload import Workload
from fastsim.workload import schema as s

MOST_PHASES = 100
"""Pieces of a profile; of more, so many equal spans of time are averaged."""
METRICS = ("memory_used_mib", "util_pct", "power_w")
DEVICE = ("node", "gpu_uuid", "gpu_index")
POD = ("namespace", "pod")
INSTANCE = r"-MIG-(\d+g\.\d+gb(?:\.me)?)$"
"""End of the name of a model that is an instance of a partitioned GPU."""


class Derived(NamedTuple):
    """Pods, and their usage profiles by the name in the column ``workload``."""

    pods: Workload
    profiles: dict[str, Profile]


def jobs_of(table: pa.Table, name: str = "telemetry") -> Derived:
    """The pods that readings name; seconds count from the first reading of all."""
    rows = pl.DataFrame(pl.from_arrow(ordered(table)))
    if rows["pod"].null_count() == len(rows):
        raise InputError("telemetry: pod", "no reading with a pod's name", "labels of pods, as exporters have them")
    rows = rows.with_columns(t_s=pl.col("ts").dt.epoch("ms") / 1000).with_columns(pl.col("t_s") - pl.col("t_s").min())
    spans = _spans(rows)
    pods = _stays(spans, rows)
    profiles = {row["workload"]: _profile(row["workload"], part) for row, part in _parts(pods, spans, rows)}
    return Derived(Workload.from_arrow(_pod_table(pods), name=name), profiles)


def _spans(rows: pl.DataFrame) -> pl.DataFrame:
    """For every device, moment and pod there: the moments before and after, and how many pods there were."""
    moments = rows.select(*DEVICE, "t_s").unique().sort(*DEVICE, "t_s")
    moments = moments.with_columns(
        before_s=pl.col("t_s").shift(1).over(DEVICE), after_s=pl.col("t_s").shift(-1).over(DEVICE)
    )
    there = rows.filter(pl.col("pod").is_not_null()).select(*DEVICE, "t_s", *POD, "model").unique()
    there = there.with_columns(together=pl.len().over(*DEVICE, "t_s"))
    return there.join(moments, on=[*DEVICE, "t_s"], nulls_equal=True, maintain_order="left").sort(*POD, "t_s", *DEVICE)


def _stays(spans: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """A row for each pod: from when to when (null: still there), GPUs, share of each, memory, name of its profile."""
    memory = rows.filter(metric="memory_used_mib").select(*DEVICE, "t_s", used="value")
    spans = spans.with_columns(instance=pl.col("model").str.extract(INSTANCE)).join(
        memory.unique([*DEVICE, "t_s"]), on=[*DEVICE, "t_s"], how="left", nulls_equal=True, maintain_order="left"
    )
    stays = spans.sort("t_s").group_by(*POD, maintain_order=True).agg(
        begin_s=pl.coalesce(pl.first("before_s"), pl.first("t_s")), end_s=pl.last("after_s"), node=pl.first("node"),
        num_gpu=pl.struct(DEVICE).filter(pl.col("instance").is_null()).n_unique(), gpu_milli=1000 // pl.max("together"),
        gpu_memory_mib=(pl.col("used") / pl.col("together")).max().ceil().cast(pl.Int64), model=pl.first("model"),
        mig=pl.struct(*DEVICE, "instance").filter(pl.col("instance").is_not_null()).unique().struct.field("instance")
        .sort().str.replace(".me", "+me", literal=True).str.join("+"),
    )  # fmt: skip
    twice = pl.col("pod").is_duplicated()
    named = pl.when(twice).then(pl.format("{}/{}", pl.col("namespace").fill_null(""), "pod")).otherwise("pod")
    return stays.with_columns(workload=named).sort("begin_s", "workload")


def _pod_table(pods: pl.DataFrame) -> pl.DataFrame:
    several, none = pl.col("num_gpu") > 1, pl.col("num_gpu") == 0
    mig = [pl.col("mig").replace("", None).alias(s.MIG)] if pods["mig"].str.len_bytes().sum() else []
    return pods.select(
        pl.int_range(pl.len(), dtype=pl.Int64).alias(s.POD_ID), pl.col("begin_s").alias(s.SUBMIT_S),
        (pl.col("end_s") - pl.col("begin_s")).alias(s.DURATION_S), pl.lit(0, pl.Int64).alias(s.CPU_MILLI),
        pl.lit(0, pl.Int64).alias(s.MEMORY_MIB), pl.col("num_gpu").cast(pl.Int64).alias(s.NUM_GPU),
        pl.when(several).then(1000).when(none).then(0).otherwise("gpu_milli").cast(pl.Int64).alias(s.GPU_MILLI),
        pl.when(~none).then("gpu_memory_mib").alias(s.GPU_MEMORY_MIB), *mig, pl.col("workload").alias(s.WORKLOAD),
        pl.col("namespace").alias(s.TENANT), pl.col("begin_s").alias(s.ORIG_START_S),
        pl.col("end_s").alias(s.ORIG_END_S), pl.col("workload").alias(s.NATIVE_ID),
    )  # fmt: skip


def _parts(pods: pl.DataFrame, spans: pl.DataFrame, rows: pl.DataFrame) -> list[tuple[Mapping[str, Any], pl.DataFrame]]:
    """For each pod its readings, the mean of its GPUs and its part of them: ``from_s``, ``to_s`` and quantities."""
    known = rows.filter(pl.col("metric").is_in(METRICS)).select(*DEVICE, "t_s", "metric", "value")
    known = known.unique([*DEVICE, "t_s", "metric"], maintain_order=True)
    wide = known.pivot("metric", index=[*DEVICE, "t_s"], values="value")
    absent = [pl.lit(None, pl.Float64).alias(name) for name in METRICS if name not in wide.columns]
    wide = wide.with_columns(absent)
    joined = spans.join(wide, on=[*DEVICE, "t_s"], how="left", nulls_equal=True, maintain_order="left").join(
        pods.select(*POD, "workload", "begin_s"), on=list(POD), nulls_equal=True, maintain_order="left")  # fmt: skip
    part = pl.col("memory_used_mib", "util_pct") / pl.col("together")
    joined = joined.with_columns(part, power_w=_extra_w(joined))
    means = joined.group_by("workload", "begin_s", "t_s", maintain_order=True).agg(
        pl.min("before_s"), pl.mean(*METRICS)
    )
    by_name = means.sort("t_s").partition_by("workload", as_dict=True)
    return [(row, by_name[(row["workload"],)]) for row in pods.rows(named=True)]


def _extra_w(joined: pl.DataFrame) -> pl.Series:
    """Watts beyond what utilisation explains, where the model's watts are known; an instance has those of its board."""
    models = joined["model"].unique().drop_nulls()
    known = [(name, *_watts(name)) for name in models.filter(~models.str.contains(INSTANCE))]
    watts = pl.DataFrame(known, schema={"model": pl.String, "idle_w": pl.Float64, "peak_w": pl.Float64}, orient="row")
    rows = joined.select("model", "power_w", "util_pct").join(watts, on="model", how="left", maintain_order="left")
    extra = rows["power_w"] - rows["idle_w"] - (rows["peak_w"] - rows["idle_w"]) * rows["util_pct"] / 100
    return pl.Series((extra / joined["together"]).fill_null(0.0))


def _watts(name: str) -> tuple[float, float]:
    """Idle and peak watts of a model."""
    known, gpu = Catalog.default().gpu, product(name)
    model = known.get(gpu.gpu_model) or known.get(gpu.watts_of) or GpuModel(0, 0)
    return model.idle_w, model.peak_w


def _profile(name: str, part: pl.DataFrame) -> Profile:
    """The curve of one pod: a reading holds until the next one, the first from the pod's begin on."""
    from_s = pl.col("t_s") - pl.col("t_s").first()
    rows = part.select(from_s.alias("from_s"), pl.col(METRICS).fill_null(0.0))
    before_s = part["t_s"][0] - part["begin_s"][0]
    if len(rows) > MOST_PHASES:
        width = rows["from_s"][-1] / (MOST_PHASES - 1)
        pieces = rows.group_by((pl.col("from_s") / width).floor().alias("piece"), maintain_order=True)
        rows = pieces.agg(pl.min("from_s"), pl.mean(*METRICS)).drop("piece")
    begins: list[tuple[float, tuple[float, float, float]]] = []
    for at_s, memory, util, power in rows.iter_rows():
        level = (max(memory, 0.0), min(max(util, 0.0), 100.0), round(power, 3))
        if not begins or begins[-1][1] != level:
            begins.append((at_s + before_s if begins else 0.0, level))
    ends_s = [*(at_s for at_s, _ in begins[1:]), math.inf]
    return Profile(name, tuple(Phase(end - at, *level) for (at, level), end in zip(begins, ends_s, strict=True)))


def write_profiles_csv(profiles: Mapping[str, Profile], path: str | os.PathLike[str]) -> int:
    """Profiles as the table that ``telemetry_profile.profiles_from_csv`` reads; the number of its rows."""
    rows = [
        (
            name,
            None if math.isinf(phase.duration_s) else phase.duration_s,
            phase.memory_mib,
            phase.util_pct,
            phase.power_w,
        )
        for name, profile in profiles.items()
        for phase in profile.phases
    ]
    names = ["name", "duration_s", "memory_mib", "util_pct", "power_w"]
    with replacing(path) as partial:
        pl.DataFrame(rows, schema=names, orient="row").write_csv(partial)
    return len(rows)

"""Statistics of a trace: requests, times between arrivals, durations, and the offered load over time.

Offered load is what would be in use if every pod began as it arrived: GPUs, by the models that pods accept (``any``
where all are). Over a span it is the mean. Pods that run for ever add up. Jobs without a duration get their time from
the policy, so of these only the GPUs that arrive are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from fastsim.workload import schema as s

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.workload import Workload

SPANS = 96
"""Spans of time that a load curve has."""
QUANTILES = (0.5, 0.9, 0.99)
COLUMNS = (
    s.SUBMIT_S, s.DURATION_S, s.CPU_MILLI, s.MEMORY_MIB, s.NUM_GPU, s.GPU_MILLI, s.GPU_MODELS, s.WORKLOAD, s.TENANT,
    s.QOS,
)  # fmt: skip
"""Columns of the pods that the figures need."""
ANY = "any"


class Line(NamedTuple):
    """One figure of a trace."""

    what: str
    value: float | int | str
    unit: str = ""


class GpuDemand(NamedTuple):
    """GPUs requested by pods of some models: arrivals and ends in seconds, GPUs of each pod."""

    begins_s: Any
    ends_s: Any
    gpus: Any

    def until(self, time_s: Any) -> Any:
        """GPU seconds requested up to these times."""
        return _area(self.begins_s, self.gpus, time_s) - _area(self.ends_s, self.gpus, time_s)


def trace_frame(workload: Workload) -> pl.DataFrame:
    """The rows of a workload, with the columns that figures need."""
    columns = [name for name in COLUMNS if name in workload.columns]
    frames = [pl.DataFrame(pl.from_arrow(batch.select(columns))) for batch in workload.batches()]
    return pl.concat(frames) if frames else pl.DataFrame()


def trace_lines(frame: pl.DataFrame, cluster: Cluster | None = None) -> list[Line]:
    """All figures of a trace: arrivals, requests, durations, load."""
    if not len(frame):
        return [Line("rows", 0)]
    return [*_arrivals(frame), *_requests(frame), *_durations(frame), *_load(frame, cluster)]


def _arrivals(frame: pl.DataFrame) -> Iterator[Line]:
    submit_s = frame[s.SUBMIT_S].to_numpy()
    span_s = float(submit_s[-1] - submit_s[0])
    yield Line("rows", len(frame))
    yield Line("first arrival", float(submit_s[0]), "s")
    yield Line("last arrival", float(submit_s[-1]), "s")
    if span_s > 0:
        yield Line("arrivals", 3600 * (len(frame) - 1) / span_s, "1/h")
        yield from _spread("time between arrivals", np.diff(submit_s), "s")


def _requests(frame: pl.DataFrame) -> Iterator[Line]:
    num, milli = (frame[name].to_numpy().astype(np.int64) for name in (s.NUM_GPU, s.GPU_MILLI))
    kinds = {
        "without GPU": num == 0, "with a part of a GPU": (num == 1) & (milli < 1000),
        "with one GPU": (num == 1) & (milli == 1000), "with several GPUs": num > 1,
    }  # fmt: skip
    for name, mask in kinds.items():
        if mask.any():
            yield Line(f"rows {name}", 100 * float(mask.mean()), "%")
    yield Line("GPUs of all rows", float((num * milli).sum() / 1000), "GPUs")
    for column, unit in ((s.CPU_MILLI, "milli-CPU"), (s.MEMORY_MIB, "MiB")):
        if frame[column].max():
            yield from _spread(
                f"{'CPU' if column == s.CPU_MILLI else 'memory'} of a row", frame[column].to_numpy(), unit
            )
    for column, name in ((s.WORKLOAD, "workloads"), (s.TENANT, "tenants"), (s.QOS, "classes of service")):
        if column in frame.columns:
            yield Line(name, frame[column].n_unique())


def _durations(frame: pl.DataFrame) -> Iterator[Line]:
    if s.DURATION_S not in frame.columns:
        return
    known = frame.filter(pl.col(s.DURATION_S).is_not_null())
    if len(known) < len(frame):
        yield Line("rows that run for ever", 100 * (1 - len(known) / len(frame)), "%")
    if len(known):
        yield Line("duration, mean", float(known[s.DURATION_S].mean()), "s")  # type: ignore[arg-type]
        yield from _spread("duration", known[s.DURATION_S].to_numpy(), "s")
        gpu_h = known[s.DURATION_S] * known[s.NUM_GPU] * known[s.GPU_MILLI].cast(pl.Int64) / 3.6e6
        yield Line("GPU hours of all rows", float(gpu_h.sum()), "h")


def _load(frame: pl.DataFrame, cluster: Cluster | None) -> Iterator[Line]:
    if cluster is None:
        return
    load = mean_load_pct(frame, cluster)
    if load is not None:
        yield Line("GPU load offered while rows arrive", load, "% of capacity")
    curve = load_curve(frame, cluster)
    if "load_pct" in curve.columns:
        for (model,), part in curve.group_by("model", maintain_order=True):
            yield Line(f"most GPUs offered at a time, {model}", part["load_pct"].max(), "% of capacity")  # type: ignore[arg-type]


def _spread(name: str, values: Any, unit: str) -> Iterator[Line]:
    for quantile in QUANTILES:
        label = "median" if quantile == 0.5 else f"{100 * quantile:g} % up to"
        yield Line(f"{name}, {label}", float(np.quantile(values, quantile)), unit)


def mean_load_pct(frame: pl.DataFrame, cluster: Cluster) -> float | None:
    """Load offered from the first to the last arrival, per cent of the GPUs; None if no row has a duration."""
    span_s = float(frame[s.SUBMIT_S][-1] - frame[s.SUBMIT_S][0]) if len(frame) else 0.0
    if s.DURATION_S not in frame.columns or span_s <= 0 or not cluster.total_gpu_milli:
        return None
    if frame[s.DURATION_S].null_count() == len(frame):
        return None
    bounds = np.array([frame[s.SUBMIT_S][0], frame[s.SUBMIT_S][-1]])
    demand_s = sum(float(np.diff(demand.until(bounds))[0]) for demand in demands(frame).values())
    return 100 * demand_s / span_s / (cluster.total_gpu_milli / 1000)


def load_curve(frame: pl.DataFrame, cluster: Cluster | None = None, spans: int = SPANS) -> pl.DataFrame:
    """Mean GPUs requested in each span of time and by models: time_s (its begin), model, gpus, and load_pct if known.

    For jobs without durations ``gpus`` are those that arrive, per hour.
    """
    schema = {"time_s": pl.Float64, "model": pl.String, "gpus": pl.Float64}
    timed = s.DURATION_S in frame.columns
    last_s = float(frame[s.SUBMIT_S][-1]) if len(frame) else 0.0
    first_s = float(frame[s.SUBMIT_S][0]) if len(frame) else 0.0
    if last_s <= first_s:
        return pl.DataFrame(schema=schema)
    bounds = np.linspace(first_s, last_s, spans + 1)
    parts = []
    for model, demand in demands(frame).items():
        if timed or s.WORKLOAD not in frame.columns:
            gpus = np.diff(demand.until(bounds)) / np.diff(bounds)
        else:
            gpus = np.histogram(demand.begins_s, bounds, weights=demand.gpus)[0] / np.diff(bounds) * 3600
        columns = {"time_s": bounds[:-1], "model": [model] * spans, "gpus": gpus}
        part = pl.DataFrame(columns, schema=schema)
        capacity = None if cluster is None else capacity_gpus(cluster, model)
        if capacity is not None and timed:
            part = part.with_columns(load_pct=100 * pl.col("gpus") / max(capacity, 1e-9))
        parts.append(part)
    return pl.concat(parts, how="diagonal") if parts else pl.DataFrame(schema=schema)


def demands(frame: pl.DataFrame) -> dict[str, GpuDemand]:
    """Demand of the rows with GPUs, by the models they accept; those of most GPUs first."""
    rows = frame.filter(pl.col(s.NUM_GPU) > 0).select(
        begin=pl.col(s.SUBMIT_S),
        end=(pl.col(s.SUBMIT_S) + pl.col(s.DURATION_S)) if s.DURATION_S in frame.columns else pl.lit(None, pl.Float64),
        gpus=pl.col(s.NUM_GPU).cast(pl.Float64) * pl.col(s.GPU_MILLI) / 1000,
        model=pl.col(s.GPU_MODELS).list.unique().list.sort().list.join("|") if s.GPU_MODELS in frame.columns else
        pl.lit(None, pl.String),
    )  # fmt: skip
    rows = rows.with_columns(pl.col("model").fill_null(ANY), pl.col("end").fill_null(float("inf")))
    by_model = {str(model): part for (model,), part in rows.group_by("model", maintain_order=True)}
    ordered = sorted(by_model, key=lambda model: (-by_model[model]["gpus"].sum(), model))
    return {
        name: GpuDemand(*(by_model[name][column].to_numpy() for column in ("begin", "end", "gpus"))) for name in ordered
    }


def capacity_gpus(cluster: Cluster, model: str) -> float | None:
    """GPUs of the models of a label, or of all."""
    nodes = pl.DataFrame(pl.from_arrow(cluster.offered.select(["gpu_model", "num_gpu"])))
    named = nodes if model == ANY else nodes.filter(pl.col("gpu_model").is_in(model.split("|")))
    return float(named["num_gpu"].sum())


def _area(times_s: Any, gpus: Any, until_s: Any) -> Any:
    """Sum of gpus x (until - time) over all times before: the integral of a step function that only rises."""
    order = np.argsort(times_s, kind="stable")
    times = times_s[order]
    finite = int(np.searchsorted(times, np.inf))
    times, weights = times[:finite], gpus[order][:finite]
    level = np.concatenate(([0.0], np.cumsum(weights)))
    moment = np.concatenate(([0.0], np.cumsum(weights * times)))
    at = np.searchsorted(times, until_s, side="right")
    return level[at] * until_s - moment[at]

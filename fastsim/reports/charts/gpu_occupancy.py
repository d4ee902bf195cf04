"""Occupancy of GPUs over time: nodes by time, bars of a window, and shares of applications, from placements.

Nodes by time have fragmentation and power beside it, where a run's inputs can be read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from fastsim.engine.audit.audit import unauditable
from fastsim.engine.audit.inputs import evidence
from fastsim.engine.audit.node_series import node_series
from fastsim.engine.result import Result
from fastsim.errors import FastsimError

Floats = npt.NDArray[np.float64]

ROWS, STEPS = 32, 64
"""Most rows and steps of time of a heat map; neighbouring nodes share a row."""
BAR_ROWS, BARS = 24, 300
"""Most rows and bars of a window."""
STAYS = 100_000
"""Most stays of GPUs of a run whose fragmentation and power are drawn by node."""
PARTS = 8
"""Most applications with an area of their own."""
OTHERS = "others"
SHARE_STEPS = 80


class Window(NamedTuple):
    """A span of simulated time in seconds."""

    begin_s: float
    end_s: float


def stays(result: Result) -> pl.DataFrame:
    """``pod_id``, ``node_id``, ``node``, ``gpu``, ``start_s`` and ``end_s``: one row for each GPU of each stay.

    Stays without an end last to the end of the run.
    """
    columns = ("pod_id", "node_id", "node", "gpu_ids", "start_s", "end_s")
    placed = result.recorded_rows("placements").filter(pl.col("start_s").is_not_null()).select(columns)
    frame = placed.explode("gpu_ids", empty_as_null=True, keep_nulls=True).rename({"gpu_ids": "gpu"}).collect()
    return frame.with_columns(pl.col("end_s").fill_null(last_s(result, frame))).filter(
        pl.col("gpu").is_not_null(), pl.col("end_s") > pl.col("start_s")
    )


def last_s(result: Result, frame: pl.DataFrame) -> float:
    """The last recorded moment of the run, seconds."""
    lasts = [frame["start_s"].max(), frame["end_s"].max()]
    lasts.append(result.recorded_rows("timeline").select(pl.col("t_s").max()).collect().item())
    return max((float(last) for last in lasts if isinstance(last, int | float)), default=0.0)


def coverage(
    start_s: Floats, end_s: Floats, row: npt.NDArray[np.int64], rows: int, edges: Floats, weight: Floats | float = 1.0
) -> Floats:
    """Seconds of each step between ``edges`` that spans cover, by row, times their weights."""
    steps = len(edges) - 1
    width = float(edges[1] - edges[0])
    grid = np.zeros((rows, steps + 2))
    for sign, at in ((1.0, start_s), (-1.0, end_s)):
        # A span that begins within a step covers the rest of it and all later steps; its end takes these away.
        place = np.clip((at - edges[0]) / width, 0.0, float(steps))
        step = place.astype(np.int64)
        rest = 1.0 - (place - step)
        np.add.at(grid, (row, step), sign * weight * rest)
        np.add.at(grid, (row, step + 1), sign * weight * (1.0 - rest))
    seconds: Floats = np.cumsum(grid, axis=1)[:, :steps] * width
    return seconds


def states(result: Result, frame: pl.DataFrame) -> pl.DataFrame | None:
    """Fragmentation and power of nodes as `node_series` has them; None if inputs are gone or do not show them."""
    if len(frame) > STAYS:
        return None
    try:
        run = evidence(result)
    except FastsimError:  # objects in memory, files that have gone or changed: the other charts need none of them
        return None
    return None if unauditable(run) or run.changing else node_series(run)


def heat(result: Result, frame: pl.DataFrame, scale: float, series: pl.DataFrame | None = None) -> pl.DataFrame:
    """``low``/``high`` positions, ``step`` of time, ``x``/``x2`` in units of ``scale``, and means of a node.

    These are ``y``, GPUs in use, and of ``series`` ``frag``, GPUs of no use to typical pods, and ``power``, watts; null
    without a series, or where all is 0.
    """
    edges = np.linspace(frame["start_s"].to_numpy().min(), last_s(result, frame), STEPS + 1)
    nodes = max(int(result.provenance.get("cluster", {}).get("nodes", 0)), int(frame["node_id"].to_numpy().max()) + 1)
    per_row = -(-nodes // ROWS)
    rows = -(-nodes // per_row)
    low = np.arange(rows) * per_row
    high = np.minimum(low + per_row, nodes)
    size = (high - low)[:, None]
    return pl.DataFrame(
        {
            "low": np.repeat(low, STEPS),
            "high": np.repeat(high, STEPS),
            "step": np.tile(np.arange(STEPS), rows),
            "x": np.tile(edges[:-1] / scale, rows),
            "x2": np.tile(edges[1:] / scale, rows),
            "y": (_used(frame, rows, per_row, edges) / size).ravel().round(2) + 0.0,
            "frag": _mean(
                series=series, column="frag_milli", rows=rows, per_row=per_row, edges=edges, size=size, unit=1000.0
            ),
            "power": _mean(
                series=series, column="power_w", rows=rows, per_row=per_row, edges=edges, size=size, unit=1.0
            ),
        }
    ).with_columns(pl.col("x", "x2").round_sig_figs(5))


def _used(frame: pl.DataFrame, rows: int, per_row: int, edges: Floats) -> Floats:
    """GPUs in use by row and step, summed over the nodes of a row."""
    devices = frame.select("node_id", "gpu").unique(maintain_order=True).with_row_index("row")
    numbered = frame.join(devices, on=["node_id", "gpu"], how="left", maintain_order="left")
    row = numbered["row"].to_numpy().astype(np.int64)
    used = coverage(numbered["start_s"].to_numpy(), numbered["end_s"].to_numpy(), row, len(devices), edges)
    # Pods that share a GPU use it once.
    used = np.minimum(used / float(edges[1] - edges[0]), 1.0)
    summed = np.zeros((rows, STEPS))
    np.add.at(summed, devices["node_id"].to_numpy() // per_row, used)
    return summed


def _mean(
    series: pl.DataFrame | None,
    column: str,
    rows: int,
    per_row: int,
    edges: Floats,
    size: npt.NDArray[Any],
    unit: float,
) -> pl.Series:
    """The mean of a column of states over steps and nodes of a row, in thousandths of it where it is small."""
    if series is None or not series[column].to_numpy().any():
        return pl.Series(values=[None] * (rows * STEPS), dtype=pl.Float64)
    spans = (series["begin_s"].to_numpy(), series["end_s"].to_numpy(), series["node_id"].to_numpy() // per_row)
    summed = coverage(*spans, rows, edges, series[column].to_numpy() / unit) / float(edges[1] - edges[0])
    return pl.Series((summed / size).ravel().round(2) + 0.0)


def bars(frame: pl.DataFrame, window: Window | None = None) -> pl.DataFrame:
    """``row`` (node and GPU), ``pod``, ``x``, ``x2`` (s) and ``shade`` of stays in a window: the first GPUs and bars.

    Without a window, from the beginning until there are enough bars.
    """
    if window is not None:
        frame = frame.filter(pl.col("end_s") > window.begin_s, pl.col("start_s") < window.end_s)
    rows = frame.select("node_id", "gpu").unique().sort("node_id", "gpu").head(BAR_ROWS)
    spans = frame.join(rows, on=["node_id", "gpu"]).sort("start_s", "node_id", "gpu", "pod_id").head(BARS)
    if window is not None:
        spans = spans.with_columns(pl.col("start_s").clip(window.begin_s), pl.col("end_s").clip(None, window.end_s))
    elif len(spans) == BARS:
        complete_s = float(spans["start_s"].to_numpy().max())  # bars that begin later are incomplete
        spans = spans.with_columns(pl.col("end_s").clip(None, complete_s))
    name = pl.format("{} · {}", pl.col("node").fill_null(pl.col("node_id").cast(pl.String)), "gpu")
    return spans.filter(pl.col("end_s") > pl.col("start_s")).sort("node_id", "gpu", "start_s").select(
        name.alias("row"), pl.col("pod_id").alias("pod"),
        pl.col("start_s").alias("x"), pl.col("end_s").alias("x2"),
        (pl.col("pod_id") % 10).alias("shade"),
    )  # fmt: skip


def held_s(result: Result, frame: pl.DataFrame) -> pl.DataFrame | None:
    """``pod_id``, ``part`` and ``held_s`` of each stay: application and seconds; None if jobs have no applications."""
    if "workload" not in result.recorded_rows("jobs").collect_schema():
        return None
    applications = result.recorded_rows("jobs").select("pod_id", pl.col("workload").alias("part")).collect()
    labelled = frame.join(applications, on="pod_id", how="left", maintain_order="left")
    return labelled.with_columns(pl.col("part").fill_null("?"), (pl.col("end_s") - pl.col("start_s")).alias("held_s"))


def leading(frames: Sequence[pl.DataFrame]) -> list[str]:
    """The applications with areas of their own: all, or those with most GPU time and ``others``."""
    ranked = pl.concat([frame.select("part", "held_s") for frame in frames]).group_by("part", maintain_order=True).sum()
    parts: list[str] = ranked.sort("held_s", "part", descending=[True, False])["part"].to_list()
    return parts if len(parts) <= PARTS else [*parts[: PARTS - 1], OTHERS]


def shares(held: pl.DataFrame, parts: Sequence[str], scale: float) -> pl.DataFrame:
    """``x``, ``part`` and ``y``: GPUs held by the jobs of each application, mean over steps of time."""
    number = {part: place for place, part in enumerate(parts)}
    row = np.array([number.get(part, len(parts) - 1) for part in held["part"]], np.int64)
    edges = np.linspace(held["start_s"].to_numpy().min(), held["end_s"].to_numpy().max(), SHARE_STEPS + 1)
    used = coverage(held["start_s"].to_numpy(), held["end_s"].to_numpy(), row, len(parts), edges)
    used /= float(edges[1] - edges[0])
    x = pl.Series("x", edges[1:] / scale).round_sig_figs(5)
    return pl.concat(
        pl.DataFrame({"x": x, "y": used[place]}).select("x", pl.lit(part).alias("part"), pl.col("y").round(3) + 0.0)
        for place, part in enumerate(parts)
    )

"""Differences between a run of ours and one of an original: figures, completion times of jobs, states after events.

A value is equal if it is off by half a unit of the last printed digit at most, and by the given part of the original's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fastsim.engine.originals import adaptive_log, gavel, simon, synergy
from fastsim.engine.originals.original_run import OriginalRun, Printed
from fastsim.engine.result import Result
from fastsim.errors import InputError, ScenarioError, suggestion
from fastsim.foundation.option_texts import named, parted
from fastsim.scenario.round_texts import window_from

SYSTEMS: Mapping[str, Callable[[Path, str | None], OriginalRun]] = {
    "fgd": simon.read, "pwr": simon.read, "gavel": gavel.read, "synergy": synergy.read, "sia": adaptive_log.read,
    "pollux": adaptive_log.read,
}  # fmt: skip
"""Readers by system."""
SUMS = 1e-9
"""Relative part by which two sums of the same numbers may differ: their order is not the same."""
SCHEMA = {
    "figure": pl.String, "of": pl.String, "ours": pl.Float64, "original": pl.Float64, "difference": pl.Float64,
    "allowed": pl.Float64, "equal": pl.Boolean,
}  # fmt: skip


RUN_NAME = "run=NAME after the question mark"


def original_from(text: str) -> OriginalRun:
    """A run from ``SYSTEM:FILE`` or, of a file of several, ``SYSTEM:FILE?run=NAME``."""
    system, colon, rest = text.partition(":")
    if not colon or system not in SYSTEMS:
        expected = f"SYSTEM:FILE with one of {', '.join(SYSTEMS)}"
        raise ScenarioError("--original", repr(text), expected, suggestion(system, SYSTEMS))
    place, words = parted(rest)
    options = named(words, "--original", RUN_NAME)
    if options.keys() - {"run"}:
        raise ScenarioError("--original", repr("&".join(words)), RUN_NAME)
    return SYSTEMS[system](Path(place), options.get("run"))


def differences(result: Result, original: OriginalRun, tolerance: float = 0.0) -> pl.DataFrame:
    """A row for each figure of both, job and quantity of the events; ``of`` is the job, or the event that is furthest.

    ``tolerance`` is a part of the original's value. ``allowed`` is what the values may be apart.
    """
    rows = [*_figures(result, original), *_jobs(result, original), *_events(result, original)]
    if not rows:
        raise InputError(original.source, "no figure that the run has, too", "a run of the same kind")
    frame = pl.DataFrame(rows, schema={name: kind for name, kind in SCHEMA.items() if name != "equal"}, orient="row")
    largest = pl.max_horizontal(pl.col("ours").abs(), pl.col("original").abs()).fill_null(0.0)
    allowed = pl.col("allowed") + tolerance * pl.col("original").abs() + SUMS * largest
    frame = frame.with_columns(allowed=allowed)
    return frame.with_columns(equal=(pl.col("difference").abs() <= pl.col("allowed")).fill_null(False))


def counts(rows: pl.DataFrame) -> pl.DataFrame:
    """A row for each figure: how many values were compared and are equal, and the one that is furthest away."""
    furthest = (pl.col("difference").abs() - pl.col("allowed")).fill_null(float("inf")).arg_max()
    return rows.group_by("figure", maintain_order=True).agg(
        pl.len().alias("values"), pl.col("equal").sum().alias("same"),
        *(pl.col(name).get(furthest) for name in ("of", "ours", "original", "difference")),
    )  # fmt: skip


Row = tuple[str, str | None, float | None, float | None, float | None, float]


def _row(figure: str, of: str | None, ours: float | None, original: Printed) -> Row:
    difference = None if ours is None else ours - original.value
    return figure, of, ours, original.value, difference, original.half


def _figures(result: Result, original: OriginalRun) -> Iterator[Row]:
    summary = result.summary.row(0, named=True)
    for name, value in original.figures.items():
        ours = OURS[name](result) if name in OURS else summary.get(name)
        if ours is not None or name in summary:
            yield _row(name, None, None if ours is None else float(ours), value)


def _jobs(result: Result, original: OriginalRun) -> Iterator[Row]:
    if not original.jobs:
        return
    jobs = result.jobs
    names = pl.coalesce(pl.col("native_id"), pl.col("pod_id").cast(pl.String)).alias("name")
    for quantity, values in original.jobs.items():
        if quantity not in jobs.columns or not values:
            continue
        if quantity == "jct_s":
            yield _row("jobs", None, float(len(counted(result))), Printed(float(len(values))))
        ours = dict(jobs.select(names, pl.col(quantity).cast(pl.Float64)).iter_rows())
        yield from (_row(quantity, job, ours.get(job), value) for job, value in values.items())


def _events(result: Result, original: OriginalRun) -> Iterator[Row]:
    theirs = original.events
    if not theirs.width:
        return
    ours = _states(result)
    yield _row("events", None, float(len(ours)), Printed(float(len(theirs))))
    both = min(len(ours), len(theirs))
    for name in theirs.columns if both else ():
        our_values, their_values = (np.asarray(frame[name].head(both), np.float64) for frame in (ours, theirs))
        worst = int(np.argmax(np.abs(our_values - their_values)))
        yield _row(
            name, f"event {worst}", float(our_values[worst]), Printed(float(their_values[worst]), simon.HALVES[name])
        )


def _states(result: Result) -> pl.DataFrame:
    """The state after each pod that came or went."""
    timeline = result.timeline.filter(pl.col("event").cast(pl.String) != "sample")
    free = pl.sum_horizontal("frag_milli", "q3_satisfied")
    return timeline.with_columns(
        frag_ratio_pct=100 * pl.col("frag_milli") / free,
        q124_ratio_pct=100 * pl.sum_horizontal("q1_lack_both", "q2_lack_gpu", "q4_lack_cpu") / free,
    )


def counted(result: Result) -> pl.DataFrame:
    """Complete jobs that count: those of the window."""
    fields = result.provenance.get("scenario") or {}
    first, last = window_from(fields.get("window")) or (0, 1 << 62)
    return result.jobs.filter(pl.col("jct_s").is_not_null(), pl.col("pod_id").is_between(first, last, closed="left"))


def _mean_of_weight(weight: float) -> Callable[[Result], Any]:
    return lambda result: counted(result).filter(pl.col("weight") == weight)["jct_s"].mean()


OURS: Mapping[str, Callable[[Result], Any]] = {
    "end_s": lambda result: result.summary["makespan_s"][0] + (result.jobs["submit_s"].min() or 0.0),
    "jct_low_priority_s": _mean_of_weight(1.0),
    "jct_high_priority_s": _mean_of_weight(5.0),
    "jct_p999_s": lambda result: counted(result)["jct_s"].quantile(0.999, "linear"),
    "job_rounds": lambda result: result.summary["contention_mean"][0] * result.summary["rounds"][0],
    "jct_p99_rank_s": lambda result: adaptive_log.rank_p99(counted(result)["jct_s"]),
}
"""Figures that are no column of our summary; ``job_rounds`` are the active jobs of all rounds."""

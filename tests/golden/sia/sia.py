"""The recorded answers of the Sia simulator's functions, as ours. Nothing here names an application or a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from itertools import starmap
from pathlib import Path
from typing import Any

import polars as pl

from fastsim.performance.applications.application import Application
from fastsim.performance.applications.family import Applications
from fastsim.performance.applications.step_times import StepRow, StepTimes
from fastsim.performance.applications.training_curve import EpochRow, TrainingCurve
from fastsim.performance.goodput import Goodput, Noise, Perf
from tests.conftest import SHARED

SIA = SHARED / "golden/sia"
KINDS = ("placements", "scalability", "validation")
"""Tables of the recorded applications."""
MODEL = [*Perf._fields, "grad_sqr", "grad_var", "init_bsz"]
"""Columns that make a goodput model."""


def recorded(path: Path) -> pl.DataFrame:
    """A recorded table, whichever format it has."""
    if path.suffix == ".csv":
        return pl.read_csv(path, infer_schema_length=None)
    return pl.read_ndjson(path, infer_schema_length=None) if path.suffix == ".jsonl" else pl.read_parquet(path)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file with one on each line."""
    with path.open(encoding="utf-8") as text:
        yield from map(json.loads, text)


def models(rows: pl.DataFrame, *more: str) -> Iterator[tuple[Goodput, tuple[Any, ...], pl.DataFrame]]:
    """The goodput models of recorded rows: each with the values of the columns ``more`` and the rows it stands for."""
    for key, part in rows.group_by([*MODEL, *more], maintain_order=True):
        perf, noise = Perf(*key[:7]), Noise(*key[7:10])
        yield Goodput(perf, noise), key[10:], part


@cache
def golden_applications() -> Applications:
    """The recorded applications on every GPU model that the constants name."""
    constants = recorded(SIA / "functions/app_constants.csv")
    places, scale, epochs = (recorded(SIA / f"input/app_{kind}.parquet") for kind in KINDS)
    found = {}
    for (app,), rows in constants.group_by(["app"], maintain_order=True):
        curve = TrainingCurve(app, starmap(EpochRow, epochs.filter(app=app).drop("app").iter_rows()))
        steps = {}
        for row in rows.iter_rows(named=True):
            here = {"app": app, "gpu_type": row["gpu_type"]}
            measured = [
                StepRow(digits, len(digits), sum(map(int, digits)), *times)
                for _, digits, *times in places.filter(**here).drop("app", "gpu_type").iter_rows()
            ]
            measured += [StepRow(None, *at) for _, *at in scale.filter(**here).drop("app", "gpu_type").iter_rows()]
            # The original says for two applications what a GPU takes; elsewhere it looks at the measurements.
            high = row["max_local_bsz"] if app == "gpt_pmp" or row["gpu_type"] == "rtx" else None
            steps[row["gpu_type"]] = StepTimes(
                f"{app} on {row['gpu_type']}", measured, high=high, stages=row["num_stages"]
            )
        found[app] = Application(app, curve, steps, restart_s=rows["rescale_time"][0])
    return Applications(found)

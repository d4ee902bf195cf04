"""Files of the Sia and Pollux experiments in a folder: lists of jobs, and applications.

Lists of a trace are in a folder of its name (``philly``, ``saturn``, ``newtrace``, ``scale/rate_10``), those of Pollux
are files ``workload-N.csv``; both may be in ``workloads``, as in the published artifacts. Applications are in
``traces``, one folder each, or in a table ``applications.parquet`` that ``fastsim import sia`` wrote.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from fastsim.errors import InputError
from fastsim.performance.applications import sia_folders
from fastsim.performance.applications.application import Application
from fastsim.performance.applications.family import Applications
from fastsim.performance.applications.step_times import StepRow, StepTimes
from fastsim.performance.applications.training_curve import EpochRow, TrainingCurve

TRACES = ("philly", "saturn", "newtrace")
"""Folders of lists in the published artifact; saturn is Helios."""
LISTS = (Path("data/sia/native"), Path("workloads"), Path())
"""Places of the folders of lists."""
ONE_TABLE = Path("data/pollux/workloads.parquet")
"""Pollux's lists in one table; the column ``NUMBER`` numbers them."""
NUMBER = "_workload"
FIXED = ("ncf",)
"""Applications whose batch size Pollux's simulator does not tune."""
RECORDED = Path("golden/sia/input")
"""Measurements as three tables: app_placements, app_scalability and app_validation."""


def job_lists(data: Path, trace: str, scratch: Path | None = None, fixed: tuple[str, int] = ("", 0)) -> list[str]:
    """The lists of a trace, as texts of workloads.

    Lists of one table, and those in which a per cent of the jobs, drawn, is of another category (``fixed``), are
    written to ``scratch`` if given.
    """
    folders = [data / place / name for place in LISTS for name in (trace, trace.replace("_", "/", 1))]
    paths = next((found for folder in folders if (found := sorted(folder.glob("*.csv*")))), [])
    category, part = fixed
    if paths and not part:
        return [f"sia:{path}" for path in paths]
    tables = [(path.name.removesuffix(".gz"), pl.read_csv(path)) for path in paths] or list(_one_table(data, trace))
    texts = []
    for number, (name, table) in enumerate(tables):
        path = Path(f"{trace}-{name}") if scratch is None else scratch / f"{trace}-{category}-{part}-{name}"
        if scratch is not None:
            order = np.random.default_rng(number).permutation(len(table))  # the same jobs in every larger part
            drawn = pl.Series(order < round(len(table) * part / 100))
            table.with_columns(category=pl.when(drawn).then(pl.lit(category)).otherwise(pl.lit("adaptive"))).write_csv(
                path
            )
        texts.append(f"sia:{path}")
    return texts


def _one_table(data: Path, trace: str) -> Iterator[tuple[str, pl.DataFrame]]:
    """Names of files and lists of a trace, from the one table that holds them."""
    path = data / LISTS[0].parent / f"workloads_{trace}.parquet"
    if path.is_file():
        for (number,), part in sorted(pl.read_parquet(path).partition_by(NUMBER, as_dict=True).items()):
            yield f"workload-{number}.csv", part.drop(NUMBER)


def pollux_lists(data: Path, load: float = 1.0, scratch: Path | None = None) -> dict[int, str]:
    """Pollux's lists of a relative load by number, as texts of workloads; they are written to ``scratch`` if given.

    Jobs of ncf keep their batch size, as in the published program.
    """
    lists = {}
    for number, part in _pollux_tables(data, load):
        path = Path(f"pollux-{load:g}-{number}.csv") if scratch is None else scratch / f"pollux-{load:g}-{number}.csv"
        if scratch is not None:
            fixed = pl.when(pl.col("application").is_in(FIXED)).then(pl.lit("scale-gpus")).otherwise(pl.lit("adaptive"))
            (part if "category" in part.columns else part.with_columns(category=fixed)).write_csv(path)
        lists[number] = f"sia:{path}"
    return lists


def _pollux_tables(data: Path, load: float) -> Iterator[tuple[int, pl.DataFrame]]:
    table = data / ONE_TABLE
    if table.is_file() and load == 1.0:
        for (number,), part in sorted(pl.read_parquet(table).partition_by(NUMBER, as_dict=True).items()):
            yield int(number), part.drop(NUMBER)
        return
    places = LISTS if load == 1.0 else [place.with_name(f"{place.name}-{load}") for place in LISTS if place.name]
    files = next((paths for place in places if (paths := sorted((data / place).glob("workload-*.csv*")))), [])
    for path in files:
        match = re.match(r"workload-(\d+)\.", path.name)
        if match is not None:
            yield int(match[1]), pl.read_csv(path, infer_schema_length=None)


def applications_file(data: Path, scratch: Path, pollux: bool = False) -> str | None:
    """Path of a table of the folder's applications, written to ``scratch`` if need be; None without applications.

    ``pollux``: with the constants of Pollux's simulator (:func:`sia_folders.as_in_pollux`).
    """
    table = data / "applications.parquet"
    if table.is_file() and not pollux:
        return os.fspath(table)
    applications = Applications.from_parquet(table) if table.is_file() else _applications(data)
    if applications is None:
        return None
    path = scratch / f"applications{'-pollux' if pollux else ''}.parquet"
    (sia_folders.as_in_pollux(applications) if pollux else applications).to_parquet(path)
    return os.fspath(path)


def _applications(data: Path) -> Applications | None:
    folder = data / "traces"
    if folder.is_dir():
        of_sia = any(folder.glob("*/placements-*.csv"))
        return sia_folders.import_sia(folder) if of_sia else sia_folders.import_pollux(folder)
    return _recorded(data / RECORDED) if (data / RECORDED / "app_validation.parquet").is_file() else None


def _recorded(folder: Path) -> Applications:
    """Applications from tables of measurements and the constants of the original programs."""
    try:
        places, scale, epochs = (
            pl.read_parquet(folder / f"app_{kind}.parquet").sort("app", "row")
            for kind in ("placements", "scalability", "validation")
        )
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(str(folder), str(error), "tables app_placements, app_scalability, app_validation") from None
    rows = epochs.select("app", "batch_size", "row", "progress", "iteration", "metric", "grad_sqr", "grad_var")
    applications = {}
    for (name,), part in rows.group_by("app", maintain_order=True):
        curve = TrainingCurve(str(name), (EpochRow(*row) for row in part.drop("app").sort("batch_size").iter_rows()))
        applications[str(name)] = _application(str(name), curve, places.filter(app=name), scale.filter(app=name))
    return Applications(applications, str(folder))


def _application(name: str, curve: TrainingCurve, places: pl.DataFrame, scale: pl.DataFrame) -> Application:
    steps = {}
    for machine in places["gpu_type"].unique(maintain_order=True):
        if machine == "default":  # Pollux's files, which Sia's folders have, too
            continue
        key = name, machine
        rows = list(_steps(places.filter(gpu_type=machine), scale.filter(gpu_type=machine)))
        high, stages = sia_folders.HIGH.get(key), sia_folders.STAGES.get(key, 1)
        steps[machine] = StepTimes(f"{name} on {machine}", rows, high=high, stages=stages)
    usual = sia_folders.USUAL_RESTART_S
    return Application(
        name=name,
        curve=curve,
        steps=steps,
        restart_s=sia_folders.RESTART_S.get(name, usual),
        believed_restart_s=sia_folders.ESTIMATED_RESTART_S.get(name, usual),
        slowdown=sia_folders.SLOWDOWN.get(name, 1.0),
    )


def _steps(places: pl.DataFrame, scale: pl.DataFrame) -> Iterator[StepRow]:
    times = ("local_bsz", "step_time", "sync_time")
    for digits, *row in places.select("placement", *times).iter_rows():
        yield StepRow(digits, len(digits), sum(map(int, digits)), *row)
    for nodes, gpus, *row in scale.select("num_nodes", "num_replicas", *times).iter_rows():
        yield StepRow(None, nodes, gpus, *row)

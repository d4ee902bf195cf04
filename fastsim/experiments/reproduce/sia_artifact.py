"""Files of the Sia and Pollux experiments in a folder: lists of jobs, and applications.

Lists of a trace are in a folder of its name (``philly``, ``saturn``, ``newtrace``), those of Pollux are files
``workload-N.csv``; both may be in ``workloads``, as in the published artifacts. Applications are in ``traces``, one
folder each, or in a table ``applications.parquet`` that ``fastsim import sia`` wrote.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from fastsim.errors import InputError
from fastsim.performance.applications import sia_folders
from fastsim.performance.applications.application import Application, Applications
from fastsim.performance.applications.step_times import StepRow, StepTimes
from fastsim.performance.applications.training_curve import EpochRow, TrainingCurve

TRACES = ("philly", "saturn", "newtrace")
"""Folders of lists in the published artifact; saturn is Helios."""
LISTS = (Path("data/sia/native"), Path("workloads"), Path())
"""Places of the folders of lists."""
ONE_TABLE = Path("data/pollux/workloads.parquet")
"""Pollux's lists in one table; the column `_workload` numbers them."""
RECORDED = Path("golden/sia/input")
"""Measurements as three tables: app_placements, app_scalability and app_validation."""


def job_lists(data: Path, trace: str) -> list[str]:
    """The lists of a trace, as texts of workloads."""
    for place in LISTS:
        paths = sorted((data / place / trace).glob("*.csv*"))
        if paths:
            return [f"sia:{path}" for path in paths]
    return []


def pollux_lists(data: Path, scratch: Path | None = None) -> list[str]:
    """Pollux's lists, as texts of workloads; lists of one table are written to ``scratch`` if that is given."""
    table = data / ONE_TABLE
    if not table.is_file():
        files = next((paths for place in LISTS if (paths := sorted((data / place).glob("workload-*.csv*")))), [])
        return [f"sia:{path}" for path in files]
    parts = pl.read_parquet(table).partition_by("_workload", as_dict=True, include_key=False)
    workloads = []
    for (number,), part in sorted(parts.items()):
        path = Path(f"pollux-{number}.csv") if scratch is None else scratch / f"pollux-{number}.csv"
        if scratch is not None:
            part.write_csv(path)
        workloads.append(f"sia:{path}")
    return workloads


def applications_file(data: Path, scratch: Path) -> str | None:
    """Path of a table of the folder's applications, written to ``scratch`` if need be; None without applications."""
    table = data / "applications.parquet"
    if table.is_file():
        return os.fspath(table)
    applications = _applications(data)
    if applications is None:
        return None
    path = scratch / "applications.parquet"
    applications.to_parquet(path)
    return os.fspath(path)


def _applications(data: Path) -> Applications | None:
    folder = data / "traces"
    if folder.is_dir():
        applications = sia_folders.import_sia(folder)
        return applications if applications.gpu_models else sia_folders.import_pollux(folder)
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
        name, curve, steps, sia_folders.RESTART_S.get(name, usual), sia_folders.ESTIMATED_RESTART_S.get(name, usual),
        sia_folders.SLOWDOWN.get(name, 1.0),
    )  # fmt: skip


def _steps(places: pl.DataFrame, scale: pl.DataFrame) -> Iterator[StepRow]:
    times = ("local_bsz", "step_time", "sync_time")
    for digits, *row in places.select("placement", *times).iter_rows():
        yield StepRow(digits, len(digits), sum(map(int, digits)), *row)
    for nodes, gpus, *row in scale.select("num_nodes", "num_replicas", *times).iter_rows():
        yield StepRow(None, nodes, gpus, *row)

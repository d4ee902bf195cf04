"""Importer of the folders in which the simulators of Pollux and Sia keep applications: one folder of CSV files each.

===========================  ====================================================================================
placements-MACHINE.csv       placement (GPUs on each node, in digits), local_bsz, step_time, sync_time
scalability-MACHINE.csv      num_nodes, num_replicas, local_bsz, step_time, sync_time
validation-BATCH.csv         an epoch a line: progress, iteration, metric, grad_sqr, grad_var
===========================  ====================================================================================

Pollux has one kind of machine, so its first two files have no MACHINE. Constants of applications in the
source of the original programs are tables here.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fastsim.errors import InputError
from fastsim.foundation.parquet import one_line
from fastsim.performance.applications.application import Application
from fastsim.performance.applications.family import Applications
from fastsim.performance.applications.step_times import StepRow, StepTimes
from fastsim.performance.applications.training_curve import EpochRow, TrainingCurve

POLLUX_MACHINE = "aws"
"""The kind of machine that Pollux's measurements are of: T4, four on a node."""
RESTART_S = {"cifar10": 50.0, "deepspeech2": 25.0, "bert": 120.0, "yolov3": 80.0, "imagenet": 250.0, "ncf": 15.0}
"""Seconds of a checkpoint and restart, as jobs take them."""
ESTIMATED_RESTART_S = {"cifar10": 30.0, "deepspeech2": 25.0, "bert": 120.0, "yolov3": 45.0, "imagenet": 250.0}
"""Seconds of a checkpoint and restart, as schedulers estimate them."""
USUAL_RESTART_S = 30.0
"""Of applications that the tables above do not name."""
SLOWDOWN = {"cifar10": 1.8, "imagenet": 1.2, "yolov3": 1.2, "bert": 1.2, "deepspeech2": 1.2, "ncf": 1.5}
"""How many times slower jobs are than their measured steps."""
STAGES = {("gpt_pmp", "rtx"): 8, ("gpt_pmp", "dgx-ext"): 2}
"""GPUs of one pipeline, where jobs are made of pipelines."""
HIGH = {("deepspeech2", "rtx"): 57, ("gpt_pmp", "rtx"): 48, ("gpt_pmp", "dgx-ext"): 48}
"""Most samples a GPU takes at once, where that is not the most that was measured."""
POLLUX_HIGH = {"yolov3": 8}
"""Most samples a GPU takes at once in Pollux's simulator, where that is not the most that was measured."""
_STEPS = {"local_bsz": float, "step_time": float, "sync_time": float}
_EPOCHS = {"progress": float, "iteration": float, "metric": float, "grad_sqr": float, "grad_var": float}


def import_sia(folder: str | os.PathLike[str]) -> Applications:
    """All applications of a folder of Sia's simulator, on every kind of machine that has a file."""
    return _family(Path(folder), {})


def import_pollux(folder: str | os.PathLike[str]) -> Applications:
    """All applications of a folder of Pollux's simulator, on its one kind of machine and with its constants."""
    return as_in_pollux(_family(Path(folder), {"": POLLUX_MACHINE}))


def as_in_pollux(applications: Applications) -> Applications:
    """Applications as Pollux's simulator has them, on its one kind of machine.

    Every restart takes the usual time, jobs are as fast as their measured steps, and larger steps than those of
    ``POLLUX_HIGH`` are left out.
    """
    converted = {
        name: Application(name, app.curve, {POLLUX_MACHINE: _small_steps(name, app.on(POLLUX_MACHINE))},
                          USUAL_RESTART_S, USUAL_RESTART_S)
        for name, app in applications.items() if POLLUX_MACHINE in app.steps
    }  # fmt: skip
    return Applications(converted, applications.name)


def _small_steps(name: str, times: StepTimes) -> StepTimes:
    most = POLLUX_HIGH.get(name)
    return times if most is None else StepTimes(times.name, (row for row in times.rows if row.atomic <= most))


def _family(folder: Path, names: dict[str, str]) -> Applications:
    if not folder.is_dir():
        raise InputError(str(folder), "no such folder", "a folder with one folder for each application")
    applications = {}
    for path in sorted(folder.iterdir()):
        if path.is_dir() and (batches := _numbered(path)):
            applications[path.name] = _application(path, batches, names)
    if not applications:
        raise InputError(str(folder), "no application", "folders with validation-BATCH.csv and placements-MACHINE.csv")
    return Applications(applications, str(folder))


def _numbered(folder: Path) -> dict[int, Path]:
    """Files of recorded epochs by batch size."""
    matches = ((re.fullmatch(r"validation-(\d+)\.csv", path.name), path) for path in folder.iterdir())
    return {int(match[1]): path for match, path in matches if match}


def _application(folder: Path, batches: dict[int, Path], names: dict[str, str]) -> Application:
    name = folder.name
    epochs = [
        EpochRow(batch, epoch, *row)
        for batch in sorted(batches)
        for epoch, row in enumerate(_read(batches[batch], _EPOCHS))
    ]
    steps = {}
    for path in sorted(folder.glob("placements*.csv")):
        suffix = path.stem.removeprefix("placements").removeprefix("-")
        if bool(suffix) == bool(names):  # Sia's folders have Pollux's files too
            continue
        machine = names.get(suffix, suffix)
        rows = list(_placed(path)) + list(_scaled(path.with_name(path.name.replace("placements", "scalability"))))
        key = name, machine
        steps[machine] = StepTimes(f"{path}", rows, high=HIGH.get(key), stages=STAGES.get(key, 1))
    return Application(
        name=name,
        curve=TrainingCurve(str(folder), epochs),
        steps=steps,
        restart_s=RESTART_S.get(name, USUAL_RESTART_S),
        believed_restart_s=ESTIMATED_RESTART_S.get(name, USUAL_RESTART_S),
        slowdown=SLOWDOWN.get(name, 1.0),
    )


def _placed(path: Path) -> Iterator[StepRow]:
    for digits, *times in _read(path, {"placement": str, **_STEPS}):
        if not digits.isdigit():
            raise InputError(f"{path}: placement", repr(digits), "digits, the GPUs of each node")
        yield StepRow(digits, len(digits), sum(map(int, digits)), *times)


def _scaled(path: Path) -> Iterator[StepRow]:
    if path.exists():
        for row in _read(path, {"num_nodes": int, "num_replicas": int, **_STEPS}):
            yield StepRow(None, *row)


def _read(path: Path, columns: Mapping[str, Callable[[str], Any]]) -> Iterator[list[Any]]:
    """The named columns of a CSV file, in any order; other columns are ignored."""
    try:
        with path.open(encoding="utf-8", newline="") as text:
            reader = csv.DictReader(text)
            missing = [name for name in columns if name not in (reader.fieldnames or ())]
            if missing:
                raise InputError(
                    f"{path}:1", f"columns {', '.join(reader.fieldnames or ())}", f"{missing[0]} among them"
                )
            for row in reader:
                yield [_value(f"{path}:{reader.line_num}: {name}", row[name], kind) for name, kind in columns.items()]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(str(path), one_line(error), "a readable CSV file") from error


def _value(where: str, text: str | None, kind: Callable[[str], Any]) -> Any:
    try:
        return kind(text or "")
    except ValueError:
        raise InputError(where, repr(text), f"a value of type {getattr(kind, '__name__', kind)}") from None

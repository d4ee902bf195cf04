"""Readings of GPUs with changed lines: OpenMetrics text, dumps, and answers of Prometheus."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from fastsim.telemetry.exporter import Pace, Record
from fastsim.telemetry.metric_names import by_name
from fastsim.telemetry.openmetrics import read_files
from fastsim.telemetry.prometheus import saved_samples
from fastsim.telemetry.readings_table import table_of
from tests.fuzz import mutation, trial
from tests.fuzz.trial import Trial

_LABELS = 'gpu="0",UUID="GPU-1",modelName="T4",Hostname="n1",pod="p",namespace="ns"'
TEXTS = (
    f"# HELP DCGM_FI_DEV_GPU_UTIL x\n# TYPE DCGM_FI_DEV_GPU_UTIL gauge\nDCGM_FI_DEV_GPU_UTIL{{{_LABELS}}} 97\n"
    f"DCGM_FI_DEV_POWER_USAGE{{{_LABELS}}} 61.5\nother_total 5\n",
    f"# TYPE DCGM_FI_DEV_POWER_USAGE gauge\nDCGM_FI_DEV_POWER_USAGE{{{_LABELS}}} 61.5 1700000000.000\n"
    f"DCGM_FI_DEV_POWER_USAGE{{{_LABELS}}} 62 1700000001.500\nDCGM_FI_DEV_FB_USED{{{_LABELS}}} 5 1700000000\n# EOF\n",
    f'{{__name__="DCGM_FI_DEV_GPU_UTIL",{_LABELS}}} 55 1700000000000\n'
    f'{{__name__="DCGM_FI_DEV_GPU_UTIL",{_LABELS}}} 56 1700000001000\n',
    f'{{"DCGM_FI_DEV_GPU_UTIL",{_LABELS}}} 55 1700000000000 # {{trace_id="7"}} 1 1.5\n'
    f'DCGM_FI_DEV_FB_USED{{{_LABELS}}} 56 1700000001000\nother{{le="+Inf"}} 7 1700000001000\n',
)
_METRIC = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "gpu": "0", "UUID": "GPU-1", "Hostname": "n1", "modelName": "T4"}
ANSWERS: tuple[Any, ...] = (
    {
        "status": "success",
        "data": {
            "resultType": "matrix",
            "result": [
                {"metric": _METRIC, "values": [[1700000000, "97"], [1700000001.5, "0.5"]]},
                {"metric": {**_METRIC, "__name__": "DCGM_FI_DEV_POWER_USAGE"}, "values": [[1700000000, "61.5"]]},
            ],
        },
    },
    {
        "status": "success",
        "data": {"resultType": "vector", "result": [{"metric": _METRIC, "value": [1700000000, "1"]}]},
    },
    {"status": "error", "errorType": "bad_data", "error": "parse error at char 5"},
)


def _text(draw: random.Random) -> bytes:
    return mutation.raw(mutation.text(TEXTS, draw), draw)


def _answer(draw: random.Random) -> bytes:
    return mutation.raw(mutation.json_text(draw.choice(ANSWERS), draw), draw)


def prepare(case: Callable[[random.Random], bytes], read: Callable[[Path], Any]) -> Trial:
    """A trial that reads a file of readings and serves them."""
    path = trial.folder("readings") / "gpu.om"

    def used(data: bytes) -> None:
        path.write_bytes(data)
        table = read(path)
        trial.require_sound(table, ("value",))
        if table.num_rows:
            record = Record(table)
            record.text(Pace(record.length_s).place_s).encode()

    return trial.of(case, used)


def _openmetrics(path: Path) -> Any:
    return read_files(path, unknown=Counter())


def _prometheus(path: Path) -> Any:
    return table_of(saved_samples(path), by_name(), Counter(), str(path))


TARGETS: dict[str, Callable[[], Trial]] = {
    "OpenMetrics": partial(prepare, _text, _openmetrics),
    "Prometheus answers": partial(prepare, _answer, _prometheus),
}
"""Trials by name."""

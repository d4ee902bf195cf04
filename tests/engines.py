"""A small run of every engine, by the name that definitions of metrics have for it."""

from __future__ import annotations

from typing import Any

import fastsim as fs

RUNS: dict[str, dict[str, Any]] = {
    "pods": {
        "cluster": "openb:20", "workload": "synth:openb?pods=60&seed=1", "policy": "fgd", "queue": "fifo",
        "deschedule": ("frag_one_pod:0.5",),
    },
    "shares": {
        "cluster": "gavel:2:2:2", "policy": "max_min_fairness(mode=base)",
        "workload": "synth:gavel?jobs=8&rate_per_hour=2&priorities=true&seed=3", "round_s": 3600.0,
    },
    "orders": {
        "cluster": "gavel:4:4:4", "workload": "synth:gavel?jobs=8&rate_per_hour=2&priorities=true&seed=3",
        "policy": "srtf",
    },
    "adaptive": {
        "cluster": "sia:1:0:1", "workload": "synth:sia?jobs=4", "policy": "pollux(generations=10)", "round_s": 300.0,
    },
    "monitored": {
        "cluster": "uniform?nodes=1&gpu=T4&gpus=2", "workload": "synth:detectors?jobs=4", "policy": "monitored",
    },
}  # fmt: skip
"""Scenarios by engine; their rounds are longer than usual, so that there are few decisions and rows."""


def small_run(engine: str, **options: Any) -> fs.Result:
    """A run of this engine in less than a second, with further options."""
    return fs.simulate(**RUNS[engine], **options)

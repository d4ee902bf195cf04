"""Runs that cannot begin: the check before a run and the run itself find the same mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fastsim as fs
from fastsim.errors import FastsimError, ScenarioError
from fastsim.experiments.sweep.sweep import Sweep
from fastsim.simulation.uses.inputs import CHECKS, refuse_mismatch
from fastsim.simulation.uses.options import ENGINES_OF_SCENARIOS
from tests.engines import RUNS

PODS = "synth:openb?pods=3"
SIA = "synth:sia?jobs=4"
WIDE = "synth:gavel?jobs=40&multi_gpu=true&rate_per_hour=4"
SMALL = "uniform?nodes=1&gpu=V100M32&gpus=2"
TWO_RTX = "uniform?nodes=1&gpu=rtx&gpus=2&gpu_idle_w=1&gpu_peak_w=2"
MISMATCHES: dict[str, list[tuple[dict[str, Any], str]]] = {
    "pods": [
        ({"cluster": SMALL, "workload": PODS, "policy": "fgd", "profiling": 0.5}, "profiling: found 0.5"),
        ({"cluster": SMALL, "workload": PODS, "policy": "fgd", "prices": "T4=1"}, "prices"),
        ({"cluster": "sia:1:0:1", "workload": SIA, "policy": "fgd"}, "adaptive jobs, which have no durations.*sia and"),
    ],
    "shares": [
        ({"cluster": "gavel:1:1:1", "workload": WIDE, "policy": "max_min_fairness"},
         r"on 8 GPUs, expected at most 1 GPUs of one model; .*--oversized drop.*Workload.fitting\(cluster\) in Python"),
        ({"cluster": "gavel:2:2:2", "workload": SIA, "policy": "max_min_fairness"},
         "found adaptive jobs, such as 'cifar10'.*policies served, sia"),
        ({"cluster": "openb:20", "workload": "synth:openb?pods=5", "policy": "isolated"}, "gpu_milli: found 460"),
        ({"cluster": SMALL, "workload": "synth:gavel?jobs=4", "policy": "fifo"}, "GPU model: found 'V100M32'"),
    ],
    "orders": [
        ({"cluster": "sia:1:0:1", "workload": SIA, "policy": "las"},
         r"policy las: found adaptive jobs, such as 'cifar10'.*; policy served\(order=las\) is for them"),
        ({"cluster": "sia:1:0:1", "workload": SIA, "policy": "fcfs"}, r"policy served\(order=fifo\)"),
        ({"cluster": SMALL, "workload": "synth:detectors?jobs=4", "policy": "las"},
         "found jobs without rates, such as 'detector'.*without a column workload"),
        ({"cluster": "gavel:1:1:1", "workload": WIDE, "policy": "las"}, "expected at most 1 GPUs of one model"),
    ],
    "adaptive": [
        ({"cluster": "gavel:2:2:2", "workload": "synth:gavel?jobs=4", "policy": "pollux"}, "batch_size: found no such"),
        ({"cluster": TWO_RTX, "workload": SIA, "policy": "served"},
         "on 16 GPUs, expected at most 2 GPUs of one model; leave such jobs out"),
        ({"cluster": SMALL, "workload": SIA, "policy": "sia"}, "found GPU models V100M32, expected one of aws"),
    ],
    "monitored": [
        ({"cluster": SMALL, "workload": SIA, "policy": "monitored"}, "adaptive jobs, which have no durations"),
        ({"cluster": SMALL, "workload": "synth:synergy?jobs=8&seed=1", "policy": "monitored"}, "num_gpu: found 2"),
    ],
}  # fmt: skip
"""Scenarios that cannot begin and what is said of them, by engine."""


def test_every_engine_has_a_check_and_mismatches() -> None:
    assert set(CHECKS) == set(ENGINES_OF_SCENARIOS) == set(MISMATCHES)


@pytest.mark.parametrize("engine", MISMATCHES)
def test_the_check_before_a_run_says_what_the_run_says(engine: str) -> None:
    for fields, message in MISMATCHES[engine]:
        with pytest.raises(FastsimError, match=message) as checked:
            refuse_mismatch(fs.Scenario(**fields))
        with pytest.raises(FastsimError) as played:
            fs.simulate(**fields)
        assert (type(checked.value), str(checked.value)) == (type(played.value), str(played.value))


def test_runs_that_can_begin_are_not_refused() -> None:
    for fields in RUNS.values():
        refuse_mismatch(fs.Scenario(**fields))
    never_read: dict[str, Any] = {"cluster": "gavel:1:1:1", "policy": "max_min_fairness", "until_s": 0.0}
    refuse_mismatch(fs.Scenario(**never_read, workload="synth:gavel?jobs=4&seed=1"))
    held: dict[str, Any] = {"cluster": TWO_RTX, "workload": SIA, "policy": "served", "until_s": 60.0}
    refuse_mismatch(fs.Scenario(**held))


def test_a_sweep_lists_the_runs_that_cannot_begin_and_begins_none(tmp_path: Path) -> None:
    keys = {"cluster": "sia:4:4:4", "workload": SIA, "policy": ["las", "srtf", "served"], "seed": [0, 1]}
    sweep = Sweep(keys)
    with pytest.raises(ScenarioError) as refused:
        sweep.check()
    text = str(refused.value)
    assert "found 4 of 6 runs that cannot begin" in text and "policy=las/seed=0 and 1 more: policy las:" in text
    assert "served(order=srtf)" in text and "policy=served" not in text
    with pytest.raises(ScenarioError) as before:
        sweep.run(tmp_path / "runs", on="serial")
    assert str(before.value) == text and not list(tmp_path.iterdir())
    Sweep({**keys, "policy": "served"}).check()

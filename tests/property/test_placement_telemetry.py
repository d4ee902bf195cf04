"""Readings taken from placements after a run are those that it takes as it goes, byte for byte."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import fastsim as fs

CLUSTERS = ("openb:5", "openb:20", "uniform?nodes=3&gpu=T4&gpus=4")
QUEUES = ("drop", "fifo", "fifo_skip", "priority_skip")


def drawn(seed: int) -> dict[str, Any]:
    """A run with a queue, and by chance failures, preemption, descheduling and an end."""
    draw = random.Random(seed)
    run: dict[str, Any] = {
        "cluster": draw.choice(CLUSTERS), "workload": f"synth:openb?pods={draw.choice((30, 80, 160))}&seed={seed}",
        "policy": draw.choice(("fgd", "best_fit", "random")), "queue": draw.choice(QUEUES), "seed": seed,
        "telemetry": draw.choice((600, "120?refresh_s=20:40", 1800)),
    }  # fmt: skip
    further: tuple[dict[str, Any], ...] = (
        {"failures": f"mtbf={draw.choice((3000, 20000))},mttr=500", "on_node_loss": draw.choice(("requeue", "lost"))},
        {"preempt": "priority", "restart_s": draw.choice((0.0, 30.0))},
        {"deschedule": "frag_one_pod:0.3@5000"},
        {"until_s": draw.choice((3000.0, 20000.0))},
    )
    for options in further:
        run |= options if draw.random() < 0.35 else {}
    return run


@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.RunWarning")
@pytest.mark.parametrize("seed", range(10))
def test_readings_of_a_run_with_checkpoints_are_those_of_one_without(seed: int, tmp_path: Path) -> None:
    run = drawn(seed)
    live = fs.simulate(**run, out=tmp_path / "live")
    kept = fs.simulate(**run, out=tmp_path / "run", checkpoint_pods=2, keep_checkpoint=True)
    assert kept.telemetry.equals(live.telemetry) and live.telemetry.height
    assert kept.placements.equals(live.placements) and kept.jobs.equals(live.jobs)
    assert kept.provenance["options"]["telemetry"] == live.provenance["options"]["telemetry"]
    resumed = fs.resume(tmp_path / "run", overwrite=True)
    assert resumed.telemetry.equals(live.telemetry) and resumed.jobs.equals(live.jobs)
    fork = fs.fork(tmp_path / "run", tmp_path / "fork", at_s=1000.0)
    assert fork.telemetry.equals(live.telemetry) and fork.jobs.equals(live.jobs)

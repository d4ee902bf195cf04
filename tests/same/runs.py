"""Runs whose bytes two revisions are compared by: scenarios in texts, and drawn ones."""

from __future__ import annotations

import random
from typing import Any

from tests.engines import RUNS

Run = dict[str, Any]

CARDS = {
    "pods": ("G2", "G3", "P100", "T4", "V100M16", "V100M32"), "shares": ("k80", "p100", "v100"),
    "orders": ("k80", "p100", "v100"), "adaptive": ("aws", "quad", "rtx"), "monitored": ("T4",),
}  # fmt: skip
"""GPU models of each engine's cluster."""
VARIATIONS: dict[str, dict[str, Any]] = {
    "plain": {}, "sample_s": {"sample_s": 900.0}, "until_s": {"until_s": 4000.0}, "carbon": {"carbon": 300.0},
    "telemetry": {"telemetry": 600.0}, "placements": {"record": "placements"}, "summary": {"record": "summary"},
    "restart_s": {"restart_s": 5.0}, "window": {"window": "1:3"}, "quotas": {"quotas": "*:gpu_milli=9000"},
    "failures": {"failures": "mtbf=100000,mttr=1000"}, "compat": {"compat": "whole_steps"}, "ideal": {"ideal": True},
    "round_s": {"round_s": 420.0}, "interference": {"interference": 0.2}, "preempt": {"preempt": "priority"},
    "checkpoint": {"checkpoint_pods": 2}, "end and checkpoint": {"checkpoint_pods": 2, "until_s": 9000.0},
}  # fmt: skip
"""Options by the name of what they try; of an engine that has no such option, the refusal is compared."""
POLICIES = {
    "pods": ("fgd", "best_fit", "0.9*fgd + 0.1*pwr", "dot_product", "random", "gpu_clustering", "gpu_packing"),
    "shares": (
        "max_min_fairness", "max_min_fairness(mode=packed)", "finish_time_fairness", "gandiva", "isolated", "allox",
        "max_sum_throughput", "fifo(mode=packed)",
    ),
    "orders": ("fcfs", "las", "srtf", "las(mechanism=tune)", "srtf(mechanism=greedy)"),
    "adaptive": ("sia", "pollux(generations=5)", "optimus", "rotation"),
    "monitored": ("exclusive", "gpushare", "monitored"),
}  # fmt: skip
SPARSE = {"workload": "synth:gavel?jobs=8&rate_per_hour=0.2&seed=3"}
"""Jobs that a cluster keeps up with: others go on arriving until the jobs of a window are done."""
QUEUES = ("drop", "fifo", "fifo_skip", "priority", "priority_skip", "easy", "conservative")
DRAWN = 24
"""Drawn runs."""


def priced(engine: str) -> Run:
    """Options of a run whose GPUs cost something."""
    return {"prices": {model: 1.5 + place for place, model in enumerate(CARDS[engine])}}


def drawn(number: int) -> Run:
    """A run with a policy, a seed, a queue and a time of samples by chance."""
    draw = random.Random(number)
    engine = draw.choice([*RUNS])
    seed, run = draw.randrange(100), dict(RUNS[engine])
    run["policy"], run["seed"] = draw.choice(POLICIES[engine]), draw.randrange(9)
    if engine == "pods":
        run |= {"workload": f"synth:openb?pods=300&seed={seed}", "queue": draw.choice(QUEUES)}
    elif engine == "orders" and "mechanism" in run["policy"]:
        run |= {"cluster": "synergy:4", "workload": f"synth:synergy?jobs=12&seed={seed}", "rates": "synergy"}
    elif engine in ("shares", "orders"):
        run["workload"] = f"synth:gavel?jobs=14&rate_per_hour=3&seed={seed}"
    elif engine == "adaptive":
        run["workload"] = f"synth:sia?jobs=5&seed={seed}"
    return run | draw.choice(({}, {"sample_s": 1200.0}, {"until_s": 9000.0}, {"checkpoint_pods": 3}))


def all_runs() -> dict[str, Run]:
    """Every run by its name."""
    varied = {f"{engine} {name}": run | options for engine, run in RUNS.items() for name, options in VARIATIONS.items()}
    costs = {f"{engine} prices": run | priced(engine) for engine, run in RUNS.items()}
    late = {engine: run | SPARSE | {"window": "1:3"} for engine, run in RUNS.items() if engine in ("shares", "orders")}
    windows = {f"{engine} window": run for engine, run in late.items()}
    return varied | costs | windows | {f"drawn {number}": drawn(number) for number in range(DRAWN)}

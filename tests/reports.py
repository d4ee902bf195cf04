"""Small runs of every kind for the tests of reports."""

from __future__ import annotations

from functools import cache

import polars as pl

import fastsim as fs


@cache
def filling() -> tuple[fs.Result, ...]:
    """Two policies with two seeds each, until the cluster is full."""
    text = "synth:openb?pods=200&seed={0}&tune=1.3&tune_seed={0}"
    return tuple(
        fs.simulate("openb:20?seed=1", text.format(seed), policy, seed=seed, record="timeline", typical=None)
        for policy in ("fgd", "random")
        for seed in (1, 2)
    )


@cache
def passing() -> fs.Result:
    """Pods that come and go."""
    return fs.simulate("openb:20", "synth:openb?pods=150&seed=1", "best_fit", queue="fifo_skip", record="all")


@cache
def jobs() -> fs.Result:
    """Jobs in rounds."""
    return fs.simulate("gavel:2:2:2", "synth:gavel?jobs=12&rate_per_hour=4&seed=0", "max_min_fairness", record="all")


@cache
def by_hand() -> fs.Result:
    """Two nodes of two GPUs; pods 0 and 1 share a GPU, 2 takes two of them, 3 waits for it."""
    pods = fs.Workload.from_arrow(pl.DataFrame({
        "pod_id": [0, 1, 2, 3], "submit_s": [0.0, 10.0, 20.0, 30.0], "duration_s": [100.0, 40.0, 80.0, 50.0],
        "cpu_milli": [1000] * 4, "memory_mib": [10] * 4, "num_gpu": [1, 1, 2, 2], "gpu_milli": [500, 500, 1000, 1000],
    }))  # fmt: skip
    return fs.simulate("uniform?nodes=2&gpu=T4&gpus=2", pods, "gpu_packing", queue="fifo", record="all")

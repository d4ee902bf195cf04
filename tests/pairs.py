"""A pair of runs that is worked out by hand."""

from __future__ import annotations

import polars as pl

import fastsim as fs
from fastsim.reports.pairs.paired_jobs import PairedJobs, paired_jobs


def by_hand() -> PairedJobs:
    """Three pods on one GPU, first come first served against most important first; tenants a, a, b."""
    pods = pl.DataFrame({
        "submit_s": [0.0, 1.0, 3601.0], "num_gpu": [1, 1, 1], "duration_s": [3700.0, 100.0, 10.0],
        "tenant": ["a", "a", "b"],
    })  # fmt: skip
    ranked = fs.Workload.from_polars(pods.with_columns(priority=pl.Series([0, 0, 9])))
    cluster = fs.Cluster.uniform(nodes=1, gpu="T4", gpus=1)
    first = fs.simulate(cluster, fs.Workload.from_polars(pods), "best_fit", queue="fifo")
    important = fs.simulate(cluster, ranked, "best_fit", queue="priority")
    return paired_jobs(first, important, ("fifo", "priority"))


def by_hand_with_sizes() -> PairedJobs:
    """The same with sizes, and with a pod that has no tenant."""
    pairs = by_hand()
    jobs = pairs.jobs.with_columns(tenant=pl.Series(["a", "a", None]), size=pl.Series([1.0, 0.5, 1.0]))
    return PairedJobs(pairs.names, jobs, pairs.unpaired)

"""Synergy's check value: completion times of jobs 4,000 to 5,000 on 128 GPUs at nine jobs an hour, over seeds.

``python -m bench.synergy_figures`` plays FIFO with fair shares and with tuned ones. The stream of seed 42 is the one
that the original simulator was recorded with. Its authors state 21.88 h (99 %: 156.9 h) for their own sample of
durations, which is not public.
"""

from __future__ import annotations

import statistics
import time

import click

import fastsim as fs

WORKLOAD = "synth:synergy?jobs=9000&rate_per_hour=9&split=20:70:10&log=10000&seed="
ORIGINAL_CPU_S = {"fifo+tune": 364.0}
"""CPU seconds of the original simulator for seed 42, as recorded."""


def scenario(policy: str, seed: int) -> fs.Scenario:
    """The run as a scenario, with the original's behaviour."""
    return fs.Scenario(
        "synergy:16", f"{WORKLOAD}{seed}", policy, window="4000:5000", round_s=300.0, rates="synergy",
        compat="synergy", record="summary",
    )  # fmt: skip


@click.command()
@click.option("--policies", default="fifo+fair,fifo+tune", show_default=True)
@click.option("--seeds", default="42,0,1,2,3,4", show_default=True)
@click.option("--workers", type=int, default=2, show_default=True)
def main(policies: str, seeds: str, workers: int) -> None:
    """Print the table."""
    points = [(policy, int(seed)) for policy in policies.split(",") for seed in seeds.split(",")]
    began = time.perf_counter()
    results = dict(zip(points, fs.simulate_many([scenario(*point) for point in points], workers), strict=True))
    print(f"{len(points)} runs, {time.perf_counter() - began:.1f} s wall")
    print(f"{'policy':12} {'seed':>4} {'mean h':>7} {'99 % h':>7} {'rounds':>7} {'CPU s':>6} {'original':>9}")
    for (policy, seed), result in results.items():
        row, cpu_s = result.summary.row(0, named=True), result.timing["cpu_s"]
        known = ORIGINAL_CPU_S.get(policy) if seed == 42 else None
        told = f"{known:6.0f} s, {known / cpu_s:,.0f} x" if known else ""
        hours = row["jct_mean_s"] / 3600, row["jct_p99_s"] / 3600
        print(f"{policy:12} {seed:4} {hours[0]:7.2f} {hours[1]:7.1f} {row['rounds']:7} {cpu_s:6.2f} {told:>9}")
    for policy in policies.split(","):
        means = [r.summary["jct_mean_s"][0] / 3600 for (name, _), r in results.items() if name == policy]
        print(f"{policy:12} mean of {len(means)} seeds: {statistics.mean(means):.2f} h")


if __name__ == "__main__":
    main()

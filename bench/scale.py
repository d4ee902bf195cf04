"""Whole runs of up to ten million pods, each in a process of its own: pods per CPU second and peak memory.

The workloads have the openb mix of nodes and pods, Poisson arrivals, durations up to two days, offered load 1.0 and a
warm start; they are generated once into a folder and streamed from Parquet, and placements are streamed out.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import fastsim as fs
from bench.conftest import calibration_loop

NODES = {"s1": 1_000, "s3": 10_000, "s4": 100_000}
PODS = {"s1": 1_000_000, "s3": 10_000_000, "s4": 10_000_000}
POLICIES = {"s1": ("fgd", "0.9*fgd + 0.1*pwr", "best_fit"), "s3": ("fgd",), "s4": ("fgd",)}
SEED = 42


def cluster(name: str) -> fs.Cluster:
    """The nodes of a workload: the mix of all openb nodes, types interleaved."""
    return fs.Cluster.scaled("openb-all", nodes=NODES[name])


def written(name: str, pods: int, folder: Path) -> Path:
    """The workload as a Parquet file, generated unless it is there already."""
    path = folder / f"{name}-{pods}.parquet"
    if not path.exists():
        workload = fs.Workload.synth(
            "openb", pods=pods, seed=SEED, arrivals="poisson", load=1.0, cluster=cluster(name), warm_start=True
        )
        workload.write(path)
    return path


def measured(name: str, pods: int, policy: str, folder: Path) -> dict[str, Any]:
    """One run in this process: seconds of the run, CPU of everything in it, peak memory of the process."""
    path = written(name, pods, folder)
    typical = fs.TypicalPods.of(fs.Workload.synth("openb", pods=200_000, seed=SEED))
    calibration_s = shortest_calibration_s()
    with tempfile.TemporaryDirectory(dir=folder) as out:
        result = fs.simulate(
            cluster(name), fs.Workload.scan(path), policy, typical=typical, record="placements", out=f"{out}/run"
        )
        row = result.summary.row(0, named=True)
    calibration_s = (calibration_s + shortest_calibration_s()) / 2
    cpu_s, count = result.timing["cpu_s"], row["pods"]
    return {
        "workload": name, "nodes": NODES[name], "pods": count, "policy": policy, "unplaced": row["pods_unplaced"],
        "wall_s": result.timing["wall_s"], "cpu_s": cpu_s, "pods_per_cpu_s": count / cpu_s,
        "pods_per_loop_s": count / result.timing["loop_s"],
        "pods_per_loop": count / cpu_s * calibration_s,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }  # fmt: skip


def shortest_calibration_s() -> float:
    """CPU seconds of the loop of plain Python that every figure here is also a ratio to, best of three."""
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        calibration_loop()
        best = min(best, time.process_time() - began)
    return best


def main() -> None:
    """Run the chosen workloads and print one row each; with ``--json``, a child's answer to its parent."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("workloads", nargs="*", default=list(NODES), metavar="WORKLOAD", help=", ".join(NODES))
    parser.add_argument("--pods", type=int, help="pods of each workload instead of its own number")
    parser.add_argument("--policy", action="append", help="instead of the workload's own policies")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "fastsim-scale")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = sorted(set(options.workloads) - set(NODES))
    if unknown:
        parser.error(f"found workload {', '.join(unknown)}, expected one of {', '.join(NODES)}")
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.json:
        (name,), (policy,) = options.workloads, options.policy
        print(json.dumps(measured(name, options.pods or PODS[name], policy, options.folder)))
        return
    print("| workload | nodes | pods | policy | pods / CPU s | pods / s of the engine | pods / calibration loop "
          "| wall s | peak MB | unplaced |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in options.workloads:
        pods = options.pods or PODS[name]
        written(name, pods, options.folder)  # outside the measured process
        for policy in options.policy or POLICIES[name]:
            row = json.loads(in_own_process(name, pods, policy, options.folder))
            print(
                f"| {name.upper()} | {row['nodes']:,} | {row['pods']:,} | {policy} | {row['pods_per_cpu_s']:,.0f} "
                f"| {row['pods_per_loop_s']:,.0f} | {row['pods_per_loop']:,.0f} | {row['wall_s']:.1f} "
                f"| {row['peak_rss_mb']:.0f} | {row['unplaced']:,} |",
                flush=True,
            )


def in_own_process(name: str, pods: int, policy: str, folder: Path) -> str:
    """Measurements of one run in a fresh process, so that its peak memory is its own."""
    command = [sys.executable, "-m", "bench.scale", name, "--pods", str(pods), "--policy", policy, "--json"]
    return subprocess.run([*command, "--folder", str(folder)], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()

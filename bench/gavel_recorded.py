"""Runs recorded from Gavel's simulator, played again: CPU seconds of the original and ours.

``FASTSIM_SHARED=DIR python -m bench.gavel_recorded`` plays every run whose CPU time was recorded, policy and solver
included, and takes the shortest of some repeats. Run it from the root of a checkout: the recordings are read as the
golden tests read them.
"""

from __future__ import annotations

import time

import click
import polars as pl

from tests.golden.gavel.gavel import GAVEL
from tests.golden.gavel.gavel_runs import Recorded, runs


def shortest_s(run: Recorded, repeats: int) -> float:
    """CPU seconds of the fastest repeat."""
    found = []
    for _ in range(repeats):
        began = time.process_time()
        run.played(run.plan())
        found.append(time.process_time() - began)
    return min(found)


@click.command()
@click.option("--repeats", type=int, default=5, show_default=True)
def main(repeats: int) -> None:
    """Print the table."""
    known = pl.read_csv(GAVEL / "sim/timing.csv", infer_schema_length=None)
    cpu_s = {(row[known.columns[0]], row["policy"]): row["cpu_s"] for row in known.rows(named=True)}
    print(f"{'run':18} {'policy':40} {'original s':>10} {'ours s':>8} {'times':>6}")
    for run in runs():
        original_s = cpu_s.get((run.row["name"], run.policy))
        if original_s is not None:
            ours_s = shortest_s(run, repeats)
            print(f"{run.row['name']:18} {run.policy:40} {original_s:10.2f} {ours_s:8.4f} {original_s / ours_s:6.0f}")


if __name__ == "__main__":
    main()

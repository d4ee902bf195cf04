"""Verbs that make tables of pods and nodes: import, synth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.group("import")
def import_() -> None:
    """Convert published traces to canonical Parquet."""


@import_.command("openb")
@click.argument("source", metavar="SRC", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, metavar="FILE", type=click.Path(path_type=Path), help="Parquet file.")
@click.option("--nodes", "as_nodes", is_flag=True, help="SRC is a node list, not a pod list.")
@click.option(
    "--drop", multiple=True, metavar="WHAT", help="never_scheduled, cpu_only or zero_duration; again for more."
)
@click.option("--origin", help="First arrival: min = 0 s, keep = the trace's clock.  [default: min]")
@click.option("--duration", help="service, lifetime or none (for ever).  [default: service]")
@click.option("--on-missing-duration", help="If never scheduled: lifetime, null or drop.  [default: lifetime]")
@click.option("--time-scale", type=float, help="Factor on all times.  [default: 1]")
def import_openb(source: Path, output: Path, as_nodes: bool, **options: Any) -> None:
    """Pods or nodes of the openb traces (CSV, CSV.gz or Parquet)."""
    given = {name: value for name, value in options.items() if value not in (None, ())}
    if as_nodes:
        from fastsim.cluster import Cluster

        _refuse(given, "--nodes")
        cluster = Cluster.from_openb(source)
        cluster.to_parquet(output)
        click.echo(f"{output}: {len(cluster):,} nodes")
        return
    from fastsim.workload import Workload

    click.echo(f"{output}: {Workload.from_openb(source, **given).write(output):,} pods")


@click.group()
def synth() -> None:
    """Generate workloads that look like published traces."""


@synth.command("openb")
@click.option("-o", "--output", required=True, metavar="FILE", type=click.Path(path_type=Path), help="Parquet file.")
@click.option("--pods", type=click.IntRange(0), required=True, help="Number of pods.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of every random choice.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any other option of Workload.synth.")
def synth_openb(output: Path, pods: int, seed: int, settings: tuple[str, ...]) -> None:
    """Pods drawn like those of the openb traces."""
    from fastsim import sources

    text = "&".join([f"synth:openb?pods={pods}&seed={seed}", *settings])
    workload, _ = sources.workload_from(text)
    click.echo(f"{output}: {workload.write(output):,} pods")


def _refuse(given: dict[str, Any], flag: str) -> None:
    if given:
        raise click.UsageError(f"--{next(iter(given)).replace('_', '-')} makes no sense with {flag}")

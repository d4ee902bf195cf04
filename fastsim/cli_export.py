"""The verb that hands placements to Kubernetes: export."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import click


@click.command()
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, metavar="FILE", type=click.Path(path_type=Path), help=".yaml or .json.")
@click.option("--at", "at_s", type=float, metavar="S", help="Pods that run after S seconds.  [default: at the end]")
@click.option("--every", is_flag=True, help="All pods that ever ran, with the times of their lives.")
@click.option("--nodes", is_flag=True, help="The nodes, too.")
def export(folder: Path, output: Path, at_s: float | None, every: bool, nodes: bool) -> None:
    """Write the placements of a saved run as Kubernetes objects: pods bound to nodes."""
    from fastsim.errors import ScenarioError
    from fastsim.kubernetes_export import bound_pods, node_objects, saved_run, write_objects

    if every and at_s is not None:
        raise ScenarioError("--every", "both --every and --at", "one of them")
    result, cluster, workload = saved_run(folder)
    pods = bound_pods(result, workload, at_s=at_s, every=every)
    count = write_objects(chain(node_objects(cluster) if nodes else (), pods), output)
    click.echo(f"{output}: {count:,} objects")

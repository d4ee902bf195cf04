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
    """Write the placements of a saved run as Kubernetes objects: pods bound to nodes.

    Objects that the run was made of are written as they were; pods get their nodes and numbers of devices.
    """
    from fastsim.errors import ScenarioError
    from fastsim.reports.kubernetes_export import bound_pods, node_objects, saved_run, write_objects
    from fastsim.reports.kubernetes_originals import originals_of

    if every and at_s is not None:
        raise ScenarioError("--every", "both --every and --at", "one of them")
    result, cluster, workload = saved_run(folder)
    kept = originals_of(result)
    pods = bound_pods(result, workload, at_s=at_s, every=every, originals=kept.pods)
    count = write_objects(chain(node_objects(cluster, kept.nodes) if nodes else (), pods), output)
    click.echo(f"{output}: {count:,} objects")

"""A large dump of a Kubernetes cluster: ``python -m bench.kubernetes_dump big.json``."""

from __future__ import annotations

from pathlib import Path

import click

from fastsim.workload.generators.kubernetes_dump import write_dump


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--nodes", type=int, default=5_000, show_default=True)
@click.option("--pods", type=int, default=100_000, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--full", is_flag=True, help="With conditions, injected volumes and other fields of the API server.")
def main(path: Path, nodes: int, pods: int, seed: int, full: bool) -> None:
    """Write a dump of a cluster to PATH."""
    write_dump(path, nodes, pods, seed, full)
    click.echo(f"{path}: {path.stat().st_size / 1e6:,.1f} MB")


if __name__ == "__main__":
    main()

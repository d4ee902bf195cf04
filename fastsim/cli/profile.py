"""The verb that turns measurements of a job into a table of its sensitivity: profile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from fastsim.cluster.server import Server


@click.group()
def profile() -> None:
    """Turn measurements of a job into what the simulator asks for."""


@profile.command("synergy")
@click.argument("source", metavar="CSV", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", required=True, metavar="FILE", type=click.Path(path_type=Path),
    help="Table of sensitivities: Parquet, or .csv.",
)  # fmt: skip
@click.option("--workload", required=True, help="Name of what was measured.")
@click.option("--task", default="", help="Family of workloads it belongs to.  [default: its own]")
@click.option("--dataset-gb", type=float, required=True, help="Size of the data set, GB.")
@click.option("--disk-mb-s", type=float, required=True, help="Bandwidth of the storage, MB/s.")
@click.option("--samples", type=int, required=True, help="Samples of an epoch.")
@click.option("--batch-size", type=int, required=True, help="Samples of an iteration of one GPU.")
@click.option("--gpus", type=int, default=1, show_default=True, help="GPUs that were measured together.")
@click.option(
    "--server", default="8:24:500:500", show_default=True, metavar="GPUS:CPUS:GB:MB_S",
    help="Servers the job shall run on.",
)  # fmt: skip
@click.option("--slack", type=float, default=0.05, show_default=True, help="How much slower than the best is enough.")
@click.option("--json", "as_json", metavar="FILE", type=click.Path(path_type=Path), help="Epochs and storage as JSON.")
def profile_synergy(
    source: Path, output: Path, workload: str, task: str, dataset_gb: float, disk_mb_s: float, samples: int,
    batch_size: int, gpus: int, server: str, slack: float, as_json: Path | None,
) -> None:  # fmt: skip
    """Sensitivity of a job from measurements with several numbers of CPUs at full memory.

    CSV has the columns cpus (of the job), iteration_s (seconds of an iteration without waiting for data) and
    memory_gb_s (GB/s that so many CPUs read from memory). Memory is not measured: the part of the data set that fits
    into it is read at that rate, the rest at the storage's.
    """
    from fastsim.performance.sensitivity import Sensitivity
    from fastsim.performance.synergy_profiler import Measured, modelled_profile, write_profile

    measured = Measured.from_csv(
        source, dataset_gb=dataset_gb, disk_mb_s=disk_mb_s, samples=samples, batch_size=batch_size, num_gpu=gpus
    )
    shape = _server(server)
    found = modelled_profile(measured, shape, workload, task, slack)
    rows = Sensitivity((found,)).write(output, shape.fair.cpus)
    asked = f"{found.cpu:g} CPUs, {found.memory_gb:g} GB and {found.storage_mb_s:.1f} MB/s"
    gain = f"{found.speedup:.2f} times as fast as at its fair share"
    click.echo(f"{output}: {rows} rows; a GPU asks for {asked} and is {gain}")
    if as_json is not None:
        write_profile(measured, as_json)
        click.echo(f"{as_json}: {len(measured.cpus__c)} numbers of CPUs")


def _server(text: str) -> Server:
    from fastsim.cluster.server import Server
    from fastsim.errors import ScenarioError

    try:
        gpus, *rest = text.split(":")
        server = Server(int(gpus), *map(float, rest))
        good = 3 <= len(rest) + 1 <= 5 and server.gpus > 0 and min(server[1:3]) > 0 and min(server) >= 0
    except (TypeError, ValueError):
        good = False
    if not good:
        raise ScenarioError("--server", repr(text), "GPUS:CPUS:GB or GPUS:CPUS:GB:MB_S, above 0")
    return server

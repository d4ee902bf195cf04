"""Verbs that write tables: import and synth of pods, jobs and nodes, profile of the resources of jobs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastsim.cli.grammar.standard_streams import READ, FileWritten
from fastsim.cli.strict import refuse_not_honoured, strict_option
from fastsim.foundation.limits.garbage import uncollected

if TYPE_CHECKING:
    from fastsim.cluster.server import Server


PARQUET = FileWritten(".parquet")


@click.group("import")
def import_() -> None:
    """Convert published traces to canonical Parquet."""


@import_.command("openb")
@click.argument("source", metavar="SRC", type=READ)
@click.option("-o", "--out", "output", required=True, metavar="FILE", type=PARQUET, help="Parquet file.")
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
    chosen = {name: value for name, value in options.items() if value not in (None, ())}
    if as_nodes:
        from fastsim.cluster.cluster import Cluster

        refuse(chosen, "--nodes")
        cluster = Cluster.from_openb(source)
        cluster.to_parquet(output)
        click.echo(f"{output}: {len(cluster):,} nodes")
        return
    from fastsim.workload import Workload

    click.echo(f"{output}: {Workload.from_openb(source, **chosen).write(output):,} pods")


@import_.command("gavel")
@click.argument("source", metavar="SRC", type=READ)
@click.option("-o", "--out", "output", required=True, metavar="FILE", type=PARQUET, help="Parquet file.")
def import_gavel(source: Path, output: Path) -> None:
    """Jobs of a Gavel or Shockwave trace of 7, 10 or 12 fields (plain or .gz)."""
    from fastsim.workload import Workload

    click.echo(f"{output}: {Workload.from_gavel(source).write(output):,} jobs")


@import_.command("gavel-rates")
@click.argument("source", metavar="SRC", type=READ)
@click.option("-o", "--out", "output", required=True, metavar="FILE", type=PARQUET, help="Parquet file.")
def import_gavel_rates(source: Path, output: Path) -> None:
    """Rates of a Gavel throughput file (.json or .json.gz), those of GPUs spread over nodes included."""
    from fastsim.performance.gavel_rates import import_rates
    from fastsim.performance.rate_table import write_rates

    click.echo(f"{output}: {write_rates(import_rates(source), output):,} rates")


@import_.command("sia")
@click.argument("source", metavar="SRC", type=READ)
@click.option("-o", "--out", "output", required=True, metavar="FILE", type=PARQUET, help="Parquet file.")
def import_sia(source: Path, output: Path) -> None:
    """Sia's simulator: jobs of a list (CSV), or the applications of a folder with one folder for each."""
    _import_adaptive(source, output, "import_sia")


@import_.command("pollux")
@click.argument("source", metavar="SRC", type=READ)
@click.option("-o", "--out", "output", required=True, metavar="FILE", type=PARQUET, help="Parquet file.")
def import_pollux(source: Path, output: Path) -> None:
    """Pollux's simulator: jobs of a list (CSV), or the applications of a folder, on its one kind of machine."""
    _import_adaptive(source, output, "import_pollux")


def _import_adaptive(source: Path, output: Path, importer: str) -> None:
    if source.is_dir():
        from fastsim.performance.applications import sia_folders

        applications = getattr(sia_folders, importer)(source)
        click.echo(f"{output}: {applications.to_parquet(output):,} applications")
        return
    from fastsim.workload import Workload

    click.echo(f"{output}: {Workload.from_sia(source).write(output):,} jobs")


@import_.command("synergy")
@click.argument("source", metavar="SRC", type=READ)
@click.option("-o", "--out", "output", required=True, metavar="FILE", type=PARQUET, help="Parquet file.")
@click.option("--nodes", "as_nodes", is_flag=True, help="SRC is a cluster (INI), not a job trace.")
def import_synergy(source: Path, output: Path, as_nodes: bool) -> None:
    """Jobs of a Synergy trace (plain or .gz), or the servers of a cluster file."""
    if as_nodes:
        from fastsim.cluster.cluster import Cluster

        cluster = Cluster.from_synergy(source)
        cluster.to_parquet(output)
        click.echo(f"{output}: {len(cluster):,} nodes")
        return
    from fastsim.workload import Workload

    click.echo(f"{output}: {Workload.from_synergy(source).write(output):,} jobs")


@import_.command("philly")
@click.argument("source", metavar="SRC", type=READ)
@click.option("-o", "--out", "output", required=True, metavar="FILE", type=PARQUET, help="Parquet file.")
@click.option("--rules", default="all", show_default=True, help="all, or synergy: the jobs of its experiments.")
@click.option("--exponential", is_flag=True, help="Synergy: keep jobs of any arrival time, for drawn arrivals.")
@click.option("--single-gpu", is_flag=True, help="Synergy: keep jobs of any size, for runs on single GPUs.")
def import_philly(source: Path, output: Path, rules: str, exponential: bool, single_gpu: bool) -> None:
    """Jobs of a Philly log (JSON) or of its reduced form (CSV), plain or .gz."""
    from fastsim.workload import Workload

    if rules == "all":
        refuse(
            {name: True for name, on in (("exponential", exponential), ("single_gpu", single_gpu)) if on}, "all jobs"
        )
    workload = Workload.from_philly(source, rules=rules, exponential=exponential, multi_gpu=not single_gpu)
    click.echo(f"{output}: {workload.write(output):,} jobs")


@import_.command("kubernetes")
@click.argument("sources", metavar="SRC...", nargs=-1, required=True, type=READ)
@click.option("-o", "--out", "output", required=True, metavar="FILE", type=PARQUET, help="Parquet file.")
@click.option("--nodes", "as_nodes", is_flag=True, help="Write the nodes, not the pods.")
@click.option("--memory-unit", default="GiB", show_default=True, help="Unit of aliyun.com/gpu-mem: GiB or MiB.")
@click.option(
    "--as", "read_as", default="now", show_default=True, metavar="now|trace",
    help="Pods as they stand now, or at their recorded times, finished ones included.",
)  # fmt: skip
@click.option("--unpin", metavar="CHOICE", help="Pods that run wait: true for all, a kind of owner, or LABEL=VALUE.")
@strict_option
@uncollected()
def import_kubernetes(
    sources: tuple[Path, ...], output: Path, as_nodes: bool, memory_unit: str, read_as: str, unpin: str | None,
    strict: bool,
) -> None:  # fmt: skip
    """Pods or nodes of Kubernetes objects: YAML, JSON, folders, KAI snapshots.

    Constraints of pods depend on labels and taints of nodes, so give both together. Anything that is not honoured is
    listed.
    """
    from fastsim.cluster.cluster import Cluster
    from fastsim.cluster.importers import snapshot_nodes
    from fastsim.kubernetes.snapshot import Snapshot
    from fastsim.workload.importers.kubernetes import snapshot_pods, warn_of_kept_nodes

    snapshot = Snapshot.read(*sources, memory_unit=memory_unit, unpin=unpin or "")
    table = Cluster(*snapshot_nodes(snapshot)) if as_nodes else snapshot_pods(snapshot, read_as, marked=True)
    notices = snapshot.notices.lines
    if strict:
        refuse_not_honoured(notices)
    if isinstance(table, Cluster):
        table.to_parquet(output)
        click.echo(f"{output}: {len(table):,} nodes")
    else:
        click.echo(f"{output}: {table.write(output):,} pods")
        if read_as == "trace":
            warn_of_kept_nodes(table)
    for text in notices:
        click.echo(f"not honoured: {text}", err=True)


@import_.command("simon")
@click.argument("source", metavar="FILE", type=READ)
@click.option("-s", "--scheduler", metavar="FILE", type=READ, help="Configuration of the scheduler: plugins, weights.")
@click.option("-o", "--out", "output", required=True, metavar="FILE", type=FileWritten(".toml"), help="TOML file.")
def import_simon(source: Path, scheduler: Path | None, output: Path) -> None:
    """A configuration of FGD's simulator (simon apply -f) as a file for fastsim run --scenario."""
    from fastsim.experiments.sweep.templates import toml_text
    from fastsim.foundation.parquet import replacing
    from fastsim.scenario.simon_configuration import simon_scenario

    fields, notices = simon_scenario(source, scheduler)
    with replacing(output) as partial:
        partial.write_text(toml_text(fields), encoding="utf-8")
    click.echo(f"{output}: {', '.join(fields)}")
    for text in notices:
        click.echo(f"not honoured: {text}", err=True)


@click.group()
def synth() -> None:
    """Generate workloads that look like published traces."""


@synth.command("openb")
@click.option("-o", "--out", "output", required=True, metavar="FILE", type=PARQUET, help="Parquet file.")
@click.option("--pods", type=click.IntRange(0), required=True, help="Number of pods.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of every random choice.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any other option of Workload.synth.")
def synth_openb(output: Path, pods: int, seed: int, settings: tuple[str, ...]) -> None:
    """Pods drawn like those of the openb traces."""
    from fastsim.scenario import run_inputs

    text = "&".join([f"synth:openb?pods={pods}&seed={seed}", *settings])
    workload, _ = run_inputs.workload_from(text)
    click.echo(f"{output}: {workload.write(output):,} pods")


@synth.command("kubernetes")
@click.option("-o", "--out", "output", required=True, metavar="FILE", type=FileWritten(".json"), help="JSON file.")
@click.option("--nodes", type=click.IntRange(1, 100_000), default=40, show_default=True)
@click.option("--pods", type=click.IntRange(1, 1_000_000), default=600, show_default=True, help="Half of them run.")
@click.option("--seed", type=int, default=0, show_default=True)
def synth_kubernetes(output: Path, nodes: int, pods: int, seed: int) -> None:
    """A dump of a Kubernetes cluster in use, as `kubectl get nodes,pods -A -o json` writes one."""
    from fastsim.workload.generators.kubernetes_dump import write_dump

    write_dump(output, nodes, pods, seed)
    click.echo(f"{output}: {nodes:,} nodes, {pods:,} pods")


@synth.command("gavel")
@click.option(
    "-o", "--out", "output", required=True, metavar="FILE", type=PARQUET,
    help="Parquet file, or .trace for Gavel's own format.",
)  # fmt: skip
@click.option("--jobs", type=click.IntRange(0), required=True, help="Number of jobs.")
@click.option("--rate-per-hour", type=float, help="Mean arrivals per hour.  [default: all at once]")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of every random choice.")
@click.option("--script", is_flag=True, help="Draw as the stand-alone trace generator does, not as the simulator.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any other option of Workload.synth.")
def synth_gavel(
    output: Path, jobs: int, rate_per_hour: float | None, seed: int, script: bool, settings: tuple[str, ...]
) -> None:
    """Training jobs drawn as Gavel's simulator draws them."""
    from fastsim.scenario import run_inputs

    words = [f"synth:{'gavel-trace' if script else 'gavel'}?jobs={jobs}&seed={seed}", *settings]
    if rate_per_hour is not None:
        words.append(f"rate_per_hour={rate_per_hour}")
    workload, _ = run_inputs.workload_from("&".join(words))
    if output.name.endswith((".trace", ".trace.gz")):
        from fastsim.workload.importers.gavel import write_trace

        # Each original program writes arrivals its own way.
        click.echo(f"{output}: {write_trace(workload, output, whole_seconds=script):,} jobs")
    else:
        click.echo(f"{output}: {workload.write(output):,} jobs")


@synth.command("sia")
@click.option(
    "-o", "--out", "output", required=True, metavar="FILE", type=PARQUET,
    help="Parquet file, or .csv for Sia's own format.",
)  # fmt: skip
@click.option("--jobs", type=click.IntRange(0), default=160, show_default=True, help="Number of jobs.")
@click.option("--style", default="philly", show_default=True, help="philly, helios or newtrace.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of every random choice.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any other option of Workload.synth.")
def synth_sia(output: Path, jobs: int, style: str, seed: int, settings: tuple[str, ...]) -> None:
    """Adaptive jobs like those of the Sia and Pollux experiments."""
    from fastsim.scenario import run_inputs

    workload, _ = run_inputs.workload_from("&".join([f"synth:sia?jobs={jobs}&style={style}&seed={seed}", *settings]))
    if output.name.endswith((".csv", ".csv.gz")):
        from fastsim.workload.importers.sia import write_trace

        click.echo(f"{output}: {write_trace(workload, output):,} jobs")
    else:
        click.echo(f"{output}: {workload.write(output):,} jobs")


@synth.command("synergy")
@click.option(
    "-o", "--out", "output", required=True, metavar="FILE", type=PARQUET,
    help="Parquet file, or .csv for Synergy's own format.",
)  # fmt: skip
@click.option("--jobs", type=click.IntRange(0), required=True, help="Number of jobs.")
@click.option("--rate-per-hour", type=float, default=9.0, show_default=True, help="Mean arrivals per hour.")
@click.option("--split", default="20:70:10", show_default=True, help="Per cent of image, language and speech jobs.")
@click.option("--seed", type=click.IntRange(0), default=42, show_default=True, help="Seed of every random choice.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any other option of Workload.synth.")
def synth_synergy(
    output: Path, jobs: int, rate_per_hour: float, split: str, seed: int, settings: tuple[str, ...]
) -> None:
    """Training jobs drawn as Synergy's simulator draws them."""
    from fastsim.scenario import run_inputs

    words = [f"synth:synergy?jobs={jobs}&rate_per_hour={rate_per_hour}&split={split}&seed={seed}", *settings]
    workload, _ = run_inputs.workload_from("&".join(words))
    if output.name.endswith((".csv", ".csv.gz")):
        from fastsim.workload.importers.synergy import write_trace

        click.echo(f"{output}: {write_trace(workload, output):,} jobs")
    else:
        click.echo(f"{output}: {workload.write(output):,} jobs")


def refuse(options: dict[str, Any], flag: str) -> None:
    """A usage error for the first option that makes no sense with a flag."""
    if options:
        raise click.UsageError(f"--{next(iter(options)).replace('_', '-')} makes no sense with {flag}")


@click.group()
def profile() -> None:
    """Turn measurements of a job into a table that the simulator reads."""


@profile.command("synergy")
@click.argument("source", metavar="CSV", type=READ)
@click.option(
    "-o", "--out", "output", required=True, metavar="FILE", type=PARQUET,
    help="Table of sensitivities: Parquet, or .csv.",
)  # fmt: skip
@click.option("--workload", required=True, help="Name of the measured workload.")
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
@click.option("--slack", type=float, default=0.05, show_default=True, help="Accepted slowdown, a part of the best.")
@click.option("--json", "as_json", metavar="FILE", type=FileWritten(".json"), help="Epochs and storage as JSON.")
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
    fitted = modelled_profile(measured, shape, workload, task, slack)
    rows = Sensitivity((fitted,)).write(output, shape.fair.cpus)
    demand = f"{fitted.cpu:g} CPUs, {fitted.memory_gb:g} GB and {fitted.storage_mb_s:.1f} MB/s"
    gain = f"{fitted.speedup:.2f} times as fast as at its fair share"
    click.echo(f"{output}: {rows} rows; a GPU asks for {demand} and is {gain}")
    if as_json is not None:
        write_profile(measured, as_json)
        click.echo(f"{as_json}: {len(measured.cpus__c)} numbers of CPUs")


@profile.command("gavel")
@click.argument("source", metavar="CSV", type=READ)
@click.option("-o", "--out", "output", required=True, metavar="FILE", type=PARQUET, help="Parquet file.")
def profile_gavel(source: Path, output: Path) -> None:
    """Rates of jobs for policies that share time, from steps counted on each GPU model.

    CSV has the columns workload, gpu_model, steps and seconds, and maybe num_gpu and colocated_workload, a job on the
    same GPUs. `fastsim run --rates FILE` reads the table.
    """
    from fastsim.performance.measured_rates import measured_rates
    from fastsim.performance.rate_table import write_rates

    click.echo(f"{output}: {write_rates(measured_rates(source), output):,} rates")


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

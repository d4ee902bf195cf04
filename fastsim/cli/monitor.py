"""Verbs about readings of GPUs: monitor serve, export, import, plot, jobs, dashboard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastsim.cli.grammar.durations import DURATION, Duration
from fastsim.cli.grammar.standard_streams import READ, READ_NAME, FileWritten
from fastsim.cli.kubernetes import until_ended
from fastsim.cli.report import to_chart_file

if TYPE_CHECKING:
    from fastsim.telemetry.prometheus import Prometheus

# Copies: importing the modules that define these would load polars for every command.
PROFILES = ("dcgm1", "dcgm2", "dcgm4.9")
QUANTITIES = (
    "util_pct", "temperature_c", "copy_pct", "power_w", "memory_used_mib", "memory_free_mib", "memory_temperature_c",
    "energy_j",
)  # fmt: skip
AT_END = ("stop", "hold", "repeat")

_sources = click.argument("sources", nargs=-1, required=True, metavar="SRC...", type=READ_NAME)
_profile = click.option("--profile", type=click.Choice(PROFILES), default="dcgm2", show_default=True,
                        help="Exporter whose names, units and labels are used.")  # fmt: skip
_names = click.option("--names", type=READ, metavar="FILE", help="A table of names of your own (CSV).")


@click.group()
def monitor() -> None:
    """Readings of GPUs: to Prometheus and Grafana, from Prometheus, as pictures.

    SRC is the folder of a run with telemetry, a Parquet table of readings, OpenMetrics text (.om), what an exporter or
    /federate serves or `promtool tsdb dump` printed, or a saved answer of Prometheus (.json); import takes the address
    of a server, too.
    """


@monitor.command()
@_sources
@click.option("--listen", default="127.0.0.1:9400", show_default=True, metavar="HOST:PORT", help="HTTP address.")
@click.option("--speed", type=float, default=1.0, show_default=True, help="Recorded seconds for each second.")
@click.option("--at-end", type=click.Choice(AT_END), default="stop", show_default=True, help="After the last reading.")
@_profile
@_names
def serve(sources: tuple[str, ...], listen: str, speed: float, at_end: str, profile: str, names: Path | None) -> None:
    """Serve readings as a live exporter does: http://HOST:PORT/metrics, for Prometheus to scrape.

    Only programs of this machine reach it unless --listen names another address. Ctrl-C or SIGTERM ends it.
    """
    from fastsim.foundation.http.service import Service, address_of
    from fastsim.telemetry.exporter import Pace, Record, routes
    from fastsim.telemetry.files import scanned

    host, port = address_of(listen)
    record = Record(scanned(sources, names), profile=profile, names=names)
    pace = Pace(record.length_s, speed, at_end)
    service = Service(routes(record, pace), host, port)
    content = f"{record.series:,} series, {record.length_s:,.0f} s of readings at {speed:g} times their pace"
    until_ended(service, f"{service.url}/metrics: {content}", lambda: pace.over)


@monitor.command()
@_sources
@click.option(
    "-o", "--out", "output", required=True, metavar="DIR", type=click.Path(path_type=Path), help="A new folder."
)
@click.option("--as", "form", type=click.Choice(("openmetrics", "csv")), default="openmetrics", show_default=True,
              help="Text for promtool, or a CSV file (t_rel, value) for each series.")  # fmt: skip
@click.option("--epoch", metavar="TIME", help="Time that second 0 stands for, such as 2024-01-01T00:00:00Z.")
@click.option("--slice-s", type=click.IntRange(1, 86_400), default=86_400, show_default=True, help="Seconds of a file.")
@_profile
@_names
def export(
    sources: tuple[str, ...], output: Path, form: str, epoch: str | None, slice_s: int, profile: str, names: Path | None
) -> None:  # fmt: skip
    """Write readings for `promtool tsdb create-blocks-from openmetrics`, or as CSV."""
    import polars as pl

    from fastsim.telemetry.files import scanned, write_csv_files
    from fastsim.telemetry.openmetrics import write_files
    from fastsim.telemetry.readings_table import evaluated

    table = scanned(sources, names)
    _refuse_existing(output)
    with _whole_folder(output) as folder:
        if form == "csv":
            paths = write_csv_files(table, folder)
        else:
            paths = write_files(table, folder, profile=profile, epoch_s=_epoch_s(table, epoch), slice_s=slice_s,
                                  names=names)  # fmt: skip
    count = evaluated(table.select(pl.len())).item()
    click.echo(f"{output}: {count:,} readings in {len(paths):,} files")


@monitor.command("import")
@_sources
@click.option(
    "-o", "--out", "output", required=True, metavar="FILE", type=FileWritten(".parquet"), help="Parquet file."
)
@click.option("--start", metavar="TIME", help="Begin, such as 2024-01-01T00:00:00Z or Unix seconds.")
@click.option("--end", metavar="TIME", help="End.  [default: now]")
@click.option("--last", type=DURATION, metavar="S", help="The last S seconds, instead of --start.")
@click.option("--step", type=click.IntRange(1), metavar="S", help="One value every S seconds.  [default: as stored]")
@click.option("--where", default="", metavar="M", help="Only series with these labels: 'Hostname=\"n1\"'.")
@click.option("--timeout-s", type=Duration("above 0"), default=30.0, show_default=True,
              help="Time limit of the server's answer, seconds.")  # fmt: skip
@_names
def import_(
    sources: tuple[str, ...], output: Path, step: int | None, where: str, timeout_s: float, names: Path | None,
    **window: Any,
) -> None:  # fmt: skip
    """Read GPU series from a Prometheus server (its address), or from files, into one Parquet table."""
    from collections import Counter

    from fastsim.errors import InputError, ScenarioError
    from fastsim.telemetry.files import collected
    from fastsim.telemetry.prometheus import Prometheus
    from fastsim.telemetry.readings_table import write

    unknown: Counter[str] = Counter()
    if sources[0].startswith(("http://", "https://")):
        if len(sources) > 1:
            raise ScenarioError("SRC", f"{len(sources)} of them", "one server, or files")
        table = _fetched(Prometheus(sources[0], timeout_s), step, where, names, unknown, **window)
    elif where or step or any(value is not None for value in window.values()):
        raise ScenarioError("SRC", repr(sources[0]), "the address of a server, to which these options belong")
    else:
        table = collected(sources, names, unknown)
    if not len(table):
        raise InputError(sources[0], "no readings of GPUs", "series under names of `fastsim monitor import --names`")
    rows = write(table, output, sources)
    left_out = f"; left out: {', '.join(f'{name} ({count:,})' for name, count in sorted(unknown.items()))}"
    click.echo(f"{output}: {rows:,} readings{left_out if unknown else ''}")


@monitor.command()
@_sources
@to_chart_file
@click.option("--metric", "metrics", multiple=True, type=click.Choice(QUANTITIES), metavar="M",
              help="Quantity to draw, again for more.  [default: utilisation, temperature, copies, power]")  # fmt: skip
@click.option("--pod", default="", metavar="P", help="Only devices of these pods, such as 'train-*'.")
@click.option("--name", "labels", multiple=True, metavar="N", help="A run's name; as many as SRC.  [default: of SRC]")
@click.option("--apart", is_flag=True, help="Several runs: a row of charts for each.")
@_names
def plot(
    sources: tuple[str, ...], output: Path, metrics: tuple[str, ...], pod: str, labels: tuple[str, ...], apart: bool,
    names: Path | None,
) -> None:  # fmt: skip
    """Draw four quantities over time: of one run device by device, of several runs their means side by side."""
    from fastsim.errors import ScenarioError
    from fastsim.reports.charts.chart_files import written_chart
    from fastsim.reports.charts.series import distinct_names
    from fastsim.reports.charts.telemetry_charts import FOUR, comparison_chart, workload_chart
    from fastsim.telemetry.files import readings_of

    if labels and len(labels) != len(sources):
        raise ScenarioError("--name", f"{len(labels)} of them", f"{len(sources)}, one for each SRC")
    tables = [readings_of([source], names) for source in sources]
    chosen = metrics or FOUR
    if len(tables) == 1:
        chart = workload_chart(tables[0], chosen, pod=pod, title=labels[0] if labels else "")
    else:
        run_names = labels or distinct_names([Path(source).stem for source in sources])
        chart = comparison_chart(dict(zip(run_names, tables, strict=True)), chosen, pod=pod, apart=apart)
    click.echo(f"{written_chart(chart, output)}: {len(chosen)} quantities of {len(tables)} runs")


@monitor.command()
@_sources
@click.option(
    "-o", "--out", "output", required=True, metavar="FILE", type=FileWritten(".parquet"), help="Pods, Parquet."
)
@click.option("--profiles", metavar="FILE", type=FileWritten(".csv"), help="GPU profiles of the pods, CSV.")
@click.option(
    "--kube-state", is_flag=True, help="SRC are series of kube-state-metrics (kube_pod_...): times, requests."
)
@_names
def jobs(
    sources: tuple[str, ...], output: Path, profiles: Path | None, kube_state: bool, names: Path | None
) -> None:  # fmt: skip
    """Make a workload of the pods that readings name, and profiles for `run --telemetry "15?profiles=FILE"`."""
    if kube_state:
        _pods_of_kube_state(sources, output, profiles, names)
        return
    from fastsim.telemetry.files import readings_of
    from fastsim.telemetry.jobs_from_readings import jobs_of, write_profiles_csv

    readings = jobs_of(readings_of(sources, names))
    click.echo(f"{output}: {readings.pods.write(output):,} pods")
    if profiles is not None:
        write_profiles_csv(readings.profiles, profiles)
        click.echo(f"{profiles}: {len(readings.profiles):,} profiles")


def _pods_of_kube_state(
    sources: tuple[str, ...], output: Path, profiles: Path | None, names: Path | None
) -> None:  # fmt: skip
    from fastsim.errors import ScenarioError
    from fastsim.telemetry.kube_state import pods_of

    if profiles is not None or names is not None:
        raise ScenarioError("--kube-state", "--profiles or --names", "neither: its series have no readings of GPUs")
    click.echo(f"{output}: {pods_of(sources).write(output):,} pods")


@monitor.command()
@click.option(
    "-o", "--out", "output", metavar="FILE", type=FileWritten(".json"), help="JSON file.  [default: print it]"
)
@_profile
def dashboard(output: Path | None, profile: str) -> None:
    """A dashboard for Grafana that shows these readings, or those of real exporters."""
    from fastsim.reports.charts.chart_files import written_file
    from fastsim.telemetry.grafana import dashboard_json

    text = dashboard_json(profile)
    click.echo(text, nl=False) if output is None else click.echo(f"{written_file(output, text.encode())}: a dashboard")


def _fetched(
    server: Prometheus, step: int | None, where: str, names: Path | None, unknown: Any, *, start: str | None,
    end: str | None, last: float | None,
) -> Any:  # fmt: skip
    import time

    from fastsim.errors import ScenarioError
    from fastsim.kubernetes.pods import unix_s
    from fastsim.telemetry.metric_names import by_name

    if (start is None) == (last is None):
        raise ScenarioError("--start", "both or neither of --start and --last", "one of them")
    end_s = unix_s(end, "--end")
    end_s = time.time() if end_s is None else end_s
    start_s = unix_s(start, "--start")
    begin_s = end_s - (last or 0.0) if start_s is None else start_s
    if step is None:
        return server.stored(begin_s, end_s, where=where, names=by_name(names), unknown=unknown)
    return server.readings(int(begin_s), int(end_s), step, where=where, names=by_name(names), unknown=unknown)


def _epoch_s(table: Any, epoch: str | None) -> int:
    """Seconds to add to all times; readings of a simulation, whose second 0 would be 1970, need ``--epoch``."""
    import polars as pl

    from fastsim.errors import ScenarioError
    from fastsim.kubernetes.pods import unix_s
    from fastsim.telemetry.readings_table import evaluated

    epoch_s = unix_s(epoch, "--epoch")
    if epoch_s is not None:
        return int(epoch_s)
    first = evaluated(table.select(pl.col("ts").min())).item()
    if first is not None and first.year > 1990:
        return 0
    raise ScenarioError(
        "--epoch", "nothing, and readings of 1970", "the time of second 0, such as 2024-01-01T00:00:00Z"
    )


def _refuse_existing(output: Path) -> None:
    from fastsim.errors import ScenarioError

    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise ScenarioError(f"--out {output}", "something that exists already", "a new or empty folder")


def _whole_folder(output: Path) -> Any:
    from fastsim.foundation.parquet import replacing_folder

    return replacing_folder(output)

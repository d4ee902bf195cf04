"""The verb that draws charts of jobs: plot."""

from __future__ import annotations

from pathlib import Path

import click

CHARTS = ("jct_cdf", "jct_over_load", "demand_over_load")


@click.command()
@click.argument("chart", type=click.Choice(CHARTS))
@click.argument("folders", nargs=-1, required=True, metavar="DIR...", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", required=True, metavar="FILE", type=click.Path(path_type=Path), help=".png, .svg, .html or .json."
)
@click.option("--name", "names", multiple=True, metavar="N", help="A run's name; as many as runs.  [default: policies]")
@click.option("--load", "loads", multiple=True, type=float, metavar="R", help="Jobs/h of a run.  [default: as written]")
@click.option("--gpus", type=click.IntRange(1), help="GPUs of the cluster.  [default: of the text]")
def plot(
    chart: str, folders: tuple[Path, ...], output: Path, names: tuple[str, ...], loads: tuple[float, ...],
    gpus: int | None,
) -> None:  # fmt: skip
    """Draw completion times (jct_cdf, jct_over_load) or demand (demand_over_load) of saved runs.

    Runs of one policy and load, such as those of several seeds, are one point of the charts over load.
    """
    from fastsim.engine.result import Result
    from fastsim.reports.charts.chart_files import written_chart
    from fastsim.reports.charts.job_charts import job_chart

    results = [Result.load(folder) for folder in folders]
    drawn = job_chart(results, chart, names=names or None, loads=loads or None, gpus=gpus)
    click.echo(f"{written_chart(drawn, output)}: {chart} of {len(results)} runs")

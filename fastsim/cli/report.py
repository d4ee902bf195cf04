"""Verbs that show saved runs: report (a page of all charts), plot (one chart)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fastsim.cli.grammar.saved_runs import reads_saved_runs
from fastsim.cli.grammar.standard_streams import FileWritten

if TYPE_CHECKING:
    from fastsim.engine.result import Result
    from fastsim.reports.charts.gpu_occupancy import Window

TO_FOLDER = click.Path(path_type=Path, file_okay=False)
to_chart_file = click.option("-o", "--out", "output", required=True, metavar="FILE", type=FileWritten(".svg"),
                             help=".png, .svg, .pdf, .html or .json.")  # fmt: skip
"""The option of verbs that write one chart."""


@click.command()
@click.argument("folders", nargs=-1, required=True, metavar="DIR...", type=click.Path(path_type=Path))
@click.option("--html", type=FileWritten(".html"), metavar="FILE", help="One page with table and interactive charts.")
@click.option(
    "--markdown", type=FileWritten(".md"), metavar="FILE", help="Table, provenance and citations; links the pictures."
)
@click.option("--png", type=TO_FOLDER, metavar="DIR", help="Each chart as a picture.")
@click.option("--svg", type=TO_FOLDER, metavar="DIR", help="Each chart as a picture.")
@click.option("--pdf", type=TO_FOLDER, metavar="DIR", help="Each chart as a picture.")
@click.option("--columns", type=click.IntRange(1, 2), help="Fit pictures to so many columns of a paper.")
@click.option("--latex", type=FileWritten(".tex"), metavar="FILE", help="The table for LaTeX (booktabs).")
@click.option(
    "--csv", type=FileWritten(".csv"), metavar="FILE", help="The table as CSV: means, and half their 95 % intervals."
)
@click.option(
    "--trace", type=FileWritten(".json"), metavar="FILE", help="One run for ui.perfetto.dev: a track for each GPU."
)
@click.option("--name", "names", multiple=True, metavar="N", help="A run's name; as many as runs.  [default: policies]")
@click.option("--chart", "charts", multiple=True, metavar="C", help="Chart to draw, again for more.  [default: all]")
@click.option("--window", metavar="A:B", help="Seconds of simulated time that bars and traces show.")
@reads_saved_runs
def report(
    folders: tuple[Path, ...], html: Path | None, markdown: Path | None, png: Path | None, svg: Path | None,
    pdf: Path | None, columns: int | None, latex: Path | None, csv: Path | None, trace: Path | None,
    names: tuple[str, ...], charts: tuple[str, ...], window: str | None,
) -> None:  # fmt: skip
    """Show saved runs: a page that needs no network, Markdown, pictures, a trace. Without any of these, a table.

    DIR is the folder of a run, or of a sweep with runs in it. Runs that differ in their seeds only are one line
    of every chart and row of the table: the mean with its 95 % interval over seeds.
    """
    from fastsim.reports import report as reporting
    from fastsim.reports.report_table import table_markdown

    runs = reporting.loaded_runs(folders)
    page = reporting.report(runs, names or None, window=_window(window), charts=charts)
    pictures = [
        path for folder, suffix in ((png, ".png"), (svg, ".svg"), (pdf, ".pdf")) if folder is not None
        for path in page.to_pictures(folder, suffix, columns=columns)
    ]  # fmt: skip
    if pictures:
        click.echo(f"{len(pictures)} pictures in {' and '.join(str(folder) for folder in (png, svg, pdf) if folder)}")
    for file, write in ((latex, page.to_latex), (csv, page.to_csv)):
        if file is not None:
            click.echo(_with_size(write(file)))
    if markdown is not None:
        click.echo(_with_size(page.to_markdown(markdown, pictures)))
    if html is not None:
        click.echo(f"{_with_size(page.to_html(html))}: {len(runs)} runs, {len(page.figures)} charts")
    if trace is not None:
        _trace(runs, trace, page.window)
    if not (pictures or markdown or html or trace or latex or csv):
        click.echo(table_markdown(page.table), nl=False)


@click.command()
@click.argument("chart")
@click.argument("folders", nargs=-1, required=True, metavar="DIR...", type=click.Path(path_type=Path))
@to_chart_file
@click.option("--name", "names", multiple=True, metavar="N", help="A run's name; as many as runs.  [default: policies]")
@click.option("--load", "loads", multiple=True, type=float, metavar="R", help="Jobs/h of a run.  [default: as written]")
@click.option("--gpus", type=click.IntRange(1), help="GPUs of the cluster.  [default: of the text]")
@reads_saved_runs
def plot(
    chart: str, folders: tuple[Path, ...], output: Path, names: tuple[str, ...], loads: tuple[float, ...],
    gpus: int | None,
) -> None:  # fmt: skip
    """Draw one chart of saved runs: any of a report's, such as jct, wait, allocation, shares or nodes.

    DIR is the folder of a run, or of a sweep with runs in it. Runs that differ in their seeds only are one curve: the
    mean with its 95 % interval. jct_cdf, jct_over_load and demand_over_load count the jobs of the run's window; only
    the latter two have --load and --gpus. `fastsim describe metrics --table charts` explains all.
    """
    from fastsim.reports.charts.chart_files import written_chart
    from fastsim.reports.plots import saved_chart
    from fastsim.reports.report import loaded_runs

    results = loaded_runs(folders)
    figure = saved_chart(results, chart, names=names or None, loads=loads or None, gpus=gpus)
    click.echo(f"{written_chart(figure, output)}: {chart} of {len(results)} runs")


def _trace(runs: list[Result], path: Path, window: Window | None) -> None:
    from fastsim.errors import ScenarioError
    from fastsim.reports.charts.chrome_trace import written_trace

    if len(runs) != 1:
        raise ScenarioError("--trace", f"{len(runs)} runs", "the folder of one run")
    file, shown, total = written_trace(runs[0], path, window)
    click.echo(f"{_with_size(file)}: {shown:,} of {total:,} stays on GPUs; open it at ui.perfetto.dev")


def _with_size(path: Path) -> str:
    size = path.stat().st_size
    return f"{path} ({size / 1e6:.1f} MB)" if size >= 1e5 else f"{path} ({size / 1e3:.1f} kB)"


def _window(text: str | None) -> tuple[float, float] | None:
    from fastsim.errors import ScenarioError

    if text is None:
        return None
    try:
        begin, end = text.split(":")
        return float(begin), float(end)
    except ValueError:
        raise ScenarioError("--window", repr(text), "two numbers of seconds such as 0:3600") from None

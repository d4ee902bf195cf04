"""The verb that shows saved runs to people: report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from fastsim.engine.result import Result
    from fastsim.reports.charts.gpu_occupancy import Window

TO_FILE = click.Path(path_type=Path, dir_okay=False)
TO_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command()
@click.argument("folders", nargs=-1, required=True, metavar="DIR...", type=click.Path(path_type=Path))
@click.option("--html", type=TO_FILE, metavar="FILE", help="One page with table and interactive charts.")
@click.option("--markdown", type=TO_FILE, metavar="FILE", help="Table, provenance and citations; links the pictures.")
@click.option("--png", type=TO_FOLDER, metavar="DIR", help="Each chart as a picture.")
@click.option("--svg", type=TO_FOLDER, metavar="DIR", help="Each chart as a picture.")
@click.option("--trace", type=TO_FILE, metavar="FILE", help="One run for ui.perfetto.dev: a track for each GPU.")
@click.option("--name", "names", multiple=True, metavar="N", help="A run's name; as many as runs.  [default: policies]")
@click.option("--chart", "charts", multiple=True, metavar="C", help="Chart to draw, again for more.  [default: all]")
@click.option("--window", metavar="A:B", help="Seconds of simulated time that bars and traces show.")
def report(
    folders: tuple[Path, ...], html: Path | None, markdown: Path | None, png: Path | None, svg: Path | None,
    trace: Path | None, names: tuple[str, ...], charts: tuple[str, ...], window: str | None,
) -> None:  # fmt: skip
    """Show saved runs: a page that needs no network, Markdown, pictures, a trace. Without any of these, a table.

    DIR is the folder of a run, or of a sweep with runs in it. Runs that differ in their seeds only are one line
    of every chart, with the range of the seeds.
    """
    from fastsim.reports import report as reporting
    from fastsim.reports.table import table_markdown

    runs = reporting.loaded_runs(folders)
    made = reporting.report(runs, names or None, window=_window(window), charts=charts)
    pictures = [
        path for folder, suffix in ((png, ".png"), (svg, ".svg")) if folder is not None
        for path in made.to_pictures(folder, suffix)
    ]  # fmt: skip
    if pictures:
        click.echo(f"{len(pictures)} pictures in {' and '.join(str(folder) for folder in (png, svg) if folder)}")
    if markdown is not None:
        click.echo(_told(made.to_markdown(markdown, pictures)))
    if html is not None:
        click.echo(f"{_told(made.to_html(html))}: {len(runs)} runs, {len(made.figures)} charts")
    if trace is not None:
        _trace(runs, trace, made.window)
    if not (pictures or markdown or html or trace):
        click.echo(table_markdown(made.table), nl=False)


def _trace(runs: list[Result], path: Path, window: Window | None) -> None:
    from fastsim.errors import ScenarioError
    from fastsim.reports.charts.chrome_trace import written_trace

    if len(runs) != 1:
        raise ScenarioError("--trace", f"{len(runs)} runs", "the folder of one run")
    written, kept, every = written_trace(runs[0], path, window)
    click.echo(f"{_told(written)}: {kept:,} of {every:,} stays on GPUs; open it at ui.perfetto.dev")


def _told(path: Path) -> str:
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

"""The verb that makes papers again: reproduce."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command()
@click.argument("paper", metavar="fgd|pwr|gavel|synergy|sia|pollux|monitor")
@click.option(
    "--data", type=click.Path(path_type=Path), metavar="DIR", help="Folder with the paper's lists of pods or jobs."
)
@click.option("--quick", is_flag=True, help="The first trace, load and seeds only.")
@click.option(
    "--policy", "policies", multiple=True, metavar="P", help="Only this policy (sia, pollux, synergy); repeatable."
)
@click.option("--workers", type=click.IntRange(1), default=2, show_default=True, help="Worker processes.")
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="DIR", help="[default: reproduced-PAPER]")
@click.option("--strict", is_flag=True, help="Exit code 1 if a cell is outside.")
@click.option("--json", "as_json", is_flag=True, help="Print all cells as JSON.")
def reproduce(
    paper: str, data: Path | None, quick: bool, policies: tuple[str, ...], workers: int, out: Path | None,
    strict: bool, as_json: bool,
) -> None:  # fmt: skip
    """Make the figures of a paper again, ours beside the published ones: a page and Parquet tables.

    With --data they are of the original lists and recorded runs there, without it of generated ones (the page says so).
    """
    from fastsim.experiments.reproduce import papers
    from fastsim.foundation.folder_lock import held
    from fastsim.reports import text_tables
    from fastsim.reports.progress import progress_bar

    folder = out or Path(f"reproduced-{paper}")
    count = papers.run_count(paper, data, quick, policies)
    with held(folder, overwrite=out is None), progress_bar("runs", count) as progress:
        made = papers.reproduce(paper, data, quick=quick, workers=workers, policies=policies, progress=progress)
        made.write(folder)
    if as_json:
        click.echo(text_tables.table_json(made.cells))
    else:
        told = made.cells if policies else made.cells.filter(made.cells["verdict"] != "no reference")
        click.echo(text_tables.reproduction_text(told), nl=False)
        click.echo(f"{made.source}\n{made.verdict}; {made.effort}")
        click.echo(f"page: {folder / 'index.html'}")
    if strict and made.count("outside"):
        sys.exit(1)

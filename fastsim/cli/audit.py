"""The verb audit: figures of a saved run, recomputed."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import click

from fastsim.cli.grammar.saved_runs import reads_saved_runs

SHOWN = 20
"""Differences that are listed; the others are counted."""


@click.command(epilog="Example: fastsim audit runs/mix")
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print all differences as JSON.")
@reads_saved_runs
def audit(folder: Path, as_json: bool) -> None:
    """Recompute every figure of a saved run, and list the differences.

    RUN is the folder of a saved run, whose inputs must be unchanged. Figures follow from its placements and the
    definitions (fastsim describe metrics), without the engine. Exit code 1 if one differs.
    """
    from fastsim.engine.result import Result

    report = Result.load(folder).audit()
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(report), indent=2, default=str))
    else:
        click.echo(str(report))
        for difference in report.differences[:SHOWN]:
            click.echo(str(difference))
        if len(report.differences) > SHOWN:
            click.echo(f"and {len(report.differences) - SHOWN} more")
        for reason, columns in report.by_reason().items():
            click.echo(f"not checked, {reason}: {', '.join(columns)}")
    if report.differences:
        raise click.exceptions.Exit(1)

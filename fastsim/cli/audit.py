"""The verb that works figures out again: audit."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import click

SHOWN = 20
"""Differences that are listed; the others are counted."""


@click.command(epilog="Example: fastsim audit runs/mix")
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print all differences as JSON.")
def audit(folder: Path, as_json: bool) -> None:
    """Work out every figure of a saved run again, and tell what differs.

    RUN is the folder of a saved run, whose inputs must still be what they were. Figures follow from its placements and
    the definitions (fastsim describe metrics), without the engine. Exit code 1 if one differs.
    """
    from fastsim.engine.result import Result

    found = Result.load(folder).audit()
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(found), indent=2, default=str))
    else:
        click.echo(str(found))
        for difference in found.differences[:SHOWN]:
            click.echo(str(difference))
        if len(found.differences) > SHOWN:
            click.echo(f"and {len(found.differences) - SHOWN} more")
        for reason, columns in found.by_reason().items():
            click.echo(f"not checked, {reason}: {', '.join(columns)}")
    if found.differences:
        raise click.exceptions.Exit(1)

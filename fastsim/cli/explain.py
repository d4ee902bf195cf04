"""The verb that tells why: explain."""

from __future__ import annotations

from pathlib import Path

import click

from fastsim.cli.strict import refuse_run, strict_option

ATTEMPTS = ("first", "placed", "all")  # written out, because importing their home would load the engine's floor


@click.command(epilog="Example: fastsim explain runs/mix 17 --attempt first")
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("pods", metavar="[POD]...", nargs=-1)
@click.option("--sample", type=click.IntRange(1), metavar="N", help="N pods spread over the run, instead of POD.")
@click.option("--attempt", type=click.Choice(ATTEMPTS), default="placed", show_default=True,
              help="Which decisions about a pod that had to wait.")  # fmt: skip
@click.option("--all", "every", is_flag=True, help="Every node, not the best ten.")
@click.option("--csv", "csv", type=click.Path(path_type=Path), metavar="FILE", help="All rows as a CSV table.")
@strict_option
@click.option("--json", "as_json", is_flag=True, help="Print all rows as JSON.")
def explain(
    folder: Path, pods: tuple[str, ...], sample: int | None, attempt: str, every: bool, csv: Path | None, strict: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Why pods of a saved run went where they went: every node's filter and points.

    RUN is the folder of a saved run, POD a pod_id or the pod's name in the source, whose namespace may be left out. The
    run is played again up to the decision, so its inputs must still be what they were.
    """
    if bool(pods) == bool(sample):
        raise click.UsageError("give either pods or --sample N")
    from fastsim.decisions.explain import explained
    from fastsim.decisions.explain_text import explanation_text, write_csv
    from fastsim.reports import text_tables
    from fastsim.reports.progress import progress_bar

    if strict:
        refuse_run(folder)
    with progress_bar("pods") as progress:
        found = explained(folder, pods, sample=sample or 0, attempt=attempt, progress=progress)
    if csv:
        write_csv(found.frame(), csv)
    click.echo(text_tables.table_json(found.frame()) if as_json else explanation_text(found, every), nl=as_json)

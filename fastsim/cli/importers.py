"""Verbs that import tables with columns of any names, and published traces."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastsim.cli.data import PARQUET, refuse
from fastsim.cli.data import import_ as import_
from fastsim.cli.grammar.standard_streams import READ
from fastsim.cli.list import PUBLISHED

if TYPE_CHECKING:
    import pyarrow as pa

    from fastsim.workload import Workload

WITH_NODES = ("pai", "alibaba")
"""Published traces whose nodes are published, too."""
PREVIEWED, CELL = 10, 40
"""Rows of a preview, and characters of a cell."""


@import_.command("csv")
@click.argument("source", metavar="FILE", type=READ)
@click.option(
    "--map", "maps", multiple=True, metavar="COLUMN=SOURCE,...",
    help="Sources of our columns: submit_s=start[iso],num_gpu=plan_gpu/100; again for more.",
)  # fmt: skip
@click.option("-o", "--out", "output", metavar="OUT", type=PARQUET, help="Parquet file.  [default: none]")
@click.option("--nodes", "as_nodes", is_flag=True, help="FILE is a list of nodes, not of pods.")
@click.option("--where", metavar="CONDITION", help="Rows to keep, such as \"state = 'COMPLETED'\".")
@click.option("--origin", help="First arrival: min = 0 s, keep = the clock of FILE.  [default: min]")
@click.option("--delimiter", default=",", show_default=True, help="Separator of fields; \\t is a tab.")
def import_csv(
    source: Path, maps: tuple[str, ...], output: Path | None, as_nodes: bool, where: str | None, origin: str | None,
    delimiter: str,
) -> None:  # fmt: skip
    """Pods or nodes of any table (CSV, CSV.gz or Parquet): ten rows, what looks wrong, and OUT if there is one.

    Units of times: start[ms], start[iso], elapsed[hms]. What is not mapped stays as native_ columns. Nothing is
    written if a row breaks a rule (exit code 2).
    """
    from fastsim.cluster.cluster import Cluster
    from fastsim.cluster.column_mapping import columns_of
    from fastsim.workload import Workload

    columns, delimiter = columns_of(maps), "\t" if delimiter == "\\t" else delimiter
    if len(delimiter) != 1:
        raise click.UsageError(f"--delimiter {delimiter!r} is not one character")
    if as_nodes:
        refuse({"origin": origin} if origin else {}, "--nodes")
        cluster = Cluster.from_csv(source, columns, where=where, delimiter=delimiter)
        _preview(cluster.own_columns())
        if output is not None:
            cluster.to_parquet(output)
        click.echo(f"{output or source}: {len(cluster):,} nodes")
        return
    workload = Workload.from_csv(source, columns, where=where, delimiter=delimiter, origin=origin or "min")
    _preview(workload.table())
    _lint(workload)
    rows = workload.rows if output is None else workload.write(output)
    click.echo(f"{output or source}: {rows:,} pods")


def _preview(table: pa.Table) -> None:
    """The first ten rows; columns that do not fit beside the others stand below them."""
    from shutil import get_terminal_size

    width, lines = get_terminal_size((120, 24)).columns, [""] * (PREVIEWED + 1)
    for name, values in table.slice(0, PREVIEWED).to_pydict().items():
        texts = [name, *("" if value is None else " ".join(str(value).split())[:CELL] for value in values)]
        wide = max(map(len, texts))
        if lines[0] and len(lines[0]) + 2 + wide > width:
            click.echo("\n".join(line.rstrip() for line in lines[: len(texts)]) + "\n")
            lines = [""] * (PREVIEWED + 1)
        lines[: len(texts)] = [f"{line}  {text:>{wide}}" for line, text in zip(lines, texts, strict=False)]
    click.echo("\n".join(line.rstrip() for line in lines[: min(len(table), PREVIEWED) + 1]))


def _lint(workload: Workload) -> None:
    """Print what looks wrong about the rows, and about a table without any."""
    from fastsim.workload import lint

    for one in lint.trace_findings(workload):
        click.echo(lint.finding_text(one))


def _published(name: str, text: str) -> click.Command:
    """The verb that imports one published trace."""

    @click.argument("source", metavar="SRC", type=READ)
    @click.option("-o", "--out", "output", required=True, metavar="FILE", type=PARQUET, help="Parquet file.")
    @click.option("--where", metavar="CONDITION", help="Rows to keep, a condition over columns of SRC.")
    @click.option("--origin", help="First arrival: min = 0 s, keep = the trace's clock.  [default: min]")
    @click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any other option of the importer.")
    def verb(
        source: Path, output: Path, where: str | None, origin: str | None, settings: tuple[str, ...],
        as_nodes: bool = False,
    ) -> None:  # fmt: skip
        from fastsim.cluster.cluster import Cluster
        from fastsim.cluster.published_nodes import import_nodes
        from fastsim.foundation.option_texts import settings_of
        from fastsim.workload.texts import import_trace

        options: dict[str, Any] = {"where": where, "origin": origin}
        options = {key: value for key, value in options.items() if value is not None}
        options |= settings_of(f"{name} {source}", settings)
        if as_nodes:
            refuse(options, "--nodes")
            cluster = Cluster(*import_nodes(name, source))
            cluster.to_parquet(output)
            click.echo(f"{output}: {len(cluster):,} nodes")
            return
        workload = import_trace(name, source, **options)
        left_out = int(workload.metadata.get("fastsim.left_out", 0))
        click.echo(f"{output}: {workload.write(output):,} pods or jobs")
        if left_out:
            rows = "1 row" if left_out == 1 else f"{left_out:,} rows"
            click.echo(f"{rows} left out, for which this does not hold: {workload.metadata['fastsim.where']}")

    if name in WITH_NODES:
        verb = click.option("--nodes", "as_nodes", is_flag=True, help="SRC is a list of nodes.")(verb)
    return click.command(name, help=f"{text[0].upper()}{text[1:]}.")(verb)


for _name, _text in PUBLISHED.items():
    import_.add_command(_published(_name, _text))

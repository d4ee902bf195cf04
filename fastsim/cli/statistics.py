"""Verbs that look at a sweep with statistics: sweep stats, sweep knee."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder", metavar="DIR")
@click.option("--metric", default="jct_mean_s", show_default=True, metavar="M", help="Column of the summary.")
@click.option("--over", default="policy", show_default=True, metavar="KEY", help="What competes.")
@click.option("--pairs", default="seed", show_default=True, metavar="KEY", help="What repetitions differ in.")
@click.option("--higher", is_flag=True, help="More is better.  [default: less is]")
@click.option("--level", type=float, default=0.95, show_default=True, help="Of intervals and of the verdict.")
@click.option("--bootstrap", is_flag=True, help="Intervals from resampling instead of Student's t.")
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def stats(
    folder: str, metric: str, over: str, pairs: str, higher: bool, level: float, bootstrap: bool, as_json: bool
) -> None:
    """Means with confidence intervals, and who wins: DIR is the folder of a sweep.

    Each candidate is compared with the best one, pair by pair; a difference counts if it is significant after
    correction for the number of comparisons (Holm).
    """
    from fastsim.experiments.statistics import winners
    from fastsim.experiments.sweep.table import sweep_table, winners_text
    from fastsim.reports import text_tables

    rows, axes = sweep_table(folder)
    method, drawn = "bootstrap" if bootstrap else "t", pairs.split(",")
    by = [name for name in axes if name not in (over, *drawn) and rows[name].n_unique() > 1]
    found = winners(rows, metric, over=over, pairs=drawn, by=by, higher=higher, level=level, method=method)
    click.echo(text_tables.table_json(found) if as_json else winners_text(found, metric, [*by, over]), nl=as_json)


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--low", type=float, required=True, metavar="R", help="A load that is stable for sure.")
@click.option("--high", type=float, required=True, metavar="R", help="A load that is not.")
@click.option("--key", default="rate_per_hour", show_default=True, help="The key of the load.")
@click.option("--tolerance", type=float, default=0.05, show_default=True, help="Relative width of the answer.")
@click.option("--growth", type=float, default=0.05, show_default=True, help="Part that may stay.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Runs at a time.")
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def knee(
    file: Path, low: float, high: float, key: str, tolerance: float, growth: float, workers: int, as_json: bool
) -> None:
    """The largest stable load of every policy in a sweep file, by halving the interval.

    A load is too much if more than the part --growth of the arrivals stays: by so much the last third of them finds
    more jobs in the system than the third before. Give it some hundreds of jobs.
    """
    import tomllib

    from fastsim.errors import ScenarioError
    from fastsim.experiments.load_limit import knees, knees_text
    from fastsim.reports import text_tables

    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ScenarioError(str(file), str(error), "a readable TOML file") from None
    found = knees(values, low, high, key=key, tolerance=tolerance, growth=growth, workers=workers, where=str(file))
    click.echo(text_tables.table_json(found) if as_json else knees_text(found, key), nl=as_json)

"""The verb that runs many: sweep."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="Folder of all runs.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Worker processes.")
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def sweep(file: Path, out: Path, workers: int, as_json: bool) -> None:
    """Run the product of the lists in a TOML file, each run in a folder of its own; complete ones are kept.

    FILE has fields of a scenario (cluster, policy, seed, round_s, window, ...) and options of generated jobs
    (rate_per_hour, jobs, multi_gpu, ...). A list stands for a run with each of its values, { from, to, points } for
    equal steps. `python -m pydoc fastsim.sweep` explains all keys, and which flag of Gavel's sweeps each is.
    """
    from fastsim import show
    from fastsim.errors import FastsimError
    from fastsim.progress import progress_bar
    from fastsim.sweep import TABLE, sweep_from_toml, swept

    class Interrupted(FastsimError):
        exit_code = 130

    runs = sweep_from_toml(file)
    try:
        with progress_bar("runs", len(runs)) as progress:
            table = swept(runs, out, workers, progress)
    except KeyboardInterrupt:
        done = sum((out / run.name).exists() for run in runs)
        if not done:
            raise
        told = f"interrupted; {done} of {len(runs)} runs are complete; the same command goes on"
        raise Interrupted(told) from None
    if as_json:
        click.echo(show.table_json(table), nl=False)
        return
    click.echo(show.sweep_text(table, list(runs[0].listed)), nl=False)
    click.echo(f"{len(runs)} runs in {out}, table: {out / TABLE}")

"""The verbs that run many: sweep, sweep init."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastsim.cli.statistics import knee, stats
from fastsim.foundation import interrupts

if TYPE_CHECKING:
    from fastsim.experiments.sweep.sweep import Run

# Written out, because importing their homes would cost every command the time to load the engine's floor.
PLACES = ("processes", "threads", "serial", "ray", "dask")


class _FileOrVerb(click.Group):
    """A group whose first word may also be a sweep file."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The verb and its arguments."""
        if args and args[0] not in self.commands:
            args = ["run", *args]
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments that are left."""
        if args and args[0].startswith("-") and args[0] not in ("-h", "--help"):
            args = ["run", *args]  # options may come before the file
        return super().parse_args(ctx, args)


@click.group(cls=_FileOrVerb)
def sweep() -> None:
    """Run many: `fastsim sweep FILE --out DIR` is `fastsim sweep run FILE --out DIR`."""


@sweep.command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "-o", "--out", required=True, metavar="DIR", help="Folder of all runs, or a URL such as s3://bucket/runs."
)
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Runs at a time.")
@click.option(
    "--on", type=click.Choice(PLACES), default="processes", show_default=True, help="Where: the same bytes from each."
)
@click.option("--address", metavar="A", help="Ray or Dask cluster that is there.  [default: one is started here]")
@click.option("--timeout", "timeout_s", type=float, metavar="S", help="Give a run up that takes more than S seconds.")
@click.option("--storage-option", "options", multiple=True, metavar="K=V", help="Of a URL, as fsspec takes them.")
@click.option("--resume", is_flag=True, help="Only go on: an error if DIR has no sweep.")
@click.option("--dry-run", is_flag=True, help="Check everything and list the runs; run nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def run(
    file: Path, out: str, resume: bool, dry_run: bool, as_json: bool, options: tuple[str, ...], **where: Any
) -> None:  # fmt: skip
    """Run the product of the lists in a TOML file, each run in a folder of its own; complete ones are kept.

    FILE has fields of a scenario (cluster, policy, seed, round_s, window, ...) and options of generated jobs
    (rate_per_hour, jobs, multi_gpu, ...). A list stands for a run with each of its values, { from, to, points } for
    equal steps, [[zip]] for lists that go together. `python -m pydoc fastsim.experiments.sweep.sweep` explains all
    keys, and which flag of Gavel's sweeps each is. A run that fails takes no other with it; the same command tries it
    again.
    """
    from fastsim.errors import Interrupted, ResultError
    from fastsim.experiments.sweep.store import store_at
    from fastsim.experiments.sweep.sweep import PLAN, TABLE, Where, sweep_from_toml, swept
    from fastsim.reports import text_tables
    from fastsim.reports.progress import sweep_bar

    runs, storage = sweep_from_toml(file), _options(options)
    store = store_at(out, storage)
    if resume and store.text(PLAN) is None:
        raise ResultError(f"{out}: found no sweep, expected one to go on with; leave out --resume to begin")
    if dry_run:
        click.echo(_plan(runs, _complete(runs, store), as_json), nl=False)
        return
    try:
        with sweep_bar() as watch:
            table = swept(runs, out, where=Where(**where), watch=watch, storage_options=storage)
    except interrupts.STOPPED as stopped:
        done = sum(store.record(run.name) is not None for run in runs)
        if not done:
            raise
        told = f"interrupted; {done} of {len(runs)} runs are complete; the same command goes on"
        raise Interrupted(told, interrupts.exit_code(stopped)) from None
    if as_json:
        click.echo(text_tables.table_json(table), nl=False)
        return
    click.echo(text_tables.sweep_text(table, list(runs[0].listed)), nl=False)
    click.echo(f"{len(runs)} runs in {out}, table: {_joined(out, TABLE)}")


@sweep.command(context_settings={"ignore_unknown_options": True})
@click.argument("kind")
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="[default: KIND.toml]")
@click.option("--data", type=click.Path(path_type=Path), metavar="DIR", help="fgd, pwr: folder of openb's lists.")
@click.option("--force", is_flag=True, help="Replace the file.")
def init(kind: str, flags: tuple[str, ...], output: Path | None, data: Path | None, force: bool) -> None:
    """Write a sweep file: fgd, pwr, gavel-continuous, gavel-static, synergy or sia.

    The Gavel kinds take the flags of run_sweep_continuous.py and run_sweep_static.py as they are written there; without
    any, they are the experiments of the paper.
    """
    from fastsim.errors import ScenarioError
    from fastsim.experiments.sweep.templates import sweep_text
    from fastsim.reports.charts.chart_files import written_file

    path = output or Path(f"{kind}.toml")
    text = sweep_text(kind, data, flags)
    if path.exists() and not force:
        raise ScenarioError(f"--output {path}", "a file that exists already", "a new one", "or use --force")
    written_file(path, text.encode())
    click.echo(f"{path}: run it with `fastsim sweep {path} --out runs --workers 2`")


sweep.add_command(stats)
sweep.add_command(knee)


def _joined(out: str, name: str) -> str:
    return f"{out.rstrip('/')}/{name}" if "://" in out else str(Path(out) / name)


def _options(words: tuple[str, ...]) -> dict[str, str]:
    from fastsim.errors import ScenarioError

    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise ScenarioError("--storage-option", repr(word), "NAME=VALUE")
        found[name] = value
    return found


def _complete(runs: list[Run], store: Any) -> list[bool]:
    from fastsim.experiments.sweep.run import is_complete

    return [is_complete(store, run) for run in runs]


def _plan(runs: list[Run], complete: list[bool], as_json: bool) -> str:
    import json

    if as_json:
        rows = [
            {"run": run.name, "id": run.scenario.id, "complete": done, "scenario": run.scenario.to_dict()}
            for run, done in zip(runs, complete, strict=True)
        ]
        return json.dumps(rows, indent=2) + "\n"
    pairs = zip(runs, complete, strict=True)
    lines = [f"{run.scenario.id}  {'done' if done else '    '}  {run.name}" for run, done in pairs]
    return "\n".join([*lines, f"{len(runs)} runs, {sum(complete)} complete; nothing was run"]) + "\n"

"""Verbs of many runs: sweep with its statistics, plan (nodes to add), reproduce (figures of papers)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastsim.cli.grammar.durations import DURATION
from fastsim.cli.grammar.option_defaults import written_out
from fastsim.cli.grammar.standard_streams import READ, READ_NAME, READ_TEXT, FileWritten
from fastsim.cli.grammar.verbs import UsualVerb
from fastsim.cli.strict import allow_code_option, refuse_scenario, strict_option
from fastsim.foundation import interrupts

if TYPE_CHECKING:
    from fastsim.experiments.sweep.sweep import Run

# A copy: importing the executors would load the engine for every command.
PLACES = ("processes", "threads", "serial", "ray", "dask")


@click.group(cls=UsualVerb)
def sweep() -> None:
    """Run many: `fastsim sweep FILE --out DIR` is `fastsim sweep run FILE --out DIR`."""


@sweep.command()
@click.argument("file", metavar="FILE", type=READ)
@click.option(
    "-o", "--out", required=True, metavar="DIR", help="Folder of all runs, or a URL such as s3://bucket/runs."
)
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Runs at a time.")
@click.option(
    "--on", type=click.Choice(PLACES), default="processes", show_default=True, help="Executor; all give the same bytes."
)
@click.option("--address", metavar="A", help="Existing Ray or Dask cluster.  [default: one is started here]")
@click.option("--timeout", "timeout_s", type=DURATION, metavar="S", help="Give up a run after S seconds.")
@click.option("--storage-option", "options", multiple=True, metavar="K=V", help="Option of fsspec for a URL.")
@click.option("--resume", is_flag=True, help="Only resume: an error if DIR has no sweep.")
@click.option("--dry-run", is_flag=True, help="Check everything and list the runs; run nothing.")
@allow_code_option
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def run(
    file: Path, out: str, resume: bool, dry_run: bool, allow_code: bool, as_json: bool, options: tuple[str, ...],
    **where: Any,
) -> None:  # fmt: skip
    """Run the product of the lists in a TOML file, each run in a folder of its own; complete ones are kept.

    FILE has fields of a scenario (cluster, policy, seed, round_s, window, ...) and options of generated jobs
    (rate_per_hour, jobs, multi_gpu, ...). A list stands for a run with each of its values, { from, to, points } for
    equal steps, [[zip]] for lists that go together. `python -m pydoc fastsim.experiments.sweep.sweep` explains all
    keys, and which flag of Gavel's sweeps each is. Nothing begins if a run cannot. A run that fails takes no other
    with it; the same command tries it again.
    """
    from fastsim.errors import Interrupted, ResultError
    from fastsim.experiments.sweep.store import store_at
    from fastsim.experiments.sweep.sweep import PLAN, TABLE, Where, refuse_mismatches, sweep_from_toml, swept
    from fastsim.reports import text_tables
    from fastsim.reports.progress import sweep_bar

    runs, storage = sweep_from_toml(file, allow_code), _options(options)
    store = store_at(out, storage)
    if resume and store.text(PLAN) is None:
        raise ResultError(f"{out}: found no sweep, expected one to go on with; leave out --resume to begin")
    if dry_run:
        refuse_mismatches(runs, str(file))
        click.echo(_plan(runs, _complete(runs, store), as_json), nl=False)
        return
    try:
        with sweep_bar() as watch:
            table = swept(runs, out, where=Where(**where), watch=watch, storage_options=storage, name=str(file))
    except interrupts.STOPPED as stopped:
        done = sum(store.record(run.name) is not None for run in runs)
        if not done:
            raise
        message = f"interrupted; {done} of {len(runs)} runs are complete; the same command goes on"
        raise Interrupted(message, interrupts.exit_code(stopped)) from None
    if as_json:
        click.echo(text_tables.table_json(table), nl=False)
        return
    click.echo(text_tables.sweep_text(table, list(runs[0].listed)), nl=False)
    click.echo(f"{len(runs)} runs in {out}, table: {_joined(out, TABLE)}")


@sweep.command(context_settings={"ignore_unknown_options": True})
@click.argument("kind")
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
@click.option("-o", "--out", "output", type=FileWritten(".toml"), metavar="FILE", help="[default: KIND.toml]")
@click.option("--data", type=click.Path(path_type=Path), metavar="DIR", help="fgd, pwr: folder of openb's lists.")
@click.option("--force", is_flag=True, help="Replace the file.")
def init(kind: str, flags: tuple[str, ...], output: Path | None, data: Path | None, force: bool) -> None:
    """Write a sweep file: fgd, pwr, gavel-continuous, gavel-static, synergy or sia.

    The Gavel kinds take the flags of run_sweep_continuous.py and run_sweep_static.py as they are written there; without
    any, they are the experiments of the paper.
    """
    from fastsim.errors import ScenarioError
    from fastsim.experiments.sweep.templates import GAVEL_KINDS, command_options, sweep_text, unused_flags
    from fastsim.reports.charts.chart_files import written_file

    path = output or Path(f"{kind}.toml")
    text = sweep_text(kind, data, flags)
    if path.exists() and not force:
        raise ScenarioError(f"--out {path}", "a file that exists already", "a new one", "or use --force")
    written_file(path, text.encode())
    options = "--out runs --workers 2"
    if kind in GAVEL_KINDS:
        options = command_options(kind, flags)
        for unused in unused_flags(kind, flags):
            click.echo(f"fastsim: warning: no effect of {unused}", err=True)
    click.echo(f"{path}: run it with `fastsim sweep {path} {options}`")


@sweep.command()
@click.argument("folder", metavar="DIR")
@click.option("--metric", default="jct_mean_s", show_default=True, metavar="M", help="Column of the summary.")
@click.option("--over", default="policy", show_default=True, metavar="KEY", help="Key of the candidates.")
@click.option("--pairs", default="seed", show_default=True, metavar="KEY", help="Key of the repetitions.")
@click.option("--higher/--lower", default=None, help="More, or less, is better.  [default: as the metric is defined]")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level of intervals and verdict.")
@click.option("--bootstrap", is_flag=True, help="Intervals from resampling instead of Student's t.")
@click.option("--tie-within", type=float, metavar="PERCENT", help="A tie: closer than this part of the best mean.")
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def stats(
    folder: str, metric: str, over: str, pairs: str, higher: bool | None, level: float, bootstrap: bool,
    tie_within: float | None, as_json: bool,
) -> None:  # fmt: skip
    """Means with confidence intervals, and the winner of each case: DIR is the folder of a sweep.

    The test compares each candidate with the best one, pair by pair; a difference counts if it is significant after
    correction for the number of comparisons (Holm). What the pairs do not tell is "cannot tell"; two candidates tie
    only within the bound of --tie-within, or if they are equal in every pair.
    """
    from fastsim.experiments.statistics.ranking import winners
    from fastsim.experiments.sweep.run import sweep_table
    from fastsim.experiments.sweep.winners_text import winners_text
    from fastsim.reports import text_tables

    rows, axes = sweep_table(folder)
    method, repeated = "bootstrap" if bootstrap else "t", pairs.split(",")
    by = [name for name in axes if name not in (over, *repeated) and rows[name].n_unique() > 1]
    bound = None if tie_within is None else tie_within / 100
    ranking = winners(rows, metric, over=over, pairs=repeated, by=by, higher=higher, level=level, method=method,
                      equivalence=bound)  # fmt: skip
    click.echo(text_tables.table_json(ranking) if as_json else winners_text(ranking, metric, [*by, over]), nl=as_json)


@sweep.command()
@click.argument("file", metavar="FILE", type=READ)
@click.option("--low", type=float, required=True, metavar="R", help="A load known to be stable.")
@click.option("--high", type=float, required=True, metavar="R", help="A load known to be unstable.")
@click.option("--key", default="rate_per_hour", show_default=True, help="The key of the load.")
@click.option("--tolerance", type=float, default=0.05, show_default=True, help="Relative precision of the limit.")
@click.option("--growth", type=float, default=0.05, show_default=True, help="Growth limit, over arrivals.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Runs at a time.")
@allow_code_option
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def knee(
    file: Path,
    low: float,
    high: float,
    key: str,
    tolerance: float,
    growth: float,
    workers: int,
    allow_code: bool,
    as_json: bool,
) -> None:
    """The largest stable load of every policy in a sweep file, by halving the interval.

    A load is too high if more jobs stay in the system than the part --growth of the arrivals: the mean number of jobs
    that the last third of arrivals meets, less that of the third before. Use some hundreds of jobs.
    """
    from fastsim.errors import ScenarioError
    from fastsim.experiments.load_limit import knees, knees_text
    from fastsim.foundation.nested_text import toml_value
    from fastsim.reports import text_tables

    try:
        values = toml_value(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ScenarioError(str(file), str(error), "a readable TOML file") from None
    limits = knees(
        values,
        low,
        high,
        key=key,
        tolerance=tolerance,
        growth=growth,
        workers=workers,
        where=str(file),
        allow_code=allow_code,
    )
    click.echo(text_tables.table_json(limits) if as_json else knees_text(limits, key), nl=as_json)


@click.command(
    epilog="Example: fastsim plan --cluster openb:200 --workload 'synth:openb?pods=2000' --add g2 --add 2*t4+g2"
)
@click.option(
    "--cluster", type=READ_TEXT, metavar="C", help="The cluster as it is: openb:1000, kubernetes:PATH, a table, ..."
)
@click.option(
    "--workload", type=READ_TEXT, metavar="W", help="Its workload: kubernetes:PATH, synth:openb?pods=1000, a file, ..."
)
@click.option("--policy", metavar="P", help="A name or a sum: 'fgd', '0.9*fgd + 0.1*pwr'.  [default: fgd]")
@click.option(
    "--scenario", type=READ_NAME, metavar="FILE", help="TOML file with any of these; options here come first."
)
@click.option("--seed", type=int, help="Seed of every random choice.  [default: 0]")
@click.option(
    "--queue", metavar="Q", help="Pods that fit nowhere: drop, fifo(-skip), ...  [default: drop; with a wait fifo]"
)
@click.option("--add", "kinds", multiple=True, required=True, metavar="NODE_TYPE",
              help="Possible addition, again for more: g2, 2*g2+t4, node:NAME (a copy), a YAML file.")  # fmt: skip
@click.option(
    "--p95-wait-s", type=DURATION, metavar="S", help="95 % of the pods shall wait less; else all shall just fit."
)
@click.option(
    "--durations", type=READ_TEXT, metavar="W",
    help="Pods whose mean durations, by owner, tenant or of all, pods have that state none: a workload, or own.",
)  # fmt: skip
@click.option(
    "--pod-duration-s", type=DURATION, metavar="S",
    help="Duration of pods that state none, with --durations in place of the mean of all.  [default: endless]",
)  # fmt: skip
@click.option("--node-prices", metavar="P", help="$ an hour of a node: 'g2=12.5&t4=1', or a CSV file of tariffs.")
@click.option("--carbon", metavar="C", help="g of CO2 for a kWh: 350, '350?pue=1.2', 'FILE.csv?pue=1.2'.")
@click.option(
    "--objective", type=click.Choice(("cost", "energy", "nodes")), help="Puts the alternative with least first."
)
@click.option("--most", type=click.IntRange(1), default=10_000, show_default=True, help="Most additions to try.")
@click.option("--workers", type=click.IntRange(1), default=2, show_default=True, help="Runs side by side.")
@strict_option
@allow_code_option
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def plan(
    scenario: str | None, kinds: tuple[str, ...], p95_wait_s: float | None, durations: str | None,
    pod_duration_s: float | None, node_prices: str | None,
    objective: str | None, most: int, workers: int, strict: bool, allow_code: bool, as_json: bool, **options: Any,
) -> None:  # fmt: skip
    """Find the fewest nodes to add so that every pod fits, or so that pods wait less than a limit.

    Each --add is searched for by itself, by bisection over runs; the answer suffices, and one less does not. Exit code
    1 if no --add has an answer.
    """
    from fastsim.experiments.capacity_plan import ENOUGH, FOUND, smallest_additions
    from fastsim.reports import text_tables
    from fastsim.reports.progress import progress_bar
    from fastsim.scenario.scenario import Scenario

    values = {name: value for name, value in options.items() if value is not None}
    fields = written_out(values) if scenario else values
    base = Scenario.from_toml(scenario, allow_code).with_(**fields) if scenario else Scenario.from_dict(fields)
    if strict:
        refuse_scenario(base)
    with progress_bar("runs") as progress:
        table = smallest_additions(
            base, kinds, p95_wait_s=p95_wait_s, most=most, workers=workers, progress=progress,
            node_prices=node_prices, objective=objective, pod_duration_s=pod_duration_s,
            durations=durations,
        )  # fmt: skip
    click.echo(text_tables.table_json(table) if as_json else text_tables.plan_text(table), nl=as_json)
    if not set(table["outcome"]) & {FOUND, ENOUGH}:
        click.get_current_context().exit(1)


MOST_CELLS = 400
"""Cells of a reproduction that are printed one by one; of more, counts and what is outside."""
WORDS = ("figure", "status", "reason")
FIGURE_COLUMNS = (
    ("figure", "figure"), ("status", "status"), ("numbers", "printed"), ("cells", "made"), ("same", "same"),
    ("within", "within"), ("outside", "outside"), ("cpu_s", "CPU s"), ("reason", "reason"),
)  # fmt: skip
ALL = "all"
COUNT_COLUMNS = tuple((name, name) for name in ("figure", "same", "within", "outside", "indicative"))


@click.command()
@click.argument("paper", metavar="fgd|pwr|gavel|synergy|sia|pollux|monitor|all")
@click.option(
    "--data", type=click.Path(path_type=Path), metavar="DIR", help="Folder with the paper's lists of pods or jobs."
)
@click.option("--quick", is_flag=True, help="The first trace, load and seeds only.")
@click.option("--whole", is_flag=True, help="Every load of gavel's figures instead of a few; takes hours.")
@click.option(
    "--policy", "policies", multiple=True, metavar="P", help="Only this policy (sia, pollux, synergy); repeatable."
)
@click.option("--figure", "figures", multiple=True, metavar="F", help="Only this figure of --list; repeatable.")
@click.option("--list", "listed", is_flag=True, help="Print the paper's figures, and run nothing.")
@click.option("--workers", type=click.IntRange(1), default=2, show_default=True, help="Worker processes.")
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="DIR", help="[default: reproduced-PAPER]")
@click.option("--strict", is_flag=True, help="Exit code 1 if a cell is outside.")
@click.option("--json", "as_json", is_flag=True, help="Print all cells, or the figures of --list, as JSON.")
def reproduce(
    paper: str, data: Path | None, quick: bool, whole: bool, policies: tuple[str, ...], figures: tuple[str, ...],
    listed: bool, workers: int, out: Path | None, strict: bool, as_json: bool,
) -> None:  # fmt: skip
    """Reproduce the figures of a paper beside the published ones: a page and Parquet tables.

    With --data, inputs are the original lists and recorded runs in that folder; without it they are generated, which
    the page notes. `all` makes every figure that can be reproduced, the cheapest first; the same command goes on after
    a stop.
    """

    from fastsim.experiments.reproduce import papers
    from fastsim.experiments.reproduce.published_numbers import figure_table
    from fastsim.foundation.folder_lock import held
    from fastsim.reports import text_tables
    from fastsim.reports.progress import progress_bar

    if paper == ALL:
        _reproduce_all(
            data=data,
            quick=quick,
            whole=whole,
            policies=policies,
            figures=figures,
            listed=listed,
            workers=workers,
            out=out,
            strict=strict,
            as_json=as_json,
        )
        return
    if listed:
        papers.check_paper(paper)
        _echo_figures(figure_table(paper), as_json)
        return
    folder = out or Path(f"reproduced-{paper}")
    count = papers.run_count(paper, data, quick, policies, figures, whole)
    with held(folder, overwrite=out is None), progress_bar("runs", count) as progress:
        reproduction = papers.reproduce(
            paper, data, quick=quick, workers=workers, policies=policies, figures=figures, progress=progress,
            whole=whole,
        )  # fmt: skip
        reproduction.write(folder)
    if as_json:
        click.echo(text_tables.table_json(reproduction.cells))
    else:
        _echo_cells(reproduction, folder, bool(policies))
    if strict and reproduction.count("outside"):
        sys.exit(1)


def _echo_figures(table: Any, as_json: bool) -> None:
    """Print the table of a paper's figures."""
    from fastsim.reports import text_tables

    text = text_tables.table_json(table) if as_json else text_tables.text_table(table, FIGURE_COLUMNS, WORDS)
    click.echo(text, nl=as_json)


def _echo_cells(reproduction: Any, folder: Path, every: bool) -> None:
    """Print the cells that have a reference, or ``every`` one; of more than `MOST_CELLS` their counts."""
    import polars as pl

    from fastsim.reports import text_tables

    known = reproduction.cells if every else reproduction.cells.filter(pl.col("verdict") != "no reference")
    if len(known) > MOST_CELLS:
        click.echo(text_tables.text_table(reproduction.counts, COUNT_COLUMNS, WORDS), nl=False)
        known = known.filter(pl.col("verdict") == "outside").head(MOST_CELLS)
    if len(known):
        click.echo(text_tables.reproduction_text(known), nl=False)
    click.echo(f"{reproduction.source}\n{reproduction.verdict}; {reproduction.effort}")
    click.echo(f"page: {folder / 'index.html'}")


def _reproduce_all(
    data: Path | None, quick: bool, whole: bool, policies: tuple[str, ...], figures: tuple[str, ...], listed: bool,
    workers: int, out: Path | None, strict: bool, as_json: bool,
) -> None:  # fmt: skip
    """The figures of all papers into one folder, or (``listed``) their table."""
    from fastsim.errors import Interrupted, ScenarioError
    from fastsim.experiments import all_figures
    from fastsim.experiments.reproduce import papers
    from fastsim.foundation.folder_lock import held
    from fastsim.reports import text_tables

    for option, names in (("--policy", policies), ("--figure", figures)):
        if names:
            raise ScenarioError(option, ", ".join(names), "none with `all`, which makes every figure")
    if whole:
        expected = f"one of {', '.join(papers.LOADED)}: of some figures `all` makes a few loads"
        raise ScenarioError("--whole", ALL, expected)
    folder = out or Path(f"reproduced-{ALL}")
    if listed:
        table = all_figures.summary(folder)
    else:
        with held(folder, overwrite=True, grows=True):
            try:
                table = all_figures.made_into(folder, data, quick, workers, _print_figure)
            except interrupts.STOPPED as stopped:
                message = f"interrupted; the figures so far are in {folder}; the same command goes on"
                raise Interrupted(message, interrupts.exit_code(stopped)) from None
    columns = tuple((name, name) for name in ("paper", "figure", "status", "same", "within", "outside", "reason"))
    click.echo(
        text_tables.table_json(table) if as_json else text_tables.text_table(table, columns, ("paper", *WORDS)),
        nl=as_json,
    )
    if not as_json and not listed:
        click.echo(f"page: {folder / all_figures.INDEX}")
    if not listed and ((table["status"] == "failed").any() or (strict and table["outside"].sum())):
        sys.exit(1)


def _print_figure(progress: Any) -> None:
    """Print one line about a complete or failed figure on standard error."""
    outcome = progress.error or f"{len(progress.cells):,} cells"
    rest = f"{progress.left} figures left, {progress.left_s:,.0f} s of CPU time known"
    click.echo(f"{progress.figure.paper} {progress.figure.figure}: {outcome}; {rest}", err=True)


def _joined(out: str, name: str) -> str:
    return f"{out.rstrip('/')}/{name}" if "://" in out else str(Path(out) / name)


def _options(words: tuple[str, ...]) -> dict[str, str]:
    from fastsim.errors import ScenarioError

    options = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise ScenarioError("--storage-option", repr(word), "NAME=VALUE")
        options[name] = value
    return options


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

"""Verbs about single runs: run, resume, fork, demo, compare, explain."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastsim.cli.grammar.durations import DURATION, Duration
from fastsim.cli.grammar.option_defaults import written_out
from fastsim.cli.grammar.saved_runs import reads_saved_runs
from fastsim.cli.grammar.scenario_options import BY_NAME, GroupedOptions, scenario_options
from fastsim.cli.grammar.standard_streams import READ_NAME, FileWritten
from fastsim.cli.strict import allow_code_option, refuse_run, refuse_scenario, strict_option
from fastsim.foundation import interrupts
from fastsim.foundation.limits.garbage import settled

if TYPE_CHECKING:
    import polars as pl

RECORD = "run.json"
"""The file whose status changes when a folder gets another result."""
OVERSIZED = ("drop", "shrink", "refuse")
ATTEMPTS = ("first", "placed", "all")
GROUPS = ("size", "tenant", "hour")


@click.command(cls=GroupedOptions)
@scenario_options
@click.option("--oversized", type=click.Choice(OVERSIZED), help="Jobs on more GPUs than there are of one model.")
@click.option(
    "--scenario", type=READ_NAME, metavar="FILE", help="TOML file with any of these; options here come first."
)
@click.option("--force", is_flag=True, help="Replace the folder of an earlier run.")
@click.option("--checkpoint", metavar="N|Ss", help="Keep the state every N pods, or S seconds of work ('60s').")
@click.option("--keep-checkpoint", is_flag=True, help="Leave the last one beside the folder, for fastsim fork.")
@strict_option
@allow_code_option
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@settled()
def run(
    scenario: str | None, out: Path | None, force: bool, checkpoint: str | None, keep_checkpoint: bool, as_json: bool,
    strict: bool, allow_code: bool, oversized: str | None, **options: Any,
) -> None:  # fmt: skip
    """Place pods on a cluster, or run jobs on it in rounds, and print a summary."""
    from fastsim.reports import text_tables
    from fastsim.reports.progress import progress_bar
    from fastsim.scenario.scenario import Scenario
    from fastsim.simulation import simulate as simulation

    keeping = _checkpoints(checkpoint, keep_checkpoint)
    given = {name: value for name, value in options.items() if value is not None and value != ()}
    chosen = written_out(given) if scenario else given
    base = Scenario.from_toml(scenario, allow_code).with_(**chosen) if scenario else Scenario.from_dict(chosen)
    if oversized:
        base = base.with_(workload=f"{base.workload}{'&' if '?' in str(base.workload) else '?'}oversized={oversized}")
    out = out or (Path(base.out) if base.out else None)
    _check_folder(out, force)
    if "record" not in chosen and not scenario:
        base = base.with_(record="all" if out else "summary")
    if strict:
        refuse_scenario(base)
    with _resumable(out):
        with progress_bar("pods") as progress:
            result = simulation.run(base.with_(out=out), progress, force, keeping)
        _warn_of_dropped(result)
        click.echo(text_tables.result_json(result) if as_json else text_tables.summary_text(result, out), nl=as_json)


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace the folder of an earlier run.")
@allow_code_option
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def resume(folder: Path, force: bool, allow_code: bool, as_json: bool) -> None:
    """Go on with a stopped run from its checkpoint; DIR is the folder it was to write."""
    from fastsim.reports import text_tables
    from fastsim.reports.progress import progress_bar
    from fastsim.simulation import resume as resuming

    _check_folder(folder, force)
    with _resumable(folder):
        with progress_bar("pods") as progress:
            result = resuming.resume(folder, progress=progress, overwrite=force, allow_code=allow_code)
        _warn_of_dropped(result)
        click.echo(text_tables.result_json(result) if as_json else text_tables.summary_text(result, folder), nl=as_json)


@click.command()
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--at", "at_s", type=DURATION, metavar="S", help="Seconds of simulated time.  [default: the checkpoint's]"
)
@click.option("--policy", metavar="P", help="Another policy from then on.")
@click.option("--queue", metavar="Q", help="Another rule for pods that fit nowhere.")
@click.option("--gpu-pick", type=click.Choice(BY_NAME["gpu_pick"].choices), help="Another rule for the GPUs of a node.")
@click.option("--seed", type=int, help="Another seed.")
@click.option("--until", "until_s", type=DURATION, metavar="S", help="Stop after S seconds of simulated time.")
@click.option("--inflation", type=float, metavar="R", help="After the run: clones up to R times the pods.")
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="Folder of the fork.")
@click.option("--force", is_flag=True, help="Replace the folder of an earlier run.")
@allow_code_option
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def fork(
    folder: Path, out: Path, at_s: float | None, force: bool, allow_code: bool, as_json: bool, **options: Any
) -> None:  # fmt: skip
    """Go on from the checkpoint of a run with other options; RUN is its folder."""
    from fastsim.reports import text_tables
    from fastsim.reports.progress import progress_bar
    from fastsim.simulation import resume as resuming

    changes = {name: value for name, value in options.items() if value is not None}
    _check_folder(out, force)
    with _resumable(out):
        with progress_bar("pods") as progress:
            result = resuming.fork(
                folder, out, at_s=at_s, progress=progress, overwrite=force, allow_code=allow_code, **changes
            )
        _warn_of_dropped(result)
        click.echo(text_tables.result_json(result) if as_json else text_tables.summary_text(result, out), nl=as_json)


@click.command()
@click.argument("folders", nargs=-1, required=True, metavar="DIR...", type=click.Path(path_type=Path))
@click.option("--html", type=FileWritten(".html"), metavar="FILE", help="Report with table and charts, one file.")
@click.option("--png", type=FileWritten(".png"), metavar="FILE", help="Picture of the charts.")
@click.option("--svg", type=FileWritten(".svg"), metavar="FILE", help="Picture of the charts.")
@click.option("--metric", "metrics", multiple=True, metavar="M", help="Chart to draw, again for more.  [default: four]")
@click.option("--why", is_flag=True, help="Two runs of one workload: which jobs are faster, and in what part.")
@click.option("--by", "group", type=click.Choice(GROUPS), default="size", show_default=True,
              help="Groups of jobs in the picture of --why.")  # fmt: skip
@click.option("--original", metavar="SYSTEM:FILE", help="A result file of fgd, pwr, gavel, synergy, sia or pollux.")
@click.option("--tolerance", type=click.FloatRange(0), metavar="R",
              help="Part of the original's value by which ours may be off.  [default: 0]")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
@reads_saved_runs
def compare(
    folders: tuple[Path, ...], as_json: bool, metrics: tuple[str, ...], why: bool, group: str, original: str | None,
    tolerance: float | None, **files: Path | None,
) -> None:  # fmt: skip
    """Compare saved runs: a table, and charts over the demand that has arrived.

    DIR is the folder of a run, or of a sweep with runs in it. With --why two runs are compared job by job: differences
    of completion times, split into waiting, paused, restarting, redoing lost work and working, by size, tenant and hour
    of arrival, and the longest jobs. Two folders with several runs each, such as one for each seed, are compared run by
    run. With --original one run is compared with a log or
    table that an original simulator wrote; exit code 1 if a value is off by more than half its last printed digit and
    the tolerance.
    """
    if original is not None or tolerance is not None:
        _compare_with_original(folders, original, tolerance or 0.0, as_json, bool(metrics or any(files.values())))
        return
    if why:
        _compare_jobs(folders, as_json, group, files)
        return
    from fastsim.engine.result import Result
    from fastsim.reports import comparison as plots
    from fastsim.reports import text_tables
    from fastsim.reports.report import run_folders

    runs = run_folders(folders)
    comparison = plots.compare([Result.load(folder) for folder in runs], _labels(runs))
    for kind, path in files.items():
        if path is not None:
            getattr(comparison, f"to_{kind}")(path, *([metrics] if metrics else []))
    click.echo(
        text_tables.table_json(comparison.table) if as_json else text_tables.comparison_text(comparison.table),
        nl=as_json,
    )


def _compare_jobs(folders: tuple[Path, ...], as_json: bool, group: str, files: Mapping[str, Path | None]) -> None:
    """Compare two runs, or the runs of two folders, job by job."""
    from fastsim.reports import text_tables
    from fastsim.reports.charts.chart_files import written_chart
    from fastsim.reports.pairs.pair_text import pairs_text
    from fastsim.reports.pairs.paired_jobs import paired_jobs
    from fastsim.reports.report import loaded_runs

    if len(folders) != 2:
        raise click.UsageError(f"found {len(folders)} folders with --why, expected two")
    a, b = (loaded_runs([folder]) for folder in folders)
    pairs = paired_jobs(a, b, (str(folders[0]), str(folders[1])))
    for path in files.values():
        if path is not None:
            written_chart(pairs.plot(group), path)
    click.echo(text_tables.table_json(pairs.jobs) if as_json else pairs_text(pairs), nl=as_json)


def _compare_with_original(
    folders: tuple[Path, ...], original: str | None, tolerance: float, as_json: bool, charts: bool
) -> None:
    from fastsim.engine.originals.differences import counts, differences, original_from
    from fastsim.engine.result import Result
    from fastsim.reports import text_tables

    if original is None:
        raise click.UsageError("--tolerance makes sense with --original only")
    if len(folders) != 1 or charts:
        found = "charts" if charts else f"{len(folders)} folders"
        raise click.UsageError(f"found {found} with --original, expected one run and no charts")
    rows = differences(Result.load(folders[0]), original_from(original), tolerance)
    columns = tuple((name, name) for name in ("figure", "values", "same", "ours", "original", "difference", "of"))
    if as_json:
        click.echo(text_tables.table_json(rows))
    else:
        click.echo(text_tables.text_table(counts(rows), columns, ("figure", "of")), nl=False)
        click.echo(f"{rows['equal'].sum():,} of {len(rows):,} values are equal")
    if not rows["equal"].all():
        click.get_current_context().exit(1)


@click.command()
@click.option("--nodes", type=click.IntRange(1), default=1213, show_default=True, help="Size of the cluster.")
@click.option("--pods", type=click.IntRange(1), default=8152, show_default=True, help="Pods before tuning to 1.3.")
@click.option("--seed", type=click.IntRange(0), default=42, show_default=True, help="Seed of every random choice.")
@click.option("--workers", type=click.IntRange(1), default=2, show_default=True, help="Worker processes.")
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="DIR", help="Folder for report and runs.")
@click.option("--force", is_flag=True, help="Replace the folder of an earlier run.")
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def demo(out: Path | None, force: bool, as_json: bool, **options: Any) -> None:
    """Compare the published placement policies on an openb-like cluster; needs no files."""
    from fastsim.experiments import demo as showcase
    from fastsim.reports import text_tables
    from fastsim.reports.progress import progress_bar

    folder = out or Path("fastsim-demo")
    _check_folder(folder, force or out is None)
    with progress_bar("runs", showcase.runs()) as progress:
        comparison = showcase.policy_comparison(**options, progress=progress)
    showcase.write_folder(comparison, folder)
    click.echo(
        text_tables.table_json(comparison.table) if as_json else text_tables.demo_text(comparison.table, folder),
        nl=as_json,
    )


@click.command(epilog="Example: fastsim explain runs/mix 17 --attempt first")
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("pods", metavar="[POD]...", nargs=-1)
@click.option("--sample", type=click.IntRange(1), metavar="N", help="N pods spread over the run, instead of POD.")
@click.option("--waiting", is_flag=True, help="All pods without a place at the end by cause, instead of POD.")
@click.option("--attempt", type=click.Choice(ATTEMPTS), default="placed", show_default=True,
              help="Decisions to explain if a pod had to wait.")  # fmt: skip
@click.option(
    "--at",
    "at",
    type=Duration("of 0 or more"),
    metavar="TIME",
    help="The round of jobs that begins last by this time: what the policy computed. Without POD, all jobs there.",
)
@click.option("--all", "every", is_flag=True, help="Every node, configuration or job, not the best or first ten.")
@click.option("--csv", "csv", type=FileWritten(".csv"), metavar="FILE", help="All rows as a CSV table.")
@click.option("--html", "html", type=FileWritten(".html"), metavar="FILE",
              help="The report page of the run with the explanation on it.")  # fmt: skip
@strict_option
@allow_code_option
@click.option("--json", "as_json", is_flag=True, help="Print all rows as JSON.")
@reads_saved_runs
def explain(
    folder: Path, pods: tuple[str, ...], sample: int | None, waiting: bool, attempt: str, at: float | None, every: bool,
    csv: Path | None, html: Path | None, strict: bool, allow_code: bool, as_json: bool,
) -> None:  # fmt: skip
    """Why pods of a saved run were placed on their nodes, or why its jobs ran and waited when they did.

    RUN is the folder of a saved run, POD a pod_id or the pod's name in the source, whose namespace may be left out. The
    run is repeated up to the decision or the round, so its inputs must be unchanged.
    """
    given = [("POD", bool(pods)), (f"--sample {sample}", bool(sample)), ("--waiting", waiting)]
    ways = [name for name, there in given if there]
    if at is not None and (sample or waiting or attempt != "placed"):
        others = [*ways[bool(pods) :], *([f"--attempt {attempt}"] if attempt != "placed" else [])]
        raise click.UsageError(f"found --at with {' and '.join(others)}, expected --at alone or with POD")
    if len(ways) != 1 and at is None:
        found = f"both {' and '.join(ways)}" if ways else "neither POD nor --sample nor --waiting"
        raise click.UsageError(f"found {found}, expected one of them")
    from fastsim.decisions.explain import explanation_of
    from fastsim.decisions.explain_text import explanation_text, write_csv
    from fastsim.reports import text_tables
    from fastsim.reports.progress import progress_bar

    if strict:
        refuse_run(folder)
    if waiting:
        _explain_waiting(folder, every, csv, html, allow_code, as_json)
        return
    with progress_bar("pods") as progress:
        explanation = explanation_of(
            folder, pods, t=at, sample=sample or 0, attempt=attempt, progress=progress, allow_code=allow_code
        )
    if csv:
        write_csv(explanation.frame(), csv)
    if html:
        about = ", ".join(pods) or "a sample" if at is None else f"the round at {at:,g} s"
        _write_page(folder, f"Explanation of {about}", explanation.frame(), html)
    click.echo(
        text_tables.table_json(explanation.frame()) if as_json else explanation_text(explanation, every), nl=as_json
    )


def _write_page(folder: Path, about: str, table: pl.DataFrame, html: Path) -> None:
    """Write the report page of a run with one explanation."""
    from fastsim.reports.report import report

    report(folder, explained={about: table}).to_html(html)


def _explain_waiting(
    folder: Path, every: bool, csv: Path | None, html: Path | None, allow_code: bool, as_json: bool
) -> None:
    from fastsim.decisions.explain_text import waiting_text, write_csv
    from fastsim.decisions.waiting_pods import waiting_pods
    from fastsim.reports import text_tables
    from fastsim.reports.progress import progress_bar

    with progress_bar("pods") as progress:
        table = waiting_pods(folder, allow_code=allow_code, progress=progress)
    if csv:
        write_csv(table, csv)
    if html:
        _write_page(folder, "Pods without a place at the end", table, html)
    click.echo(text_tables.table_json(table) if as_json else waiting_text(table, every), nl=as_json)


def _checkpoints(text: str | None, keep: bool) -> Any:
    """A number of pods, or seconds of work such as '60s'."""
    from fastsim.engine.checkpoints.clock import Checkpoints
    from fastsim.errors import ScenarioError

    if text is None:
        if keep:
            raise ScenarioError("--keep-checkpoint", "no --checkpoint", "how often one is written, such as 60s")
        return None
    try:
        checkpoints = (
            Checkpoints(int(text), keep=keep) if text.isdigit() else Checkpoints(wall_s=_wall_s(text), keep=keep)
        )
        checkpoints.check()
    except (ValueError, ScenarioError):
        expected = "a number of pods such as 100000, or a length of time such as 60s or 5min"
        raise ScenarioError("--checkpoint", repr(text), expected) from None
    return checkpoints


def _wall_s(text: str) -> float:
    """Seconds of a text with a unit; ValueError for any other."""
    from fastsim.foundation.limits.quantities import seconds_of

    seconds = seconds_of(text) if text[-1:].isalpha() else None
    if seconds is None:
        raise ValueError(text)
    return seconds


def _warn_of_dropped(result: Any) -> None:
    """Warn of dropped pods on standard error, with the remedy; not if no pod finishes, as waiting is vain then."""
    row = result.summary.row(0, named=True)
    dropped, plan = row["pods_unplaced"], result.provenance.get("plan")
    if dropped and row["pods_finished"] and isinstance(plan, dict) and plan.get("queue") == "drop":
        text = f"{dropped:,} of {row['pods']:,} pods found no room and were dropped; to let them wait: --queue fifo"
        click.echo(f"fastsim: warning: {text}", err=True)


@contextmanager
def _resumable(out: Path | None) -> Iterator[None]:
    """Adds to an interruption how to go on from the last checkpoint, or that the result is complete."""
    from fastsim.engine.checkpoints.folder import STATE, working_folder
    from fastsim.errors import Interrupted

    before = _identity(out)
    try:
        yield
    except interrupts.STOPPED as stopped:
        code = interrupts.exit_code(stopped)
        if _identity(out) not in (None, before):
            raise Interrupted(f"interrupted; {out} is complete", code) from None
        if out is not None and (working_folder(out) / STATE).is_file():
            raise Interrupted(f"interrupted; go on with: fastsim resume {out}", code) from None
        raise


def _identity(out: Path | None) -> tuple[int, int] | None:
    """Inode and time of the result in a folder; another result in its place has others."""
    try:
        status = None if out is None else (out / RECORD).stat()
    except OSError:
        return None
    return None if status is None else (status.st_ino, status.st_mtime_ns)


def _check_folder(out: Path | None, force: bool) -> None:
    from fastsim.errors import ScenarioError
    from fastsim.foundation.written_folder import refusal

    if out is None or not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not force:
        raise ScenarioError(f"--out {out}", "something that exists already", "a new or empty folder", "or use --force")
    reason = refusal(out)
    if reason:
        raise ScenarioError(f"--out {out}", reason, "a folder that a run or demo wrote")


def _labels(folders: Sequence[Path]) -> list[str] | None:
    names = [folder.name for folder in folders]
    if len(set(names)) == len(names):
        return names
    above = os.path.commonpath(folders)
    return [os.path.relpath(folder, above) if folder != Path(above) else str(folder) for folder in folders]

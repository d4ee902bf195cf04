"""Saved benchmark runs, and how the last one compares with an earlier one: python -m bench.history --help.

Runs are what pytest-benchmark saves (--benchmark-autosave). They are compared by their ratio to the calibration loop,
so that runs of different machines can stand in one history.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench.revision import RevisionError, measured

ROOT = Path(__file__).resolve().parent.parent
STORAGE = ROOT / ".benchmarks"
"""Folder of pytest-benchmark's saved runs, with a folder for each kind of machine."""


@dataclass(frozen=True)
class Figure:
    """One benchmark of one run: its ratio to the calibration loop, and how far its rounds are apart, relative.

    ``noise`` is the interquartile range over the median (NaN after one round); ``ours`` is false for others' programs.
    """

    ratio: float
    noise: float
    ours: bool = True


@dataclass(frozen=True)
class Run:
    """One saved run."""

    label: str
    machine: str
    commit: str
    when: str
    figures: dict[str, Figure]


@dataclass(frozen=True)
class Change:
    """One benchmark in two runs; ``times`` above 1 is slower now."""

    name: str
    before: Figure
    now: Figure

    @property
    def times(self) -> float:
        """Ratio of the two ratios."""
        return self.now.ratio / self.before.ratio

    @property
    def noise(self) -> float:
        """Relative spread of both runs' rounds together."""
        return math.hypot(self.before.noise, self.now.noise)


def run_of(report: dict[str, Any], label: str) -> Run:
    """The figures of one report; benchmarks that were not measured against the calibration loop are left out."""
    figures = {}
    for found in report["benchmarks"]:
        extra, stats = found["extra_info"], found["stats"]
        if "ratio" in extra:
            spread = stats["iqr"] / stats["median"] if stats["rounds"] > 1 else math.nan
            figures[found["fullname"]] = Figure(extra["ratio"], spread, extra.get("budget") is not None)
    machine, commit = report["machine_info"], report.get("commit_info", {})
    brand = machine.get("cpu", {}).get("brand_raw") or machine.get("processor") or "unknown CPU"
    name = (commit.get("id") or "unknown")[:7] + ("+" if commit.get("dirty") else "")
    return Run(label, f"{brand}, CPython {machine['python_version']}", name, report["datetime"], figures)


def saved_runs(storage: Path) -> list[Run]:
    """Every run below a folder, the oldest first."""
    runs = []
    for path in storage.glob("*/*.json"):
        try:
            runs.append(run_of(json.loads(path.read_text()), path.name.partition("_")[0]))
        except (ValueError, KeyError, TypeError) as error:
            raise click.UsageError(f"{path}: found no benchmark report ({error!r}), expected one") from None
    return sorted(runs, key=lambda run: (run.when, run.label))


def earlier(runs: Sequence[Run]) -> Run | None:
    """The last run before the last one that measured any of the same benchmarks."""
    return next((run for run in reversed(runs[:-1]) if run.figures.keys() & runs[-1].figures.keys()), None)


def chosen(runs: Sequence[Run], text: str) -> Run:
    """The newest run with this number (0003 or 3) or of this commit."""
    for run in reversed(runs):
        if run.label.lstrip("0") == text.lstrip("0") or (len(text) >= 4 and run.commit.startswith(text[:7])):
            return run
    raise click.UsageError(f"--with {text}: found no such run, expected a number or commit of the list")


def compared(before: Run, now: Run) -> list[Change]:
    """The benchmarks both runs have, in the order of the later one."""
    return [
        Change(name, before.figures[name], figure) for name, figure in now.figures.items() if name in before.figures
    ]


def failures(changes: Sequence[Change], fail_above: float) -> list[Change]:
    """Our own benchmarks that became slower by more than a factor, without those of other programs."""
    return [change for change in changes if change.now.ours and change.times > fail_above]


def short(name: str) -> str:
    """A benchmark's name without its file."""
    return name.rpartition("::")[2].removeprefix("bench_")


def runs_table(runs: Sequence[Run]) -> Table:
    """The history."""
    table = Table("run", "when", "commit", "machine", "benchmarks")
    for run in runs:
        table.add_row(run.label, run.when[:16], run.commit, run.machine, str(len(run.figures)))
    return table


def changes_table(changes: Sequence[Change], before: Run, now: Run) -> Table:
    """Two runs side by side; differences within the noise of the rounds are dimmed."""
    table = Table(title=f"{before.label} ({before.commit}) -> {now.label} ({now.commit}), in calibration loops")
    for title in ("benchmark", "before", "now", "now / before", "noise"):
        table.add_column(title, justify="left" if title == "benchmark" else "right")
    for change in changes:
        style = "dim" if abs(change.times - 1) <= change.noise else "red" if change.times > 1 else "green"
        name = escape(short(change.name))
        noise = "one round" if math.isnan(change.noise) else f"{100 * change.noise:.1f} %"
        figures = (f"{change.before.ratio:.4g}", f"{change.now.ratio:.4g}", f"{change.times:.3f}")
        table.add_row(name, *figures, noise, style=style)
    return table


@click.command()
@click.option(
    "--with", "other", metavar="RUN", help="Compare with this saved run (number or commit), not the one before."
)
@click.option("--revision", metavar="REV", help="Compare with this git revision: checked out, built and measured now.")
@click.option("--only", multiple=True, metavar="FILE", help="With --revision: benchmark files to run, again for more.")
@click.option("--fail-above", type=float, metavar="X", help="Exit 1 if a benchmark takes more than X times as long.")
@click.option("--storage", type=click.Path(path_type=Path), default=STORAGE, help="Folder of saved runs.")
def history(
    other: str | None, revision: str | None, only: tuple[str, ...], fail_above: float | None, storage: Path
) -> None:
    """List saved runs and compare the last one with an earlier one or with another revision."""
    if (other and revision) or (only and not revision):
        raise click.UsageError("--with and --revision exclude each other, and --only needs --revision")
    runs = saved_runs(storage)
    if not runs:
        raise click.UsageError(
            f"{storage}: found no saved run, expected one; python -m pytest bench --benchmark-autosave"
        )
    console = Console()
    console.print(runs_table(runs))
    before = _measured(revision, only) if revision else chosen(runs, other) if other else earlier(runs)
    if before is None:
        console.print("no earlier run has any of the last one's benchmarks")
        return
    changes = compared(before, runs[-1])
    console.print(changes_table(changes, before, runs[-1]))
    slower = failures(changes, fail_above) if fail_above is not None else []
    if slower:
        names = ", ".join(f"{short(change.name)} {change.times:.2f}" for change in slower)
        click.echo(f"slower than {fail_above:g} times: {names}", err=True)
        sys.exit(1)


def _measured(revision: str, only: Sequence[str]) -> Run:
    try:
        run = run_of(measured(revision, only, ROOT), revision)
        return replace(run, commit=run.commit.rstrip("+"))  # changed there are today's benchmarks only
    except RevisionError as error:
        raise click.UsageError(str(error)) from None


if __name__ == "__main__":
    history()

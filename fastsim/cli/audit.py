"""Verbs for figures of a saved run.

audit recomputes them, fairness divides completion times by the times of jobs alone, tenants has them by team.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from fastsim.cli.grammar.json_output import print_json
from fastsim.cli.grammar.saved_runs import reads_saved_runs
from fastsim.cli.strict import allow_code_option

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
        print_json(dataclasses.asdict(report))
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


@click.command(epilog="Example: fastsim fairness runs/las")
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Runs of jobs alone, at a time.")
@click.option("--csv", type=click.Path(path_type=Path), help="Write the ratio of every job to this file.")
@allow_code_option
@click.option("--json", "as_json", is_flag=True, help="Print the ratio of every job as JSON.")
@reads_saved_runs
def fairness(folder: Path, workers: int, csv: Path | None, allow_code: bool, as_json: bool) -> None:
    """Finish-time fairness of a saved run: completion times over those on a fair part of the cluster.

    RUN is the folder of a saved run, whose inputs must be unchanged. A ratio (rho) above 1 is unfair: alone on its part
    the job would have ended earlier. Jobs of fixed size are compared with one run under the policy isolated, adaptive
    jobs with runs of each by itself.
    """
    from fastsim.experiments.isolated_runs import fairness as fairness_figures
    from fastsim.experiments.isolated_runs import saved_run_ratios
    from fastsim.foundation.parquet import replacing
    from fastsim.reports import text_tables
    from fastsim.reports.progress import progress_bar

    with progress_bar("jobs") as progress:
        ratios = saved_run_ratios(folder, progress, workers, allow_code=allow_code)
    if csv:
        with replacing(csv) as partial:
            ratios.write_csv(partial)
    if as_json:
        click.echo(text_tables.table_json(ratios), nl=False)
        return
    for name, value in fairness_figures(ratios).items():
        click.echo(f"{name:12} {value:.4g}")


@click.command()
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--csv", type=click.Path(path_type=Path), help="Write the table to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
@reads_saved_runs
def tenants(folder: Path, csv: Path | None, as_json: bool) -> None:
    """Pods, GPUs, GPU-hours, cost, CO2 and waits of a saved run by tenant, against quotas.

    RUN is the folder of a saved run, whose inputs must be unchanged. A tenant is a namespace, a team label or a queue,
    as the workload has it. CO2 of the run is divided by GPU-hours.
    """
    from fastsim.decisions.tenant_usage import COLUMNS, tenant_usage
    from fastsim.foundation.parquet import replacing
    from fastsim.reports import text_tables

    table = tenant_usage(folder)
    if csv:
        with replacing(csv) as partial:
            table.write_csv(partial)
    if as_json:
        click.echo(text_tables.table_json(table), nl=False)
        return
    shown = [column for column in COLUMNS if column[0] == "tenant" or table[column[0]].null_count() < len(table)]
    click.echo(text_tables.text_table(table, shown, left=("tenant",)))

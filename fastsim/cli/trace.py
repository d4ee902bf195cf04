"""Verbs that check a trace before a run: trace lint, trace stats."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from fastsim.cli.grammar.json_output import print_json
from fastsim.cli.grammar.standard_streams import READ_TEXT, FileWritten

CLUSTER = click.option("--cluster", type=READ_TEXT, metavar="C", help="Cluster that the trace is for.")


@click.group()
def trace() -> None:
    """Look at pods or jobs before they run: mistakes, demand, distributions."""


@trace.command("lint")
@click.argument("workload", type=READ_TEXT)
@CLUSTER
@click.option("--json", "as_json", is_flag=True, help="Print all findings as JSON.")
def lint(workload: str, cluster: str | None, as_json: bool) -> None:
    """List broken rules, suspicious units, contradicting times, pods that can never run, too much demand.

    Exit code 1 if there are errors or warnings, 0 if there are none or notes only.
    """
    from fastsim.cluster.cluster import Cluster
    from fastsim.scenario.run_inputs import workload_from
    from fastsim.workload import lint as traces

    where = None if cluster is None else Cluster.from_text(cluster)
    findings = traces.trace_findings(workload_from(workload, where).workload, where)
    if as_json:
        print_json([one._asdict() for one in findings])
    else:
        for one in findings:
            click.echo(traces.finding_text(one))
        counts = {level: sum(one.level == level for one in findings) for level in traces.LEVELS}
        counted = ", ".join(f"{n} {level}{'s' if n != 1 else ''}" for level, n in counts.items() if n)
        click.echo(f"{workload}: {counted or 'nothing to say against it'}")
    if traces.worst(findings) in ("error", "warning"):
        sys.exit(1)


@trace.command("stats")
@click.argument("workload", type=READ_TEXT)
@CLUSTER
@click.option("-o", "--out", type=FileWritten(".svg"), metavar="FILE", help="Charts: .png, .svg, .pdf, .html or .json.")
@click.option("--json", "as_json", is_flag=True, help="Print figures and the load curve as JSON.")
def stats(workload: str, cluster: str | None, out: Path | None, as_json: bool) -> None:
    """Arrivals, requests, durations, and the GPU load that is offered over time, by the models that pods accept."""
    from fastsim.cluster.cluster import Cluster
    from fastsim.scenario.run_inputs import workload_from
    from fastsim.workload import load_statistics as traces

    where = None if cluster is None else Cluster.from_text(cluster)
    frame = traces.trace_frame(workload_from(workload, where).workload)
    lines = traces.trace_lines(frame, where)
    if as_json:
        curve = traces.load_curve(frame, where).to_dicts() if len(frame) else []
        document = {"figures": [line._asdict() for line in lines], "offered_load": curve}
        print_json(document)
    else:
        width = max(len(line.what) for line in lines)
        for line in lines:
            click.echo(f"{line.what:<{width}}  {_text(line.value):>14} {line.unit}".rstrip())
    if out is not None:
        from fastsim.reports.charts.chart_files import written_chart
        from fastsim.reports.charts.trace_charts import trace_chart

        written_chart(trace_chart(frame, where, workload), out)
        if not as_json:
            click.echo(f"charts: {out}")


def _text(value: float | int | str) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else value

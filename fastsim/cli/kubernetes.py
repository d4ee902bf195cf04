"""Verbs for clusters and other programs: serve-extender (a policy for kube-scheduler), consolidate, mig, export."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fastsim.cli.grammar.durations import DURATION, Duration
from fastsim.cli.grammar.saved_runs import reads_saved_runs
from fastsim.cli.grammar.standard_streams import READ_TEXT, FileWritten, refuse_output
from fastsim.cli.grammar.verbs import UsualVerb
from fastsim.foundation import interrupts

if TYPE_CHECKING:
    from fastsim.foundation.http.service import Service


@click.command("serve-extender")
@click.option("--snapshot", required=True, metavar="S",
              help="Nodes and pods: what `kubectl get nodes,pods -A -o json` wrote, or an address.")  # fmt: skip
@click.option("--policy", default="fgd", show_default=True, metavar="P", help="A name or a sum: '0.9*fgd + 0.1*pwr'.")
@click.option("--listen", default="127.0.0.1:8888", show_default=True, metavar="HOST:PORT", help="HTTP address.")
@click.option("--typical", metavar="PODS", help="Pods that fragmentation is measured with.  [default: those there]")
@click.option(
    "--refresh-s", type=Duration("of 0 or more"), default=1.0, show_default=True,
    help="Greatest age of files, and of what a server lists but does not watch.",
)  # fmt: skip
@click.option("--timeout-s", type=Duration("above 0"), default=5.0, show_default=True,
              help="Time limit of a request's arrival and of the API server's answer, seconds.")  # fmt: skip
@click.option("--limit-mib", type=click.IntRange(1, 256), default=16, show_default=True, help="Longest request.")
@click.option("--memory-unit", type=click.Choice(("GiB", "MiB")), default="GiB", show_default=True,
              help="Unit of aliyun.com/gpu-mem.")  # fmt: skip
def serve_extender(
    snapshot: str, policy: str, listen: str, typical: str | None, refresh_s: float, timeout_s: float, limit_mib: int,
    memory_unit: str,
) -> None:  # fmt: skip
    """Answer kube-scheduler's filter and prioritize with a policy, on a live snapshot of the cluster.

    With an address as snapshot, nodes and pods are listed once through `kubectl proxy`, and watched. Ctrl-C or SIGTERM
    ends the service.
    """
    from fastsim.decisions.kube_extender import Extender
    from fastsim.decisions.live_cluster import LiveSnapshot, left_out
    from fastsim.foundation.http.connections import Limits
    from fastsim.foundation.http.service import Service, address_of
    from fastsim.scenario.run_inputs import workload_from

    host, port = address_of(listen)
    live = LiveSnapshot(snapshot, refresh_s, timeout_s, memory_unit)
    extender = Extender(live, policy, typical=workload_from(typical).workload if typical else None)
    with closing(live):
        state = live.state()
        service = Service(extender.routes(), host, port, Limits(limit_mib << 20, timeout_s))
        if state.notices:
            click.echo(f"not honoured: {left_out(state.notices)}", err=True)
        until_ended(service, f"{service.url}: filter and prioritize by {policy}, {state.description}")


def until_ended(service: Service, title: str, over: Callable[[], bool] = lambda: False) -> None:
    """Print the title and serve until ``over()``, Ctrl-C or SIGTERM; requests that have arrived are still answered."""
    click.echo(f"{title}; Ctrl-C ends it")
    try:
        service.run(over)
    except KeyboardInterrupt:
        pass
    except interrupts.Terminated:
        click.echo(f"fastsim: ended by SIGTERM after {service.answered:,} answers", err=True)
        raise click.exceptions.Exit(interrupts.TERMINATED) from None
    click.echo(f"ended after {service.answered:,} answers")


@click.command()
@click.option(
    "--cluster", required=True, type=READ_TEXT, metavar="C", help="The cluster with its pods: kubernetes:PATH."
)
@click.option("--node-prices", metavar="P", help="$ an hour of a node by name, instance type or GPU: 'g2=12.5&cpu=1'.")
@click.option("--evict", "set_aside", multiple=True, type=click.Choice(("ownerless", "local-storage", "not-safe")),
              help="Pods that else stay: without a controller, with local storage, marked as not safe.")  # fmt: skip
@click.option("-o", "--out", "output", metavar="FILE", type=FileWritten(".yaml"), help="Evictions: .yaml or .json.")
@click.option("--moved", metavar="FILE", type=FileWritten(".yaml"), help="Pods on their new nodes: .yaml or .json.")
@click.option("--json", "as_json", is_flag=True, help="Print nodes and moves as JSON.")
def consolidate(
    cluster: str, node_prices: str | None, set_aside: tuple[str, ...], output: Path | None, moved: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Find the nodes that can be emptied, in order, and where their pods go.

    Pods of DaemonSets go with their node; budgets (PodDisruptionBudget) put evictions in batches. As many nodes as
    possible are emptied, or with prices nodes of most $ an hour. Exit code 1 if none can be.
    """
    from fastsim.decisions.live_cluster import ClusterState, left_out
    from fastsim.decisions.what_if import consolidation
    from fastsim.decisions.what_if.consolidation_text import plan_json, plan_text
    from fastsim.errors import InputError
    from fastsim.experiments.node_prices import node_prices_from
    from fastsim.kubernetes.objects import manifests
    from fastsim.kubernetes.pod_rules.evictions import eviction
    from fastsim.reports.kubernetes.export import write_objects

    if not cluster.startswith("kubernetes:"):
        raise InputError("--cluster", repr(cluster), "kubernetes:PATH")
    state = ClusterState(manifests(cluster.removeprefix("kubernetes:")), cluster)
    tariffs = list(node_prices_from(node_prices).values())
    if len(tariffs) > 1:
        raise InputError("--node-prices", f"{len(tariffs)} tariffs", "one")
    prices = consolidation.node_prices(state, tariffs[0]) if tariffs else None
    plan = consolidation.consolidation(state, prices=prices, set_aside=set_aside)
    if plan.notices:
        click.echo(f"not honoured: {left_out(plan.notices)}", err=True)
    click.echo(plan_json(plan) if as_json else plan_text(plan), nl=as_json)
    if output is not None:
        write_objects((eviction(move.pod) for move in plan.moves), output)
    if moved is not None:
        write_objects(consolidation.moved_pods(state, plan), moved)
    if not plan.nodes:
        click.get_current_context().exit(1)


@click.command()
@click.option("--cluster", required=True, type=READ_TEXT, metavar="C", help="The cluster, with pods that run there.")
@click.option("--workload", type=READ_TEXT, metavar="W", help="Pods that wait.  [default: those of the cluster]")
@click.option(
    "--node", "nodes", multiple=True, metavar="NAME", help="Divide boards of this node; repeatable.  [default: all]"
)
@click.option("--boards", type=click.IntRange(min=0), metavar="N", help="Divide at most N boards.")
@click.option("-o", "--out", "output", metavar="FILE", type=FileWritten(".yaml"),
              help="Configurations of NVIDIA's MIG manager and labels of nodes: .yaml or .json.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print layouts and counts as JSON.")
def mig(
    cluster: str, workload: str | None, nodes: tuple[str, ...], boards: int | None, output: Path | None, as_json: bool
) -> None:
    """Find layouts of free boards (MIG) with which most waiting pods run.

    Pods that run keep their boards. The engine places the waiting pods on each candidate; no layouts host more than the
    bound of an integer program. Exit code 1 if no layouts host more pods than those of now.
    """
    from fastsim.decisions.what_if.mig_layouts import mig_plan
    from fastsim.decisions.what_if.mig_text import manager_objects, mig_json, mig_text
    from fastsim.errors import InputError
    from fastsim.reports.kubernetes.export import write_objects

    if workload is None and not cluster.startswith("kubernetes:"):
        raise InputError("--workload", "none", "pods that wait: only kubernetes:PATH has its own")
    plan = mig_plan(cluster, workload or cluster, nodes=nodes, boards=boards)
    click.echo(mig_json(plan) if as_json else mig_text(plan), nl=as_json)
    if output is not None:
        write_objects(manager_objects(plan), output)
    if plan.hosted == plan.hosted_now:
        click.get_current_context().exit(1)


class _Export(UsualVerb):
    """The verbs of export; objects are the usual ones."""

    usual = "kubernetes"


@click.group(cls=_Export)
def export() -> None:
    """Write saved runs for other programs: Kubernetes objects, a log as Sia's, tables as CSV, LaTeX or Parquet.

    `fastsim export RUN -o FILE` is `fastsim export kubernetes RUN -o FILE`.
    """


@export.command("kubernetes", epilog="Example: fastsim export kubernetes runs/now --nodes -o placed.yaml")
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("-o", "--out", "output", required=True, metavar="FILE", type=FileWritten(".yaml"), help=".yaml or .json.")
@click.option("--at", "at_s", type=DURATION, metavar="S", help="Pods that run after S seconds.  [default: at the end]")
@click.option("--every", is_flag=True, help="All pods that ever ran, with the times of their lives.")
@click.option("--nodes", is_flag=True, help="The nodes, too.")
@reads_saved_runs
def export_kubernetes(folder: Path, output: Path, at_s: float | None, every: bool, nodes: bool) -> None:
    """Write the placements of a saved run as Kubernetes objects: pods bound to nodes.

    Objects that the run was read from are written unchanged, except that pods get their nodes and numbers of devices.
    """
    from fastsim.errors import ScenarioError
    from fastsim.reports.kubernetes.export import bound_pods, node_objects, saved_run, write_objects
    from fastsim.reports.kubernetes.originals import originals_of

    if every and at_s is not None:
        raise ScenarioError("--every", "both --every and --at", "one of them")
    result, cluster, workload = saved_run(folder)
    originals = originals_of(result)
    pods = bound_pods(result, workload, at_s=at_s, every=every, originals=originals.pods)
    count = write_objects(chain(node_objects(cluster, originals.nodes) if nodes else (), pods), output)
    click.echo(f"{output}: {count:,} objects")


@export.command("sia-log", epilog="Example: fastsim export sia-log runs/sia -o sia.log")
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("-o", "--out", "output", required=True, metavar="FILE", type=FileWritten(".json"))
@reads_saved_runs
def export_sia_log(folder: Path, output: Path) -> None:
    """Write the log that Sia's and Pollux's simulators write, for scripts that read it: a line of JSON for each round.

    RUN is the folder of a saved run of adaptive jobs. Epochs and batch sizes within a run are null.
    """
    from fastsim.engine.originals.adaptive_log import write_log
    from fastsim.engine.result import Result

    click.echo(f"{output}: {write_log(Result.load(folder), output):,} rounds")


@export.command("table", epilog="Example: fastsim export table runs/sia jobs --columns native_id,jct_s -o jobs.csv")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("table", metavar="TABLE")
@click.option("-o", "--out", required=True, metavar="FILE", type=click.Path(path_type=Path),
              help=".csv, .tex or .parquet; - is standard output.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(("csv", "latex", "parquet")),
              help="[default: by the end of FILE; of - CSV]")  # fmt: skip
@click.option("--columns", metavar="C,...", help="These columns only, in this order.")
@reads_saved_runs
def export_table(folder: Path, table: str, out: Path, form: str | None, columns: str | None) -> None:
    """Write a table of a saved run, or of all runs of a sweep.

    TABLE is summary, jobs, placements, timeline, stages or telemetry, DIR the folder of a run, or of a sweep with runs
    in it; of several runs, each row begins with the run's name and its values of the sweep's keys.
    """
    from fastsim.experiments.exported_tables import form_of, saved_table, table_bytes
    from fastsim.reports.charts.chart_files import written_file

    piped = str(out) == "-"
    form = form or "csv" if piped else form_of(out, form)
    frame = saved_table(folder, table, columns.split(",") if columns else ())
    content = table_bytes(frame, form)
    if piped:
        refuse_output(f".{form}")
    if not piped:
        click.echo(f"{written_file(out, content)}: {len(frame):,} rows")
    elif form == "parquet":
        sys.stdout.buffer.write(content)
    else:
        click.echo(content.decode(), nl=False)

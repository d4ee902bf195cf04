"""Verbs about names: list and describe the known ones, new-policy adds one."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path

import click

from fastsim.cli.grammar.json_output import print_json

KINDS = ("policies", "clusters", "workloads", "importers", "gpus", "mig")
POLICY_KINDS = ("placement", "order", "shares", "adaptive")
METRICS, KUBERNETES = "metrics", "kubernetes"
_TRACES = Path(__file__).parents[1] / "workload" / "published_traces" / "tables" / "published_traces.csv"
with _TRACES.open(newline="") as _rows:
    PUBLISHED = {row["name"]: row["reads"] for row in csv.DictReader(_rows)}
"""What importers of published traces read; `workload.texts` has the same table, and needs large libraries."""
IMPORTERS = {
    "openb": "pod and node lists of Alibaba's cluster-trace-gpu-v2023",
    "gavel": "job traces of Gavel (10 fields), of its Philly-like kind (7) and of Shockwave (12)",
    "sia": "job lists of Sia's and Pollux's experiments (CSV), and folders of their applications",
    "pollux": "the same, with applications on Pollux's one kind of machine",
    "synergy": "job traces (5 fields, CSV) and clusters (INI) of Synergy",
    "philly": "the log of Microsoft's Philly trace (JSON) and its reduced form (CSV)",
    "kubernetes": "nodes, pods and workloads of Kubernetes (YAML, JSON, KAI snapshots)",
    "simon": "configurations of FGD's simulator (simon apply -f) as scenarios (TOML)",
    "gavel-rates": "throughput files of Gavel: steps/s by GPU model, job and companion",
    **PUBLISHED,
    "csv": "pods or nodes of any table, under any names",
}


@click.command("list")
@click.argument("kind", type=click.Choice(KINDS))
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def list_(kind: str, as_json: bool) -> None:
    """Names that the other verbs understand."""
    texts = _known_names(kind)
    if as_json:
        print_json(texts)
        return
    width = max(map(len, texts))
    for name, text in texts.items():
        click.echo(f"{name:<{width}}  {text}")


@click.command("new-policy")
@click.argument("name")
@click.option("-o", "--out", type=click.Path(path_type=Path), default=Path("."), metavar="DIR", help="Folder.")
@click.option("--kind", type=click.Choice(POLICY_KINDS), default="placement", show_default=True,
              help="Nodes of pods, an order of jobs, shares of time, adaptive jobs.")  # fmt: skip
def new_policy(name: str, out: Path, kind: str) -> None:
    """Write a working policy of your own, its test, and the project that makes it a plugin."""
    from fastsim.policies.template import new_policy as write_policy

    files = write_policy(name, out, kind)
    click.echo("".join(f"{path}\n" for path in files), nl=False)
    click.echo(f"next: cd {out} && pip install -e . && python -m pytest {files[1].name} && fastsim describe {name}")


@click.command(epilog="Example: fastsim describe metrics --table summary energy_kwh")
@click.argument("policy", metavar="POLICY|metrics|kubernetes")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--table", metavar="T", help="Metrics of this table only: summary, jobs, placements, timeline, charts.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def describe(policy: str, names: tuple[str, ...], table: str | None, as_json: bool) -> None:
    """Idea, formula, parameters and citation of a policy; definitions of metrics; support of Kubernetes fields.

    POLICY may also be the name of a metric, such as wait_p99_s. After the word metrics, each NAME is a column of a
    result table or a chart, after the word kubernetes a part of a field's, resource's or object's name; without names,
    all are printed.
    """
    if policy == METRICS:
        _describe_metrics(names, table or "", as_json)
    elif policy == KUBERNETES and not table:
        _describe_fields(names, as_json)
    elif names or table:
        raise click.UsageError(f"NAME goes with the words {METRICS} and {KUBERNETES}, --table with {METRICS}")
    elif metric := _metric(policy):
        _describe_metrics((metric,), "", as_json)
    else:
        _describe_policy(policy, as_json)


def _metric(name: str) -> str:
    """The column or chart of this name, in whatever letters; nothing if a policy has it or is as near as any metric."""
    from fastsim.engine.audit.metric_definitions import definitions
    from fastsim.errors import plain_name, suggestion
    from fastsim.policies import registry

    policies = registry.names()
    if plain_name(name) in map(plain_name, policies):
        return ""
    columns = [one.column for one in definitions()]
    if any(one.defines(one.table, name) for one in definitions()):
        return name
    spelled = {plain_name(column): column for column in columns}.get(plain_name(name))
    return spelled or (name if not suggestion(name, policies) and suggestion(name, columns) else "")


def _describe_metrics(names: tuple[str, ...], table: str, as_json: bool) -> None:
    from fastsim.engine.audit.metric_definitions import FIGURE_TABLES, chosen, definition_text
    from fastsim.errors import ScenarioError

    if table and table not in FIGURE_TABLES:
        raise ScenarioError("table", repr(table), f"one of {', '.join(FIGURE_TABLES)}")
    definitions = chosen(names, table)
    if as_json:
        print_json([dataclasses.asdict(one) for one in definitions])
        return
    click.echo("\n".join(definition_text(one) for one in definitions))


def _describe_fields(words: tuple[str, ...], as_json: bool) -> None:
    from fastsim.kubernetes.fields import chosen, fields_text

    fields = chosen(words)
    if as_json:
        print_json([one._asdict() for one in fields])
    else:
        click.echo(fields_text(fields))


def _describe_policy(policy: str, as_json: bool) -> None:
    from fastsim.policies import registry

    description = registry.describe(policy)
    if as_json:
        print_json(dataclasses.asdict(description))
        return
    click.echo(f"{description.name} [{description.engine}]\n\n{description.text}\n\nparameters")
    for parameter in description.parameters:
        unit = f" [{parameter.unit}]" if parameter.unit else ""
        choices = f" ({', '.join(parameter.choices)})" if parameter.choices else ""
        click.echo(f"  {parameter.name}={parameter.default}{unit}: {parameter.text}{choices}")
    if description.citation:
        click.echo(f"\n{description.citation}")


def _gpu_models() -> dict[str, str]:
    """Watts, memory and source of each GPU model of the catalogue."""
    from fastsim.hardware.model_catalog import Catalog

    return {
        name: f"{model.idle_w:g} to {model.peak_w:,g} W, {model.memory_mib:,} MiB ({model.source})"
        for name, model in Catalog.default().gpu.items()
    }


def _known_names(kind: str) -> dict[str, str]:
    if kind == "importers":
        return IMPORTERS
    if kind == "gpus":
        return _gpu_models()
    if kind == "mig":
        from fastsim.hardware.mig import profiles

        return {
            f"{model} {name}": profile.text
            for model, model_profiles in profiles().items()
            for name, profile in model_profiles.items()
        }
    if kind == "policies":
        from fastsim.policies import registry

        descriptions = [registry.describe(name) for name in registry.names()]
        return {policy.name: f"[{policy.engine}] {policy.title}" for policy in descriptions}
    from fastsim.cluster.texts import PRESETS
    from fastsim.workload.texts import SYNTHETIC

    return PRESETS if kind == "clusters" else SYNTHETIC

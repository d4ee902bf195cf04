"""The verb that tells how much to buy: plan."""

from __future__ import annotations

from typing import Any

import click

from fastsim.cli.strict import refuse_scenario, strict_option


@click.command(
    epilog="Example: fastsim plan --cluster openb:200 --workload 'synth:openb?pods=2000' --add g2 --add 2*t4+g2"
)
@click.option("--cluster", metavar="C", help="The cluster as it is: openb:1000, kubernetes:PATH, a table, ...")
@click.option("--workload", metavar="W", help="What it has to do: kubernetes:PATH, synth:openb?pods=1000, a file, ...")
@click.option("--policy", metavar="P", help="A name or a sum: 'fgd', '0.9*fgd + 0.1*pwr'.  [default: fgd]")
@click.option("--scenario", metavar="FILE", help="TOML file with any of these; options here come first.")
@click.option("--seed", type=int, help="Seed of every random choice.  [default: 0]")
@click.option(
    "--queue", metavar="Q", help="Pods that fit nowhere: drop, fifo(-skip), ...  [default: drop; with a wait fifo]"
)
@click.option("--add", "kinds", multiple=True, required=True, metavar="NODE_TYPE",
              help="What may be added, again for more: g2, 2*g2+t4, node:NAME (a copy), a YAML file.")  # fmt: skip
@click.option(
    "--p95-wait-s", type=float, metavar="S", help="95 % of the pods shall wait less; else all shall just fit."
)
@click.option("--most", type=click.IntRange(1), default=10_000, show_default=True, help="Most additions to try.")
@click.option("--workers", type=click.IntRange(1), default=2, show_default=True, help="Runs side by side.")
@strict_option
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def plan(
    scenario: str | None, kinds: tuple[str, ...], p95_wait_s: float | None, most: int, workers: int, strict: bool,
    as_json: bool, **options: Any,
) -> None:  # fmt: skip
    """Find the fewest nodes to add so that every pod fits, or so that pods wait less than a limit.

    Each --add is searched for by itself, by bisection over runs; the answer suffices, and one less does not.
    """
    from fastsim.experiments.capacity_plan import smallest_additions
    from fastsim.reports import text_tables
    from fastsim.reports.progress import progress_bar
    from fastsim.scenario.scenario import Scenario

    given = {name: value for name, value in options.items() if value is not None}
    base = Scenario.from_toml(scenario).with_(**given) if scenario else Scenario.from_dict(given)
    if strict:
        refuse_scenario(base)
    with progress_bar("runs") as progress:
        table = smallest_additions(base, kinds, p95_wait_s=p95_wait_s, most=most, workers=workers, progress=progress)
    click.echo(text_tables.table_json(table) if as_json else text_tables.plan_text(table), nl=as_json)

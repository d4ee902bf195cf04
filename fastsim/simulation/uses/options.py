"""Which options of a scenario each engine uses (``tables/options.csv``): refusals, and a warning about unused ones.

An option is given if its value differs from the default.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from fastsim.engine.rounds.options import LATE_SHARES, ORDERED_QUIRKS, QUIRKS, USE_FROM_ZERO
from fastsim.errors import ScenarioError
from fastsim.policies.registry import engine_of
from fastsim.scenario.compat import switches_on
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.run_warnings import Message, OptionUnused
from fastsim.simulation.uses.cells import ENGINES, IGNORED, REFUSED, Conditions, Use, cells

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster

ENGINES_OF_SCENARIOS = ENGINES[:-1]
"""Engines whose options are fields of a scenario."""
IN_ROUNDS = ("shares", "orders", "adaptive")
"""Engines for jobs in rounds."""
SENSITIVE = ("storage_demand_fixed", "clip_by_cpu")
"""Compat switches that attaching a profile of sensitivities reads."""
FIGURES = "slo_compare_absolute"
"""The compat switch that the summary of rounds reads."""
TIMELINES = ("timeline", "all")
"""Records with a timeline."""
REASONS = {
    "pods": "nothing: policy {policy} is for pods",
    "monitored": "nothing: policy {policy} is for pods that share monitored GPUs",
    "rounds": "nothing: policy {policy} is for rounds",
    "adaptive": "nothing: the jobs of policy {policy} are adaptive",
    "interference": "nothing: the jobs of policy {policy} are not adaptive",
    "begin_s": "nothing: policy {policy} shares time out",
    "realloc_s": "nothing: policy {policy} gives all GPUs out anew in every round",
    "global_queue": "nothing: policy {policy} gives all GPUs out anew in every round",
    "ideal": "nothing: policy {policy} has no shares",
    "profiling": "nothing: policy {policy} lets no jobs share GPUs",
    "references": "nothing: policy {policy} lets no jobs share GPUs",
}
"""Expectations in place of a refused option: by engine, or by option in rounds of shares and orders."""
IDEAL_REASONS = {
    "log": "none: the ideal has no tasks to log",
    "telemetry": "none: the ideal places jobs nowhere",
    "failures": "none: the ideal has all GPUs all the time",
    "maintenance": "none: the ideal has all GPUs all the time",
}
"""The same for options that the ideal lacks."""


class OptionFacts(NamedTuple):
    """Facts that decide whether an engine uses an option, besides the scenario itself.

    ``columns`` of the pod table · ``queue`` the rule of the plan · ``leaving``: some nodes leave the cluster ·
    ``unread``: words of ``compat`` whose switches nothing in this run reads · ``pairs``: jobs may share GPUs.
    """

    scenario: Scenario
    columns: Collection[str] = ()
    queue: str = "drop"
    leaving: bool = False
    unread: tuple[str, ...] = ()
    pairs: bool = True


def _priorities(facts: OptionFacts) -> bool:
    return "priority" in facts.columns


def _losses(facts: OptionFacts) -> bool:
    return facts.leaving or bool(facts.scenario.failures) or facts.scenario.maintenance is not None


def _stops(facts: OptionFacts) -> bool:
    preempts = facts.scenario.preempt != "none" and _priorities(facts)
    return preempts or (facts.scenario.on_node_loss == "requeue" and _losses(facts))


def _sortable(facts: OptionFacts) -> bool:
    needed = {"priority": "priority", "drf": "tenant"}.get(facts.queue.removesuffix("_skip"))
    return needed is None or needed in facts.columns


CONDITIONS: Conditions = {
    "rounds": (lambda facts: not facts.scenario.ideal, "rounds, not the ideal"),
    "timeline": (
        lambda facts: facts.scenario.record in TIMELINES and not facts.scenario.ideal, "a recorded timeline",
    ),
    "priorities": (_priorities, "a column `priority`"),
    "sortable": (_sortable, "the column that it sorts by (`priority`, or `tenant` for drf)"),
    "failing": (lambda facts: bool(facts.scenario.failures), "random failures of nodes"),
    "losses": (_losses, "nodes that fail, leave or are maintained"),
    "stops": (_stops, "pods that are stopped: preemption by a column `priority`, or requeued pods of lost nodes"),
    "weighed": (lambda facts: facts.queue == "drf", "queue=drf"),
    "read": (lambda facts: not facts.unread, "an engine or a policy that reads each of its words"),
    "pairs": (lambda facts: facts.pairs, "a policy that lets jobs share GPUs"),
}  # fmt: skip
"""Conditions of cells: whether it holds, and what a run needs for it."""


def given(scenario: Scenario) -> tuple[str, ...]:
    """Names of the options whose values differ from the defaults."""
    defaults = {item.name: item.default for item in dataclasses.fields(scenario)}
    return tuple(name for name in cells("options") if _differs(getattr(scenario, name), defaults[name]))


def _differs(value: Any, default: Any) -> bool:
    plain = value is None or isinstance(value, str | int | float | bool | tuple)
    return bool(value != default) if plain else True


def refuse_options(scenario: Scenario, engine: str) -> None:
    """ScenarioError for the first given option that means nothing in this engine."""
    for name, _ in _with_use(scenario, engine, OptionFacts(scenario), REFUSED):
        raise ScenarioError(name, repr(getattr(scenario, name)), _expected(name, engine).format(policy=scenario.policy))


def unused_options(engine: str, facts: OptionFacts) -> list[Message]:
    """The warning about given options that this run does not use; none if it uses all of them."""
    unused = _with_use(facts.scenario, engine, facts, IGNORED)
    listed = ", ".join(f"{_named(name, facts)}{_without(cell)}" for name, cell in unused)
    return [(OptionUnused, f"options without effect: {listed}")] if listed else []


def option_facts(scenario: Scenario, policy: Any, cluster: Cluster, **rest: Any) -> OptionFacts:
    """The facts of a run; ``rest`` are those that its workload and plan decide."""
    leaving = cluster.nodes["remove_s"].null_count < len(cluster)
    return OptionFacts(scenario, leaving=leaving, unread=_unread(scenario, policy), **rest)


def _with_use(scenario: Scenario, engine: str, facts: OptionFacts, use: str) -> Iterator[tuple[str, Use]]:
    """Given options with this use in a run, and their cells."""
    for name in given(scenario):
        cell = cells("options")[name][engine]
        if cell.in_run(facts, CONDITIONS) == use:
            yield name, cell


def _expected(name: str, engine: str) -> str:
    if engine not in IN_ROUNDS:
        return REASONS[engine]
    row = cells("options")[name]
    if all(row[other].use == REFUSED for other in IN_ROUNDS):
        return REASONS["rounds"]
    if engine == "adaptive":
        return REASONS["adaptive"]
    return IDEAL_REASONS[name] if row[engine].otherwise == REFUSED and name in IDEAL_REASONS else _own(name)


def _own(name: str) -> str:
    return REASONS["ideal" if name == "log" else name]


def _named(name: str, facts: OptionFacts) -> str:
    return f"{name} ({', '.join(facts.unread)})" if name == "compat" else name


def _without(cell: Use) -> str:
    return f" (without {CONDITIONS[cell.condition][1].replace('`', '')})" if cell.condition else ""


def _unread(scenario: Scenario, policy: Any) -> tuple[str, ...]:
    """Words of ``compat`` with switches of which nothing reads one."""
    words = [word.strip() for word in scenario.compat.split(",") if word.strip()]
    read = _read(scenario, policy)
    return tuple(word for word in words if (switches := switches_on(word)) and not switches & read)


def _read(scenario: Scenario, policy: Any) -> frozenset[str]:
    """The compat switches that the engine and the policy of a run read."""
    engine = engine_of(policy)
    own = {item.name for item in dataclasses.fields(policy)} if dataclasses.is_dataclass(policy) else set()
    if engine == "monitored":  # one word of a comparison serves the schedulers without such a switch, too
        return frozenset(own.union(switches_on("monitored")))
    if engine not in ("shares", "orders"):
        return frozenset()
    read = {*own, FIGURES, *(("azure_last_zone",) if scenario.prices is not None else ())}
    if engine == "orders":
        return frozenset(read.union(ORDERED_QUIRKS, SENSITIVE))
    if scenario.profiling != 1 or scenario.references is not None:
        read.add("estimator_column_bug")
    return frozenset(read if scenario.ideal else read.union(QUIRKS, (LATE_SHARES, USE_FROM_ZERO)))

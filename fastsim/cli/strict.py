"""The option --strict: refuse Kubernetes objects with fields that are not honoured."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from fastsim.scenario.scenario import Scenario

allow_code_option = click.option(
    "--allow-code", is_flag=True, help="Policies in files may import functions of yours: python(scorer='module:f')."
)
"""The flag of verbs that run policies from files."""

strict_option = click.option(
    "--strict", is_flag=True, help="Refuse Kubernetes objects of which something is not honoured."
)
"""The flag, the same for all verbs that have it."""


def refuse_not_honoured(notices: Iterable[str]) -> None:
    """InputError that lists the notices, unless there are none."""
    from fastsim.errors import InputError

    distinct = tuple(dict.fromkeys(notices))
    if distinct:
        expected = "objects of which everything is honoured"
        raise InputError("--strict", distinct, expected, "leave --strict out to go on without")


def refuse_scenario(scenario: Scenario) -> None:
    """InputError if the Kubernetes objects of a scenario have fields that are not honoured; nothing is run.

    Preferences of pods are honoured by policies that have scores of them.
    """
    from fastsim.cluster.cluster import Cluster
    from fastsim.scenario import run_inputs
    from fastsim.simulation.uses.columns import unscored_preferences

    unscored: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for text, reader in ((scenario.cluster, Cluster.from_text), (scenario.workload, run_inputs.workload_from)):
            if str(text).strip().startswith("kubernetes:"):
                read = reader(text)
                if isinstance(read, run_inputs.OfferedPods):
                    unscored += unscored_preferences(read.workload, scenario)
    refuse_not_honoured([*(text for text in dict.fromkeys(map(_notice, caught)) if text), *unscored])


def refuse_run(folder: Path) -> None:
    """As :func:`refuse_scenario`, of a saved run; a run of objects in memory is left to the verb."""
    from collections.abc import Mapping

    from fastsim.engine.result import Result
    from fastsim.scenario.scenario import Scenario

    provenance = Result.load(folder).provenance
    if isinstance(provenance.get("scenario"), Mapping) and not provenance.get("objects"):
        refuse_scenario(Scenario.from_dict(provenance["scenario"], str(folder)))


def notice_key(message: Warning | str) -> str:
    """The part of a notice that repeated notices share: nodes read with the pods are the same nodes."""
    text = str(message)
    return text.partition(": nodes: ")[2] or text


def _notice(warning: Any) -> str:
    from fastsim.kubernetes.snapshot import NotHonoured

    return str(warning.message) if issubclass(warning.category, NotHonoured) else ""

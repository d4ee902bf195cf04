"""The option --strict: commands refuse Kubernetes objects of which something is not honoured."""

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


def refuse_not_honoured(found: Iterable[str]) -> None:
    """InputError that lists everything that is not honoured, if there is anything."""
    from fastsim.errors import InputError

    listed = "; ".join(dict.fromkeys(found))
    if listed:
        expected = "objects of which everything is honoured"
        raise InputError("--strict", listed, expected, "leave --strict out to go on without")


def refuse_scenario(scenario: Scenario) -> None:
    """InputError if the objects behind the texts of a scenario ask for what is not honoured, before anything is run."""
    from fastsim.workload import texts

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for text, opened in ((scenario.cluster, texts.cluster_from), (scenario.workload, texts.workload_from)):
            if str(text).strip().startswith("kubernetes:"):
                opened(text)
    refuse_not_honoured(text for text in dict.fromkeys(map(_notice, caught)) if text)


def refuse_run(folder: Path) -> None:
    """As :func:`refuse_scenario`, of a saved run; one of objects in memory is left to the verb."""
    from collections.abc import Mapping

    from fastsim.engine.result import Result
    from fastsim.scenario.scenario import Scenario

    written = Result.load(folder).provenance.get("scenario")
    if isinstance(written, Mapping):
        refuse_scenario(Scenario.from_dict(written, str(folder)))


def notice_key(message: Warning | str) -> str:
    """What makes a notice of Kubernetes objects another one: nodes that are read with the pods are the same nodes."""
    text = str(message)
    return text.partition(": nodes: ")[2] or text


def _notice(warning: Any) -> str:
    from fastsim.kubernetes.snapshot import NotHonoured

    return str(warning.message) if issubclass(warning.category, NotHonoured) else ""
